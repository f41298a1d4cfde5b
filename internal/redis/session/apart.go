package session

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"cellserver/internal/decide/queue"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// remote is what an Engine has for a store on other machines. Whatever waits for them is done apart: in the background, in its
// turn for slots of its own, of which there are many, as those who have one mostly wait.
type remote struct {
	store   store.Remote
	deputy  Deputy // that it is; nil if it is none
	slots   *background.Slots
	timeout time.Duration
	lanes   *lanes // of transactions
}

const (
	// remoteSlots are about as many as a store of a few machines has connections: more would wait for those, and that counts as time of
	// the store. Measured on one machine: with 256, 50 clients of CL.MTHROTTLE ran into --store-timeout, and with 64 300 did not.
	remoteSlots = 64
	// DefaultStoreTimeout is how long the keys of a transaction may be changed by others before it is given up.
	DefaultStoreTimeout = 50 * time.Millisecond
)

// newRemote returns nil for a store of this machine.
func newRemote(c *Config) *remote {
	on, ok := c.Store.(store.Remote)
	if !ok {
		return nil
	}
	r := &remote{store: on, slots: background.NewSlots(remoteSlots, c.Now), timeout: c.StoreTimeout, lanes: newLanes()}
	r.deputy, _ = c.Store.(Deputy)
	if r.timeout <= 0 {
		r.timeout = DefaultStoreTimeout
	}
	return r
}

// bind returns a command's handler as it is over the store: one that uses it is executed apart.
func (r *remote) bind(c *catalog.Command, h Handler) Handler {
	if h.own != nil || c.Batches || c.Keys.None() && c.Flags&catalog.FlagWhole == 0 {
		return h
	}
	return Handler{own: func(s *Session, args [][]byte) error {
		if s.inner != nil { // it is a part of EXEC, which is executed apart
			return h.run(s, s.space.NowNs, args)
		}
		return s.runApart(h, r.slots, keep(args))
	}}
}

// keep returns arguments that outlast the call. Many are the session's own already: see admitLater.
func keep(args [][]byte) [][]byte {
	if len(args) > resp.LongArgs {
		return args
	}
	return argument.CloneAll(args)
}

// runApart has a command executed in the background, with arguments of its own.
func (s *Session) runApart(h Handler, slots *background.Slots, args [][]byte) error {
	x := &apart{client: s, handler: h, args: args}
	if err := s.inBackground(slots, x.run, x.finish); err != nil {
		return err
	}
	s.pending.abandoned = x.abandon
	return nil
}

// apart is a client's command that is executed in the background, for its store is on other machines or its
// arguments are many.
type apart struct {
	client  *Session // which waits
	handler Handler
	args    [][]byte

	session *Session // what has executed it
	err     error    // its handler's

	mu    sync.Mutex // guards all below
	turn  *apartTurn // that is to be waited for; nil if there is none, and when somebody has taken it
	ended bool       // nobody waits for it any more
}

// apartTurn is a turn that the client has still to wait for: the units have been debited.
type apartTurn struct {
	who       background.Who
	atNs      int64
	key       store.Key
	operation limiter.Operation
}

func (x *apart) run(ctx context.Context) {
	e := x.client.engine
	in := e.live
	if in.NowNs = e.config.Now(); e.remote != nil {
		in.All = &walk{Remote: e.remote.store, ctx: ctx}
	}
	s := x.client.child(ctx, away, &in)
	s.inner.apart = x
	s.w.Buf = make([]byte, headBytes)
	s.borrow()
	defer s.giveBack()
	x.err = x.handler.run(s, s.space.NowNs, x.args)
	x.session = s
	x.client.settle(s.inner)
}

// finish replies on the session that waits.
func (x *apart) finish(s *Session) error {
	if turn := x.take(); turn != nil {
		s.awaitAlone(turn)
		return nil
	}
	if x.err != nil {
		return x.err
	}
	s.takeOver(x.session.w.Buf)
	return nil
}

// leave keeps a turn for finish. Where nobody waits for it any more, it is given back.
func (x *apart) leave(turn *apartTurn) {
	x.mu.Lock()
	ended := x.ended
	if !ended {
		x.turn = turn
	}
	x.mu.Unlock()
	if ended {
		x.client.returnUnits(turn, func() {})
	}
}

func (x *apart) take() (turn *apartTurn) {
	x.mu.Lock()
	defer x.mu.Unlock()
	turn, x.turn = x.turn, nil
	return turn
}

// abandon gives back what nobody waits for any more.
func (x *apart) abandon() {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	if turn := x.take(); turn != nil {
		x.client.returnUnits(turn, func() {})
	}
}

// awaitAlone has the client wait for a turn that it has debited.
func (s *Session) awaitAlone(t *apartTurn) {
	gone := s.pending.gone
	turn := s.engine.room.EnterAlone(t.atNs, &t.operation, s.client.Conn, func(then func()) { s.returnUnits(t, then) })
	s.wait(&pending{turn: turn})
	s.client.Await(turn)
	if gone {
		turn.Leave(queue.Cancelled)
	}
}

// returnUnits gives back what was debited for a turn. If the store fails then, it stays debited, and drains.
func (s *Session) returnUnits(t *apartTurn, then func()) {
	r, now := s.engine.remote, s.engine.config.Now
	background.New(context.Background(), then).Run(r.slots, t.who, func(context.Context) {
		o := limiter.Operation{Verb: limiter.GiveBack, DebitNs: t.operation.DebitNs}
		_ = r.store.Apply(now(), t.key, &o)
	})
}

// transact has something done in transactions until the keys have not been changed by others meanwhile, or its time is over. With
// an error nothing has changed, unless it is a store.Failure that says otherwise.
func (r *remote) transact(ctx context.Context, now func() int64, keys []store.Key, do func(in *transact.Space) transact.Verdict) error {
	within, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	leave, ok := r.lanes.enter(within, keys)
	if ok {
		defer leave()
	}
	for conflicts := 1; ; conflicts++ {
		switch {
		case ctx.Err() != nil:
			return reply.ErrEnded
		case !ok:
			return reply.ErrContended
		}
		nowNs := now()
		tx, err := r.store.Begin(within, nowNs, keys)
		if err != nil && conflicts > 1 && within.Err() != nil { // no more than the end of its time
			return reply.ErrContended
		}
		if err != nil {
			return err
		}
		if do(&transact.Space{Keys: tx, NowNs: nowNs}) != transact.Keep {
			return nil
		}
		if done, err := tx.Commit(within); done || err != nil {
			return err
		}
		if !pause(within, conflicts) && ctx.Err() == nil {
			return reply.ErrContended
		}
	}
}

// conflictPause is how long the first of those that follow a conflict may be, so that those who change the same keys come apart.
const conflictPause = 200 * time.Microsecond

// pause waits for a random time, longer with each conflict, and is false if ctx ends before.
func pause(ctx context.Context, conflicts int) bool {
	timer := time.NewTimer(rand.N(time.Duration(min(conflicts, 10)) * conflictPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
