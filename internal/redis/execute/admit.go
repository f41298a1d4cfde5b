package execute

import (
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// Admit checks what can be checked of a command, or of its subcommand, before it is executed. The command is
// nil where there is none of that name. The order is Redis's: what the server can do now is only said to
// users that may have it done.
func (x *Executor) Admit(c *catalog.Command, args [][]byte) (*catalog.Command, error) {
	c, err := x.AdmitBegin(c, args, len(args))
	if err != nil {
		return c, err
	}
	if x.User != nil && !x.User.Unrestricted() {
		if err := x.permit(c, args); err != nil {
			return c, err
		}
	}
	if c.Refusal != "" {
		return c, reply.Error("ERR " + c.Refusal)
	}
	if x.bounds != nil {
		if err := x.bounds.admit(c, x.DB, args); err != nil {
			return c, err
		}
	}
	if err := x.Engine.MayUse(c); err != nil {
		return c, err
	}
	if most := x.Engine.Config.MaxKeyBytes; c.Keys.Longest(args) > most {
		return c, reply.KeyTooLong(most)
	}
	return c, nil
}

// AdmitBegin checks what the number of arguments and the first of them tell.
func (x *Executor) AdmitBegin(c *catalog.Command, args [][]byte, count int) (*catalog.Command, error) {
	c, err := x.Find(c, args, count)
	if err != nil {
		return c, err
	}
	if c.Flags&catalog.FlagNoAuth == 0 && !x.Authenticated {
		if x.Greet(); !x.Authenticated { // the password may have been taken away since the client came
			return c, reply.ErrNoAuth
		}
	}
	// There are no rights to a command that is nowhere.
	if c.Refusal != "" && !x.Engine.Config.Catalog.IsRuled(c) {
		return c, reply.Error("ERR " + c.Refusal)
	}
	if c.Flags&x.Forbidden != 0 {
		return c, x.Role.Words().Forbidden()
	}
	return c, nil
}

// Find returns the subcommand that a call of a command is of, or the command. Of its arguments, count with
// its name, it needs the first.
func (x *Executor) Find(c *catalog.Command, args [][]byte, count int) (*catalog.Command, error) {
	if c == nil {
		return nil, x.Role.Words().Unknown(args)
	}
	if c.Subs != nil && len(args) > 1 {
		sub := c.Sub(args[1])
		if sub == nil {
			return nil, x.Role.Words().UnknownSubcommand(c, args[1])
		}
		c = sub
	}
	if !c.AcceptsArity(count) || count > c.Most() {
		return c, x.Role.Words().Arity(c, count)
	}
	return c, nil
}

// Denied says why the user's rules do not allow a command, and notes it.
func (x *Executor) Denied(c *catalog.Command, args [][]byte) (reason acl.Reason, object string, refund bool) {
	if c.Flags&catalog.FlagNoAuth != 0 { // AUTH and its like are everybody's
		return acl.Allowed, "", false
	}
	reason, object, refund = c.Check(x.User, args)
	if reason != acl.Allowed {
		x.noteDenial(acl.Denial{Reason: reason, Object: object, Username: x.User.Name()})
	}
	return reason, object, refund
}

// permit refuses what the user's rules do not allow.
func (x *Executor) permit(c *catalog.Command, args [][]byte) error {
	reason, object, refund := x.Denied(c, args)
	if reason == acl.Allowed {
		return nil
	}
	text := x.Role.Words().Denied(reason, object)
	if refund {
		text += reply.RefundDenied
	}
	return reply.Error(text)
}

// noteDenial adds to ACL LOG.
func (x *Executor) noteDenial(d acl.Denial) {
	d.Context = x.Role.Words().Context()
	nowNs := x.Now()
	d.ClientInfo = x.Client.Line(nowNs)
	x.Engine.Config.ACLLog.Add(nowNs, d)
}

// MayUse refuses what must wait until the store is loaded, and what could not be kept.
func (e *Engine) MayUse(c *catalog.Command) error {
	k := e.Config.Keeper
	switch {
	case k == nil:
		return nil
	case c.Flags&catalog.FlagLoading == 0 && k.Loading():
		return reply.ErrLoading
	case c.Flags&catalog.FlagWrite != 0 && !c.Batches && k.Frozen(): // the store itself knows which calls of a batch change nothing
		return reply.ErrMisconf
	}
	return nil
}

// isFrozen says whether nothing can be kept now. Units that are given back are refused then whatever the key
// is, for their reply does not say whether it has changed, and would wait with those that tell of a change.
func (e *Engine) isFrozen() bool {
	k := e.Config.Keeper
	return k != nil && k.Frozen()
}
