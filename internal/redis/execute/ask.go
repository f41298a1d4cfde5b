package execute

import (
	"cmp"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Continue executes the rest of what is asked, or what the turn has room for. It stops before a part that
// must wait.
func (x *Executor) Continue() {
	if !x.Asked.Left() || x.Status != peer.NeedInput {
		return
	}
	switch a := x.Asked.(type) {
	case *decide.Requests:
		x.requests(a)
	case *decide.Together:
		x.together(a)
	case *decide.Operation:
		x.operation(a)
	case *decide.Budget:
		x.budget(a)
	}
}

// words are those of the command that is like a request.
func (x *Executor) words(q *decide.Request) [][]byte {
	return q.Words(x.Client.Peer.Door == peer.GRPC)
}

func (x *Executor) requests(r *decide.Requests) {
	for r.Left() && x.Status == peer.NeedInput {
		q, i := r.Next()
		if i == 0 {
			r.Limits = x.Engine.Config.NamedLimits.Limits()
		}
		if !x.batchRequest(q, &r.Limits) {
			return
		}
		r.Advance()
	}
}

// batchRequest is Batch for a request that is a value.
func (x *Executor) batchRequest(q *decide.Request, limits *namedlimit.Limits) (done bool) {
	c := x.Lookup([]byte(q.Command))
	if err := x.admitKey(c, q.Limit, q.Key, q.Quantity < 0); err != nil {
		if !x.Flush() {
			return false
		}
		x.refuse(c, x.words(q), err)
		return true
	}
	to, ok := x.begin(c)
	if !ok {
		return false
	}
	err := x.fill(c, to, q, limits, &x.Scratch.names.Joined)
	if err == nil {
		err = x.enter(to)
	}
	if err != nil && !x.Flush() {
		return false
	}
	if err != nil {
		x.failBatched(c, x.words(q), err)
	}
	if x.Monitored {
		x.Tell(c, x.words(q))
	}
	return true
}

// fill makes the store's request.
func (x *Executor) fill(c *catalog.Command, to *store.Request, q *decide.Request, limits *namedlimit.Limits, joined *[]byte) (err error) {
	if q.Limit == nil {
		if err = argument.Own(to, x.DB, &q.Spec, q.Key, q.Quantity); c.Name == "cl.throttle" {
			err = reply.InCell(err)
		}
	} else {
		q.Policy, err = argument.Named(limits, to, x.DB, q.Limit, q.Key, q.Quantity, q.Spec.Flags, joined)
		if err != nil && q.Quantity != 0 && limits.Lookup(q.Limit) == nil {
			err = cmp.Or(x.Engine.refusal(), err) // the leader may have the limit
		}
	}
	if err == nil {
		precise(to, q.Precise)
	}
	return err
}

// precise has a request answered in milliseconds, with the results of a named limit's rules.
func precise(q *store.Request, in *limiter.Precise) {
	q.Rule.Unit = funnel.Milliseconds
	if n, ok := q.Rule.Shared.(*limiter.NamedLimit); ok {
		q.Rule.Shared = n.Precise(in)
	}
}

func (x *Executor) together(t *decide.Together) {
	t.Begin()
	t.Batch = make([]store.Request, len(t.All))
	t.Limits = x.Engine.Config.NamedLimits.Limits()
	var joined []byte
	for i := range t.All {
		q := &t.All[i]
		c := x.Lookup([]byte(q.Command))
		err := x.admitKey(c, q.Limit, q.Key, q.Quantity < 0)
		if err == nil {
			err = x.fill(c, &t.Batch[i], q, &t.Limits, &joined)
		}
		if err == nil && q.Quantity < 0 {
			err = reply.Error("ERR quantity must be at least 0 where several are decided in one step")
		}
		if err != nil {
			x.refuse(c, x.words(q), err)
			return
		}
	}
	x.operate(x.Engine.Config.Catalog.Lookup([]byte(decide.TogetherCommand)), func(c Call) error {
		_, err := c.Together(t.Batch, !t.Each)
		return err
	})
	for i := range t.All {
		if q := &t.All[i]; x.Monitored {
			x.Tell(x.Lookup([]byte(q.Command)), x.words(q))
		}
	}
}

func (x *Executor) operation(o *decide.Operation) {
	o.Begin()
	c := x.Engine.Config.Catalog.LookupFull([]byte(o.Command))
	said := o.Words(false)
	if err := x.admitKey(c, nil, o.Key, false, said[1:]...); err != nil {
		x.refuse(c, said, err)
		return
	}
	if o.Do == decide.Admit {
		return
	}
	x.operate(c, func(c Call) error {
		switch o.Do {
		case decide.Apply:
			return c.Apply(o.Key, o.Step)
		case decide.Delete:
			n, err := c.Delete([]store.Key{c.Key(o.Key)})
			o.Deleted = n > 0
			return err
		case decide.Read:
			o.MayRead = x.mayRead
			return nil
		default:
			return o.Refusal
		}
	})
	if x.Monitored {
		x.Tell(c, said)
	}
}

func (x *Executor) budget(b *decide.Budget) {
	b.Begin()
	c := x.Engine.Config.Catalog.Lookup([]byte(b.Verb.Command()))
	said := b.Words(x.Client.Peer.Door == peer.GRPC) // the call may get an id
	for i := range b.All {
		if err := x.admitPair(c, b, i, said); err != nil {
			x.refuse(c, said, err)
			return
		}
	}
	x.operate(c, func(c Call) error { return c.budget(b) })
	if x.Monitored {
		x.Tell(c, said)
	}
}

// admitPair admits a pair of a call about a hold. A limit of the caller's own needs the rights of its own
// command, as without a hold.
func (x *Executor) admitPair(c *catalog.Command, b *decide.Budget, i int, said [][]byte) error {
	q := &b.All[i]
	if !b.Own {
		return x.admitKey(c, q.Limit, q.Key, false, said[1])
	}
	if err := x.admitKey(x.Lookup([]byte(q.Command)), nil, q.Key, false); err != nil {
		return err
	}
	return x.Engine.MayUse(c)
}

// operate executes a part of what is asked, as a command. do may be called in the background.
func (x *Executor) operate(c *catalog.Command, do func(c Call) error) {
	h := Plain(func(c Call, _ [][]byte) error {
		err := do(c)
		if err == nil {
			c.x.Settle() // in the background the session does it
		}
		return err
	})
	x.CallBy(h.Like(x.Engine.Handlers[c.ID]), c, nil)
}

// Settle settles an operation that has been done.
func (x *Executor) Settle() {
	if x.Asked != nil {
		x.Asked.Settle()
	}
}

// FailLate replaces decisions between two positions, which have not reached the disk in time.
func (x *Executor) FailLate(from, to int) {
	for range to - from {
		x.noteError(observe.ErrorReply{Text: string(reply.ErrUnconfirmed), By: x.Client})
	}
	x.Asked.Late(from, to, reply.ErrUnconfirmed)
}

// Shown returns a command as SLOWLOG shows it: its arguments, or the words of what is asked by value.
func (x *Executor) Shown(c *catalog.Command, args [][]byte) []string {
	if x.Asked != nil {
		args = x.Asked.Words(x.Client.Peer.Door == peer.GRPC)
	}
	return observe.ShortArgs(observe.Redacted(c, args))
}

// refuse replies to a command that is not admitted.
func (x *Executor) refuse(c *catalog.Command, args [][]byte, err error) {
	x.Reject(c, args)
	x.Client.Sent(c)
	x.Fail(c, args, err)
}
