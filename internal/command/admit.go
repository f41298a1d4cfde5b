package command

import (
	"bytes"

	"cellserver/internal/acl"
	"cellserver/internal/peer"
)

// admit finds the row of a command or subcommand and checks what can be checked before it runs.
func (s *Session) admit(args [][]byte) (*row, [][]byte, error) {
	r, err := s.find(args)
	if err != nil {
		return r, nil, err
	}
	if r.flags&flagNoAuth == 0 && !s.mayGoOn() {
		return r, nil, errNoAuth
	}
	if r.refusal != "" {
		return r, nil, replyError("ERR " + r.refusal)
	}
	if s.multi != nil && r.flags&flagNoMulti != 0 {
		return r, nil, errNotInMulti
	}
	if s.inner == inScript && r.flags&flagNoScript != 0 {
		return r, nil, errNotInScript
	}
	if s.user != nil && !s.user.Unrestricted() {
		if err := s.permit(r, args); err != nil {
			return r, nil, err
		}
	}
	if s.inner == inScript {
		if err := s.admitInScript(r, args); err != nil {
			return r, nil, err
		}
	}
	return r, args, s.checkKeys(r, args)
}

// mayGoOn reports whether the client has authenticated, or need not any more: the password may have been taken away
// since it came.
func (s *Session) mayGoOn() bool {
	if !s.authenticated {
		s.greet()
	}
	return s.authenticated
}

func (s *Session) find(args [][]byte) (*row, error) {
	r := s.engine.table.lookup(args[0])
	if r == nil {
		if s.inner == inScript {
			return nil, errUnknownInScript
		}
		if isCrossProtocol(args[0]) {
			s.engine.reportCrossProtocol(s.client.peer.Addr)
			s.status = peer.Abort
		}
		return nil, errUnknownCommand(args)
	}
	if r.subs != nil && len(args) > 1 {
		sub := r.sub(args[1])
		if sub == nil && s.inner == inScript {
			return nil, errUnknownInScript
		}
		if sub == nil {
			return nil, errUnknownSubcommand(r, args[1])
		}
		r = sub
	}
	if !r.acceptsArity(len(args)) {
		if s.inner == inScript {
			return r, errArityInScript
		}
		return r, errArity(r)
	}
	return r, nil
}

// admitInScript refuses what a script must not do, to whomever.
func (s *Session) admitInScript(r *row, args [][]byte) error {
	switch {
	case r.flags&flagWhole != 0:
		return errWholeInScript
	case r.flags&flagWrite != 0 && s.readOnly:
		return errReadOnlyScript
	}
	var err error
	r.keys.eachKey(args, func(name []byte) {
		if !s.declared(name) {
			err = errUndeclared(name)
		}
	})
	return err
}

// denied says why the user's rules do not allow a command, and notes it.
func (s *Session) denied(r *row, args [][]byte) (reason acl.Reason, object string) {
	if r.flags&flagNoAuth != 0 { // AUTH and its like are everybody's
		return acl.Allowed, ""
	}
	reason, object = deniedTo(s.user, r, args)
	if reason != acl.Allowed {
		s.noteDenial(acl.Denial{Reason: reason, Object: object, Username: s.user.Name()})
	}
	return reason, object
}

// permit refuses what the user's rules do not allow.
func (s *Session) permit(r *row, args [][]byte) error {
	reason, object := s.denied(r, args)
	switch {
	case reason == acl.Allowed:
		return nil
	case s.inner == inScript && reason == acl.DeniedCommand:
		return replyError("ERR The user executing the script can't run this command or subcommand")
	case s.inner == inScript:
		return replyError("ERR The user executing the script can't access at least one of the keys mentioned in the command arguments")
	case reason == acl.DeniedCommand:
		return replyError("NOPERM this user has no permissions to run the '" + object + "' command")
	}
	return replyError("NOPERM this user has no permissions to access one of the keys used as arguments")
}

// deniedTo says why a user may not run a command, and the command or key that it is about.
func deniedTo(user *acl.User, r *row, args [][]byte) (reason acl.Reason, object string) {
	var room [8]acl.Key // enough for most, without an allocation
	keys := room[:0]
	access := r.keys.access()
	r.keys.eachKey(args, func(name []byte) { keys = append(keys, acl.Key{Name: name, Access: access}) })
	var first []byte
	if len(args) > 1 {
		first = args[1]
	}
	reason, denied := user.Check(r.id, first, keys)
	switch reason {
	case acl.DeniedCommand:
		return reason, r.fullName()
	case acl.DeniedKey:
		return reason, string(keys[denied].Name)
	default:
		return reason, ""
	}
}

// noteDenial adds to ACL LOG.
func (s *Session) noteDenial(d acl.Denial) {
	d.Context = "toplevel"
	switch {
	case s.inner == inScript:
		d.Context = "lua"
	case s.inner == inExec || s.multi != nil:
		d.Context = "multi"
	}
	nowNs := s.now()
	d.ClientInfo = s.client.line(nowNs)
	s.engine.aclLog.Add(nowNs, d)
}

func (s *Session) declared(name []byte) bool {
	for _, key := range s.keys {
		if key.DB == s.db && bytes.Equal(key.Name, name) {
			return true
		}
	}
	return false
}

func (s *Session) checkKeys(r *row, args [][]byte) error {
	var err error
	most := s.engine.config.MaxKeyBytes
	r.keys.eachKey(args, func(key []byte) {
		if len(key) > most {
			err = errKeyTooLong(most)
		}
	})
	return err
}
