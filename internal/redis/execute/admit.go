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
	return c, x.mayUse(c, c.Keys.Longest(args))
}

// admitKey is Admit of a request by value: about a key, or one under the name of a limit. returns reports
// that it returns units. The first of the words is that by which rules may tell calls apart, if it is not the
// name or the key.
func (x *Executor) admitKey(c *catalog.Command, limit, key []byte, returns bool, words ...[]byte) error {
	if err := x.authenticate(c); err != nil {
		return err
	}
	longest := len(key)
	if limit != nil {
		longest += len(limit) + len(":")
	}
	if c.Asks(x.User) {
		first := key
		if limit != nil {
			first, key = limit, catalog.AppendJoined(nil, limit, key)
		}
		if len(words) > 0 {
			first = words[0]
		}
		reason, object, refund := c.CheckKey(x.User, first, key, returns)
		x.noteDenied(reason, object)
		if err := x.denial(c, reason, object, refund); err != nil {
			return err
		}
	}
	return x.mayUse(c, longest)
}

// mayUse refuses what the server's state or the length of the longest key forbids.
func (x *Executor) mayUse(c *catalog.Command, longest int) error {
	if err := x.Engine.MayUse(c); err != nil {
		return err
	}
	if most := x.Engine.Config.MaxKeyBytes; longest > most {
		return reply.KeyTooLong(most)
	}
	return nil
}

// AdmitBegin checks the number of arguments and the first of them.
func (x *Executor) AdmitBegin(c *catalog.Command, args [][]byte, count int) (*catalog.Command, error) {
	c, err := x.Find(c, args, count)
	if err != nil {
		return c, err
	}
	if err := x.authenticate(c); err != nil {
		return c, err
	}
	// Commands that exist nowhere have no access rules.
	if c.Refusal != "" && !x.Engine.Config.Catalog.IsRuled(c) {
		return c, reply.Error("ERR " + c.Refusal)
	}
	if by := c.Flags & x.Forbidden; by != 0 {
		return c, x.Role.Words().Forbidden(by)
	}
	return c, nil
}

// authenticate refuses a command of nobody known.
func (x *Executor) authenticate(c *catalog.Command) error {
	if c.Flags&catalog.FlagNoAuth == 0 && !x.Authenticated() {
		if x.Greet(); !x.Authenticated() { // the password may have changed since the client connected
			return reply.ErrNoAuth
		}
	}
	return nil
}

// Find returns the subcommand of a call, or the command. It reads the first argument; count includes the
// name.
func (x *Executor) Find(c *catalog.Command, args [][]byte, count int) (*catalog.Command, error) {
	if c == nil {
		return nil, x.Role.Words().Unknown(x.Engine.Config.Catalog, args)
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
	x.noteDenied(reason, object)
	return reason, object, refund
}

// noteDenied logs a denial by the user's rules.
func (x *Executor) noteDenied(reason acl.Reason, object string) {
	if reason != acl.Allowed {
		x.noteDenial(acl.Denial{Reason: reason, Object: object, Username: x.User.Name()})
	}
}

// permit refuses a command that the user's rules deny.
func (x *Executor) permit(c *catalog.Command, args [][]byte) error {
	reason, object, refund := x.Denied(c, args)
	return x.denial(c, reason, object, refund)
}

// denial returns the error of a denied command, nil for an allowed one.
func (x *Executor) denial(c *catalog.Command, reason acl.Reason, object string, refund bool) error {
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
