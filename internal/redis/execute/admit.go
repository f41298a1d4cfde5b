package session

import (
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// admit checks what can be checked of a command, or of its subcommand, before it is executed. The command is
// nil where there is none of that name. The order is Redis's: what the server can do now is only said to
// users that may have it done.
func (s *Session) admit(c *catalog.Command, args [][]byte) (*catalog.Command, error) {
	c, err := s.admitBegin(c, args, len(args))
	if err != nil {
		return c, err
	}
	if s.user != nil && !s.user.Unrestricted() {
		if err := s.permit(c, args); err != nil {
			return c, err
		}
	}
	if c.Refusal != "" {
		return c, reply.Error("ERR " + c.Refusal)
	}
	if s.role == inScript {
		if err := s.admitInScript(c, args); err != nil {
			return c, err
		}
	}
	if err := s.mayUseStore(c); err != nil {
		return c, err
	}
	return c, s.checkKeys(c, args)
}

// admitBegin checks what the number of arguments and the first of them tell.
func (s *Session) admitBegin(c *catalog.Command, args [][]byte, count int) (*catalog.Command, error) {
	c, err := s.find(c, args, count)
	if err != nil {
		return c, err
	}
	if c.Flags&catalog.FlagNoAuth == 0 && !s.mayExecute() {
		return c, reply.ErrNoAuth
	}
	// There are no rights to a command that is nowhere.
	if c.Refusal != "" && !s.engine.config.Catalog.IsRuled(c) {
		return c, reply.Error("ERR " + c.Refusal)
	}
	if s.multi != nil && c.Flags&catalog.FlagNoMulti != 0 {
		return c, reply.ErrNotInMulti
	}
	// A script may hold keys, too.
	if s.role == inScript && c.Flags&(catalog.FlagNoScript|catalog.FlagNotWithKeys) != 0 {
		return c, reply.ErrNotInScript
	}
	return c, nil
}

// mayExecute reports whether the client has authenticated, or need not any more: the password may have been taken away
// since it came.
func (s *Session) mayExecute() bool {
	if !s.authenticated {
		s.greet()
	}
	return s.authenticated
}

// find returns the subcommand that a call of a command is of, or the command. Of its arguments, count with
// its name, it needs the first.
func (s *Session) find(c *catalog.Command, args [][]byte, count int) (*catalog.Command, error) {
	if c == nil {
		if s.role == inScript {
			return nil, reply.ErrUnknownInScript
		}
		return nil, reply.UnknownCommand(args)
	}
	if c.Subs != nil && len(args) > 1 {
		sub := c.Sub(args[1])
		if sub == nil && s.role == inScript {
			return nil, reply.ErrUnknownInScript
		}
		if sub == nil {
			return nil, reply.UnknownSubcommand(c, args[1])
		}
		c = sub
	}
	if !c.AcceptsArity(count) || count > c.Most() {
		switch {
		case s.role == inScript:
			return c, reply.ErrArityInScript
		case count > c.Most() && c.Refusal == "":
			return c, reply.TooManyArguments(c)
		case !c.AcceptsArity(count):
			return c, reply.Arity(c)
		}
	}
	return c, nil
}

// admitInScript refuses what a script must not do, whoever its client is.
func (s *Session) admitInScript(c *catalog.Command, args [][]byte) error {
	switch {
	case c.Flags&catalog.FlagWhole != 0:
		return reply.ErrWholeInScript
	case c.Flags&catalog.FlagWrite != 0 && s.inner.readOnly:
		return reply.ErrReadOnlyScript
	}
	var err error
	c.Keys.Each(args, func(name []byte) {
		if !s.inner.declared.has(s.db, name) {
			err = reply.Undeclared(name)
		}
	})
	return err
}

// denied says why the user's rules do not allow a command, and notes it.
func (s *Session) denied(c *catalog.Command, args [][]byte) (reason acl.Reason, object string, refund bool) {
	if c.Flags&catalog.FlagNoAuth != 0 { // AUTH and its like are everybody's
		return acl.Allowed, "", false
	}
	reason, object, refund = c.Check(s.user, args)
	if reason != acl.Allowed {
		s.noteDenial(acl.Denial{Reason: reason, Object: object, Username: s.user.Name()})
	}
	return reason, object, refund
}

// permit refuses what the user's rules do not allow.
func (s *Session) permit(c *catalog.Command, args [][]byte) error {
	reason, object, refund := s.denied(c, args)
	var text string
	switch {
	case reason == acl.Allowed:
		return nil
	case s.role == inScript && reason == acl.DeniedCommand:
		text = "ERR The user executing the script can't run this command or subcommand"
	case s.role == inScript:
		text = "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"
	case reason == acl.DeniedCommand:
		text = "NOPERM this user has no permissions to run the '" + object + "' command"
	default:
		text = "NOPERM this user has no permissions to access one of the keys used as arguments"
	}
	if refund {
		text += reply.RefundDenied
	}
	return reply.Error(text)
}

// noteDenial adds to ACL LOG.
func (s *Session) noteDenial(d acl.Denial) {
	d.Context = "toplevel"
	switch {
	case s.role == inScript:
		d.Context = "lua"
	case s.role == inExec || s.multi != nil:
		d.Context = "multi"
	}
	nowNs := s.now()
	d.ClientInfo = s.client.Line(nowNs)
	s.engine.config.ACLLog.Add(nowNs, d)
}

func (s *Session) checkKeys(c *catalog.Command, args [][]byte) error {
	if most := s.engine.config.MaxKeyBytes; c.Keys.Longest(args) > most {
		return reply.KeyTooLong(most)
	}
	return nil
}
