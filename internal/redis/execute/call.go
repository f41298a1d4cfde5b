package execute

import (
	"context"
	"errors"
	"time"

	"cellserver/internal/decide/queue"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// Call is a running command for its handler: reply, keys, time and deferred work, alike for clients, EXEC and
// scripts. It is valid until the command ends.
type Call struct {
	x     *Executor
	nowNs int64 // 0 in deferred work
}

// Reply returns the writer of the reply.
func (c Call) Reply() *resp.Writer { return &c.x.W }

// OK replies OK.
func (c Call) OK() error { c.x.W.OK(); return nil }

// AmongMessages reports whether the client, by RESP2, expects the messages that it has subscribed to, and so
// replies in their form.
func (c Call) AmongMessages() bool {
	v, ok := c.x.Role.(Conversation)
	return ok && !c.x.W.RESP3 && len(v.Subscribed()) > 0
}

// DB returns the number of the selected database.
func (c Call) DB() uint16 { return c.x.DB }

// Key names a key of the selected database. Like the arguments, the name is part of the driver's buffer.
func (c Call) Key(name []byte) store.Key { return store.Key{DB: c.x.DB, Name: name} }

// Entry returns a key's kind and expiry, and false if it is absent.
func (c Call) Entry(name []byte) (e store.Entry, ok bool, err error) {
	return storeResult(c.x.Space.Keys.Entry(c.Now(), c.Key(name)))
}

// State returns a copy of a key's state.
func (c Call) State(name []byte) (state limiter.State, ok bool, err error) {
	state, ok, err = storeResult(c.x.Space.Keys.State(c.Now(), c.Key(name)))
	c.x.CopiedBytes += len(state.Payload)
	return state, ok, err
}

// TAT returns the Unix time in nanoseconds at which a funnel is empty, and false if the key is absent.
func (c Call) TAT(name []byte) (tatNs int64, ok bool, err error) {
	o := limiter.Operation{Verb: limiter.Look}
	if err = c.x.Space.Keys.Apply(c.Now(), c.Key(name), &o); err != nil {
		return 0, false, reply.StoreFailed(err)
	}
	return o.AtNs, o.Count == 1, nil
}

func storeResult[R any](result R, ok bool, err error) (R, bool, error) {
	if err != nil {
		err = reply.StoreFailed(err)
	}
	return result, ok, err
}

// Apply applies a step to a key's state and leaves the answers in it. It fails for a new key without space,
// or one beyond the limit of the client's address.
func (c Call) Apply(name []byte, step store.Step) error {
	return reply.StoreFailed(c.apply(c.Key(name), step))
}

// apply is Apply with the store's own errors.
func (c Call) apply(key store.Key, step store.Step) error {
	if err := c.x.mayApply(&key, step); err != nil {
		return err
	}
	if err := c.x.Engine.Decider.Apply(c.x.Space.Keys, c.Now(), key, step, &c.x.Scratch.Local); err != nil {
		return err
	}
	c.x.lookAt(key)
	return nil
}

// Operate applies an operation and sets its answers.
func (c Call) Operate(name []byte, o *limiter.Operation) error {
	shared := &c.x.Scratch.operation // avoids an allocation
	*shared = *o
	err := c.Apply(name, shared)
	*o = *shared
	return err
}

// Delete removes keys in one step and returns their number. For a user without the right to CL.RESET
// limiters, each key is a step.
func (c Call) Delete(keys []store.Key) (deleted int, err error) {
	for i := range keys {
		if !c.x.mayRefill(keys[i].Name) {
			return c.deleteValues(keys)
		}
	}
	if deleted, err = c.x.Space.Keys.Delete(c.Now(), keys); err != nil {
		return deleted, reply.StoreFailed(err)
	}
	for _, key := range keys {
		c.x.lookAt(key)
	}
	return deleted, nil
}

// deleteValues deletes keys if none is a limiter that the user must not empty.
func (c Call) deleteValues(keys []store.Key) (deleted int, err error) {
	for i := range keys {
		switch e, found, err := c.Entry(keys[i].Name); {
		case err != nil:
			return 0, err
		case found && e.Kind != limiter.Value && !c.x.mayRefill(keys[i].Name):
			return 0, c.x.denyRefill(keys[i].Name)
		}
	}
	for i := range keys {
		s := store.Setting{When: store.IfFound}
		if err := c.Set(keys[i].Name, &s); err != nil {
			return deleted, err
		}
		if s.Found {
			deleted++
		}
	}
	return deleted, nil
}

// Set applies a setting, which Change permits, and sets its answers.
func (c Call) Set(name []byte, s *store.Setting) error {
	shared := &c.x.Scratch.setting
	*shared = *s
	err := c.Change(name, shared)
	*s = *shared
	*shared = store.Setting{} // payloads would stay alive
	return err
}

// Now returns the Unix time in nanoseconds, constant for a handler, an EXEC or a script.
func (c Call) Now() int64 {
	if c.nowNs == 0 {
		return c.x.Now()
	}
	return c.nowNs
}

// WallTime returns the system clock's time; in EXEC and scripts, Now.
func (c Call) WallTime() time.Time {
	if c.HoldsKeys() {
		return time.Unix(0, c.x.Space.NowNs)
	}
	return c.x.Engine.Config.WallTime()
}

// Keep returns the arguments for background work: copied if they are the driver's.
func (c Call) Keep(args [][]byte) [][]byte {
	if c.x.Mode != OnLoop {
		return args
	}
	return Keep(args)
}

// Keep returns arguments that outlast the call. Those decoded in the background need no copy.
func Keep(args [][]byte) [][]byte {
	if len(args) > resp.LongArgs {
		return args
	}
	return argument.CloneAll(args)
}

// Background runs long work on a goroutine; done then replies. work may use only arguments from Keep. ctx
// ends with the client or the server, and the reply is an error then. EXEC and scripts, already in the
// background, do all at once.
func (c Call) Background(work func(ctx context.Context, nowNs int64), done func(c Call) error) error {
	var ended error
	return c.x.Role.Background(c.x, c.x.Engine.Background, func(ctx context.Context) {
		work(ctx, c.x.Now())
		ended = ctx.Err()
	}, func(x *Executor) error {
		if ended != nil {
			return reply.ErrEnded
		}
		return done(Call{x: x})
	})
}

// HoldsKeys reports whether EXEC or a script makes other clients wait for keys meanwhile.
func (c Call) HoldsKeys() bool { return c.x.Mode.holdsKeys() }

// InBackground reports whether the command runs off the event loops: for a remote store, each call of which
// is a round trip, or for its many arguments.
func (c Call) InBackground() bool { return c.x.Mode == InBackground }

// After replies after a delay, unless the client has disconnected. EXEC and scripts refuse it, as they would
// make others wait.
func (c Call) After(d time.Duration, done func(c Call) error) error {
	return c.x.Role.After(d, func(x *Executor) error { return done(Call{x: x}) })
}

// Until replies when finish is called, from any goroutine, or after atMost unless that is 0, also after the
// client's last command. ctx ends when nobody waits for finish; when the server ends, the reply is an error.
// EXEC and scripts refuse it, as they would make others wait.
func (c Call) Until(begin func(ctx context.Context, finish func()), atMost time.Duration, done func(c Call) error) error {
	return c.x.Role.Until(begin, atMost, done)
}

// AwaitTurn applies an operation Wait and replies its Result in turn, or at once if the turn would come too
// late. EXEC and scripts never wait.
func (c Call) AwaitTurn(name []byte, o *limiter.Operation) error { return c.x.Role.Turn(c, name, o) }

// Later is a Call after its command's end.
func Later(x *Executor) Call { return Call{x: x} }

// EnterQueue charges an operation Wait and returns the client's turn, or nil if it need not or must not wait.
func (x *Executor) EnterQueue(nowNs int64, key store.Key, o *limiter.Operation) (*queue.Waiter, error) {
	if err := x.mayApply(&key, o); err != nil {
		return nil, err
	}
	turn, err := x.Engine.Queue.Enter(nowNs, key, o, x.Client.Conn)
	if err != nil {
		return nil, reply.StoreFailed(err)
	}
	x.Engine.Decider.Applied(nowNs, key, o, &x.Scratch.Local)
	return turn, nil
}

// Together decides requests in one step: all are charged, or none if one is limited, which it reports;
// unless all, each is decided by itself. See decide.Decider.Together for the results. On an error nothing
// has changed.
func (c Call) Together(batch []store.Request, all bool) (limited bool, err error) {
	x := c.x
	if !x.Engine.Transacts() {
		return false, reply.ErrNoTransactions
	}
	if err := x.mayMakeKeys(batch); err != nil {
		return false, err
	}
	j := &x.Scratch.joint // avoids an allocation
	*j = Joint{Batch: batch, x: x, all: all}
	err = x.Role.Together(x, j)
	if j.err != nil {
		err = j.err
	}
	limited = j.limited
	*j = Joint{}
	if err != nil {
		return false, reply.StoreFailed(err)
	}
	x.countNamed(batch)
	x.spend(exactSteps(batch))
	return limited, nil
}

// Joint is a set of requests decided in one step.
type Joint struct {
	Batch []store.Request

	x       *Executor
	all     bool
	limited bool
	err     error

	keys []store.Key // with do
	do   func(in *transact.Space) error
}

// Decide decides the requests in a transaction and drops it if they failed. It may be called repeatedly.
func (j *Joint) Decide(in *transact.Space) transact.Verdict {
	if j.do != nil {
		j.err = j.do(in)
	} else if j.all {
		j.limited, j.err = j.x.Engine.Decider.Together(in.Keys, in.NowNs, j.Batch, &j.x.Scratch.Local)
	} else {
		j.limited, j.err = j.x.Engine.Decider.Each(in.Keys, in.NowNs, j.Batch, &j.x.Scratch.Local)
	}
	switch {
	case j.err == nil:
		return transact.Keep
	case in.Shared && errors.Is(j.err, store.ErrTooLarge):
		return transact.Again
	default:
		return transact.Drop
	}
}

// Keys returns the keys of the requests.
func (j *Joint) Keys() []store.Key {
	if j.do != nil {
		return j.keys
	}
	keys := make([]store.Key, len(j.Batch))
	for i := range j.Batch {
		keys[i] = j.Batch[i].Key
	}
	return keys
}
