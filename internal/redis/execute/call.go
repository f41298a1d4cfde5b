package execute

import (
	"context"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// Call is a command that is executed, for its handler: the reply, the keys, the time, and what is done later. It is the
// same in EXEC and in scripts, and is valid until the command is done.
type Call struct {
	x     *Executor
	nowNs int64 // 0 for what is asked later
}

// Reply is what the client is sent.
func (c Call) Reply() *resp.Writer { return &c.x.W }

// DB is the number of the database that the client has selected.
func (c Call) DB() uint16 { return c.x.DB }

// Key names a key of the client's database. The name is a slice of the driver's buffer, as the arguments are.
func (c Call) Key(name []byte) store.Key { return store.Key{DB: c.x.DB, Name: name} }

// Entry returns of what kind a key is and when it expires, and false if the key is absent.
func (c Call) Entry(name []byte) (e store.Entry, ok bool, err error) {
	return storeResult(c.x.Space.Keys.Entry(c.Now(), c.Key(name)))
}

// State returns a key's state, and false if the key is absent.
func (c Call) State(name []byte) (state limiter.State, ok bool, err error) {
	return storeResult(c.x.Space.Keys.State(c.Now(), c.Key(name)))
}

// TAT returns the time at which a funnel will be empty, in Unix nanoseconds, and false if the key is absent.
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

// Apply does a step to a key's state, which has its answers then. It fails where that would make a key that
// has no room, or one more than the client's address may make.
func (c Call) Apply(name []byte, step store.Step) error {
	key := c.Key(name)
	if err := c.x.mayApply(&key, step); err != nil {
		return err
	}
	if err := c.x.Engine.Decider.Apply(c.x.Space.Keys, c.Now(), key, step, &c.x.Scratch.Local); err != nil {
		return reply.StoreFailed(err)
	}
	c.x.lookAt(key)
	return nil
}

// Operate applies an operation, and sets the answers in o.
func (c Call) Operate(name []byte, o *limiter.Operation) error {
	shared := &c.x.Scratch.operation // or each would be left to the collector
	*shared = *o
	err := c.Apply(name, shared)
	*o = *shared
	return err
}

// Delete removes keys as one step and returns how many there were.
func (c Call) Delete(keys []store.Key) (deleted int, err error) {
	if deleted, err = c.x.Space.Keys.Delete(c.Now(), keys); err != nil {
		return deleted, reply.StoreFailed(err)
	}
	for _, key := range keys {
		c.x.lookAt(key)
	}
	return deleted, nil
}

// SetState applies a store.Setting, and returns what State would have returned before.
func (c Call) SetState(name []byte, s limiter.State, when store.Condition) (before limiter.State, found bool, err error) {
	shared := &c.x.Scratch.setting
	*shared = store.Setting{To: s, When: when}
	err = c.Apply(name, shared)
	before, found = shared.Before, shared.Found
	*shared = store.Setting{} // or the payloads would be kept alive
	return before, found, err
}

// Now is the time in Unix nanoseconds: one for a handler, and one for all of EXEC or of a script.
func (c Call) Now() int64 {
	if c.nowNs == 0 {
		return c.x.Now()
	}
	return c.nowNs
}

// WallTime is the time of the system's clock; in EXEC and in scripts it is Now.
func (c Call) WallTime() time.Time {
	if c.x.HoldsKeys {
		return time.Unix(0, c.x.Space.NowNs)
	}
	return c.x.Engine.Config.WallTime()
}

// Keep returns arguments as they may be kept for work in the background: copied, if they are the driver's.
func (c Call) Keep(args [][]byte) [][]byte {
	if c.x.Away || c.x.HoldsKeys {
		return args
	}
	return Keep(args)
}

// Keep returns arguments that outlast the call. Many are the session's own already: it has decoded them in the background.
func Keep(args [][]byte) [][]byte {
	if len(args) > resp.LongArgs {
		return args
	}
	return argument.CloneAll(args)
}

// Background has work done on a goroutine of its own, for it may take long; done replies when it has ended.
// The arguments are work's only as Keep returns them. ctx ends when the client is gone or the server ends,
// and then the reply is an error. In EXEC and in scripts all is done at once, for they run in the background
// already.
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

// HoldsKeys reports whether others may wait for keys until the command is done, as it is a part of EXEC or of a script.
func (c Call) HoldsKeys() bool { return c.x.HoldsKeys }

// IsAway reports whether this is not an event loop, as the store is on other machines, and each call of it a
// round trip, or as the command has many arguments.
func (c Call) IsAway() bool { return c.x.Away }

// After replies when a time has passed, unless the client has gone. EXEC and scripts refuse it: others would wait.
func (c Call) After(d time.Duration, done func(c Call) error) error {
	return c.x.Role.After(d, func(x *Executor) error { return done(Call{x: x}) })
}

// Until replies when what begin has begun calls finish, which it may do from any goroutine, or when a time other than 0 has
// passed. A client that sends no more is replied to, too. ctx ends when nobody waits for finish any more; where the server
// ends, the reply is an error. EXEC and scripts refuse it: others would wait.
func (c Call) Until(begin func(ctx context.Context, finish func()), atMost time.Duration, done func(c Call) error) error {
	return c.x.Role.Until(begin, atMost, done)
}

// AwaitTurn does an operation Wait, and replies its Result when its turn has come, or at once if that would not be within its
// time. In EXEC and in scripts it does not wait, for others would, too: as if it had no time.
func (c Call) AwaitTurn(name []byte, o *limiter.Operation) error { return c.x.Role.Turn(c, name, o) }

// Later is a call whose command is done.
func Later(x *Executor) Call { return Call{x: x} }
