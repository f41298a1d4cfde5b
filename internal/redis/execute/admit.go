package execute

import (
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// Admit runs all checks before a command, or its subcommand, is executed. It returns nil for an unknown
// command. The order is Redis's: only permitted users learn the server's state.
func (x *Executor) Admit(c *catalog.Command, args [][]byte) (*catalog.Command, error) {
	c, err := x.AdmitBegin(c, args, len(args))
	if err != nil {
		return c, err
	}
	if x.User != nil && c.Asks(x.User) {
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

// AdmitBegin checks the number of arguments and the first of them.
func (x *Executor) AdmitBegin(c *catalog.Command, args [][]byte, count int) (*catalog.Command, error) {
	c, err := x.Find(c, args, count)
	if err != nil {
		return c, err
	}
	if c.Flags&catalog.FlagNoAuth == 0 && !x.Authenticated {
		if x.Greet(); !x.Authenticated { // the password may have changed since the client connected
			return c, reply.ErrNoAuth
		}
	}
	// Commands that exist nowhere have no access rules.
	if c.Refusal != "" && !x.Engine.Config.Catalog.IsRuled(c) {
		return c, reply.Error("ERR " + c.Refusal)
	}
	if c.Flags&x.Forbidden != 0 {
		return c, x.Role.Words().Forbidden()
	}
	return c, nil
}

// Find returns the subcommand of a call, or the command. It reads the first argument; count includes the
// name.
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

// Denied returns the reason why the user's rules deny the command, and logs it.
func (x *Executor) Denied(c *catalog.Command, args [][]byte) (reason acl.Reason, object string, refund bool) {
	if c.Flags&catalog.FlagNoAuth != 0 { // AUTH and its like are for everybody
		return acl.Allowed, "", false
	}
	reason, object, refund = c.Check(x.User, args)
	if reason != acl.Allowed {
		x.noteDenial(acl.Denial{Reason: reason, Object: object, Username: x.User.Name()})
	}
	return reason, object, refund
}

// permit refuses a command that the user's rules deny.
func (x *Executor) permit(c *catalog.Command, args [][]byte) error {
	reason, object, refund := x.Denied(c, args)
	if reason == acl.Allowed {
		return nil
	}
	text := x.Role.Words().Denied(reason, object)
	if refund {
		text += reply.RefundDenied(c)
	}
	return reply.Error(text)
}

func (x *Executor) noteDenial(d acl.Denial) {
	d.Context = x.Role.Words().Context()
	nowNs := x.Now()
	d.ClientInfo = x.Client.Line(nowNs)
	x.Engine.Config.ACLLog.Add(nowNs, d)
}

// MayUse refuses commands that must wait for loading, and changes while they are refused or held.
func (e *Engine) MayUse(c *catalog.Command) error {
	if g := e.Config.Gate; g.Interferes() {
		switch {
		case c.Flags&catalog.FlagLoading == 0 && g.Loading():
			return reply.ErrLoading
		case c.Flags&catalog.FlagWrite != 0 && g.Holds():
			return reply.ErrHeld
		}
	}
	if c.Flags&catalog.FlagWrite != 0 && !c.Batches { // the store itself tells which calls of a batch change nothing
		return e.refusal()
	}
	return nil
}

// refusal returns why changes are refused now, or nil. Refunds are then refused on every key: their replies
// do not say whether the key has changed, and would wait like a change's.
func (e *Engine) refusal() error {
	if err := e.Config.Gate.Refusal(); err != nil {
		return reply.StoreFailed(err)
	}
	return nil
}
