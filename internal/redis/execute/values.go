package execute

import (
	"errors"

	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
)

// sinkBytes is the size of a Scratch's buffer for texts; longer ones are copied by themselves.
const sinkBytes = 16 << 10

// KeepsValues reports whether the store has values; one on other machines has only limiters.
func (c Call) KeepsValues() bool { return c.x.Engine.Can.Texts }

// prepareValue completes a batched request about a value.
func (x *Executor) prepareValue(q *store.Request) {
	if !q.Rule.Writes() {
		if !x.Engine.Can.Texts { // has no texts, and may answer later
			return
		}
		if x.Scratch.sink.Texts == nil {
			x.Scratch.sink.Texts = make([]byte, 0, sinkBytes)
		}
		q.Rule.Read(&x.Scratch.sink)
		return
	}
	if x.mustExpire() {
		q.Rule.Flags |= limiter.MustExpire
	}
	x.noteEndless(&q.Key)
}

// replyValue replies to a request about a value.
func (x *Executor) replyValue(q *store.Request) error {
	switch r := &q.Result; r.Remaining {
	case limiter.Number:
		if q.Rule.Writes() {
			x.W.Int(r.Limit)
			return nil
		}
		x.W.BulkInt(r.Limit)
	case limiter.Pair:
		x.W.Array(2)
		x.W.Int(r.Limit)
		x.W.Int(r.RetryAfter)
	case limiter.Text:
		x.W.Bulk(x.Scratch.sink.Texts[r.Limit : r.Limit+r.RetryAfter])
	case limiter.LongText:
		return reply.StoreFailed(x.replyText(q))
	default:
		x.W.Null()
	}
	return nil
}

// ReplyString replies as GET does: a value, a funnel's TAT, null for an absent key, or WRONGTYPE.
func ReplyString(w *resp.Writer, s *limiter.State, found bool, nowNs int64) error {
	switch {
	case !found:
		w.Null()
	case s.Kind == limiter.Value:
		var digits [20]byte
		w.Bulk(limiter.ValueText(digits[:0], s))
	default:
		tatNs, err := s.TAT(nowNs)
		if err != nil {
			return reply.ErrWrongType
		}
		w.BulkInt(tatNs)
	}
	return nil
}

// Change is Apply for steps that may move, replace or remove any key: for a limiter's, the user needs the
// right to CL.RESET it, which is in @refill.
func (c Call) Change(name []byte, step store.Step) error {
	return c.change(name, step, !c.x.mayRefill(name))
}

// ChangeValue is Apply for steps that leave limiters as they are.
func (c Call) ChangeValue(name []byte, step store.Step) error { return c.change(name, step, false) }

func (c Call) change(name []byte, step store.Step, onlyValues bool) error {
	x, key := c.x, c.Key(name)
	x.noteEndless(&key)
	mustExpire := x.mustExpire()
	if !onlyValues && !mustExpire {
		return c.Apply(name, step)
	}
	err := c.apply(key, &limiter.Careful{Step: step, OnlyValues: onlyValues, MustExpire: mustExpire})
	if errors.Is(err, limiter.ErrNotValue) {
		return x.denyRefill(name)
	}
	return reply.StoreFailed(err)
}

// mayRefill reports whether the user may empty a limiter of that name.
func (x *Executor) mayRefill(name []byte) bool {
	if x.User == nil || x.User.Unrestricted() {
		return true
	}
	reset := x.Engine.reset
	reason, _, _ := reset.Check(x.User, [][]byte{[]byte(reset.Name), name})
	return reason == acl.Allowed
}

// denyRefill returns the denial of a change of a limiter's key, and logs it.
func (x *Executor) denyRefill(name []byte) error {
	if x.Mode == InProgram {
		return errProgram
	}
	reason, object, _ := x.Denied(x.Engine.reset, [][]byte{[]byte(x.Engine.reset.Name), name})
	return reply.Error(x.Role.Words().Denied(reason, object) + reply.RefillDenied)
}

// mustExpire reports whether values without an expiry are refused at once. In EXEC and scripts they may get
// one later.
func (x *Executor) mustExpire() bool { return x.Engine.Config.RequireTTL && !x.Mode.holdsKeys() }

// noteEndless notes a key that EXEC or a script may make a value that never expires.
func (x *Executor) noteEndless(key *store.Key) {
	if !x.Engine.Config.RequireTTL || !x.Mode.holdsKeys() {
		return
	}
	if e, found, err := x.Space.Keys.Entry(x.Now(), *key); err == nil && (!found || !isEndless(e)) {
		x.Endless = append(x.Endless, store.Key{DB: key.DB, Name: append([]byte(nil), key.Name...)})
	}
}

func isEndless(e store.Entry) bool {
	return e.Kind == limiter.Value && e.ExpiresNs == limiter.NeverNs
}

// CheckEndless refuses values that EXEC or a script has left without an expiry.
func (x *Executor) CheckEndless() error {
	for _, key := range x.Endless {
		if e, found, err := x.Space.Keys.Entry(x.Now(), key); err == nil && found && isEndless(e) {
			return reply.ErrEndless
		}
	}
	return nil
}

// OnKeys runs do in one step on keys, whose writes are dropped on an error.
func (c Call) OnKeys(keys []store.Key, do func() error) error {
	x := c.x
	if !x.Engine.Transacts() {
		return reply.ErrNoTransactions
	}
	j := &Joint{x: x, keys: keys, do: func(in *transact.Space) error {
		around := x.Space
		defer func() { x.Space = around }()
		x.Space = in
		return do()
	}}
	if err := x.Role.Together(x, j); err != nil {
		return reply.StoreFailed(err)
	}
	return j.err
}
