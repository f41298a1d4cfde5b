package session

import (
	"context"
	"slices"
	"sync"

	"cellserver/internal/decide/queue"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/transact"
	"cellserver/internal/store"
)

// runInBackground executes a command in the background, with its own copy of the arguments.
func (r *clientRole) runInBackground(h execute.Handler, slots *background.Slots, args [][]byte) error {
	x := &backgroundCommand{client: (*Session)(r), handler: h, args: args}
	t := r.waitForTask(&r.x, x.finish)
	t.abandoned = x.abandon
	t.Run(slots, who(&r.x), x.run)
	return nil
}

// backgroundCommand is a client's command in the background, for a remote store or for its many arguments.
type backgroundCommand struct {
	client  *Session // waits for the outcome
	handler execute.Handler
	args    [][]byte

	executor *execute.Executor // has executed it
	err      error             // of the handler

	mu    sync.Mutex   // rank 90: guards all below
	turn  *chargedTurn // to wait for; nil if none or taken
	ended bool         // nobody waits for it
}

// chargedTurn is a charged turn that the client has still to wait for.
type chargedTurn struct {
	who       background.Who
	atNs      int64
	key       store.Key
	operation limiter.Operation
}

func (x *backgroundCommand) run(ctx context.Context) {
	e := x.client.engine
	in := e.Live
	if in.NowNs = e.Config.Now(); !e.Can.AtOnce {
		in.All = e.Remote.Walk(ctx)
	}
	s, left := x.client.x.Within(execute.InBackground, backgroundRole{execute.NestedRole{Context: ctx}, x}, &in)
	s.Begin()
	defer s.End()
	x.err = x.handler.Run(s, in.NowNs, x.args)
	x.executor = s
	left.Settle(&x.client.x)
}

// finish replies to the waiting client.
func (x *backgroundCommand) finish(to *execute.Executor) error {
	if turn := x.take(); turn != nil {
		x.await(turn)
		return nil
	}
	if x.err != nil {
		return x.err
	}
	execute.Later(to).TakeOver(x.executor.W.Buf)
	return nil
}

// backgroundRole is the role of a command executed in the background.
type backgroundRole struct {
	execute.NestedRole
	command *backgroundCommand
}

func (backgroundRole) Words() execute.Words { return execute.ClientWords("toplevel") }

// Together may change the requests in each attempt.
func (r backgroundRole) Together(x *execute.Executor, j *execute.Joint) error {
	if x.Engine.Can.AtOnce {
		return r.command.client.x.Role.Together(x, j)
	}
	requests := slices.Clone(j.Batch)
	return x.Engine.Remote.Transact(r.Context, transact.Part{Keys: j.Keys(), Do: func(in *transact.Space) transact.Verdict {
		copy(j.Batch, requests)
		return j.Decide(in)
	}})
}

// Turn lets the client of the command wait.
func (r backgroundRole) Turn(c execute.Call, name []byte, o *limiter.Operation) error {
	if o.Quantity <= 0 {
		return r.NestedRole.Turn(c, name, o)
	}
	client := r.command.client
	if client.engine.Context.Err() != nil { // the server ends
		o.TTLNs = 0
	}
	if err := c.Operate(name, o); err != nil {
		return err
	}
	if o.Result.Limited || o.WaitNs == 0 {
		execute.Result(c.Reply(), &o.Result)
	} else {
		r.command.leave(&chargedTurn{who: who(&client.x), atNs: c.Now(), key: c.Key(name), operation: *o})
	}
	return nil
}

// leave leaves a turn to finish. If nobody waits, it is returned.
func (x *backgroundCommand) leave(turn *chargedTurn) {
	x.mu.Lock()
	ended := x.ended
	if !ended {
		x.turn = turn
	}
	x.mu.Unlock()
	if ended {
		turn.giveBack(x.client.engine, func() {})
	}
}

func (x *backgroundCommand) take() (turn *chargedTurn) {
	x.mu.Lock()
	defer x.mu.Unlock()
	turn, x.turn = x.turn, nil
	return turn
}

// abandon returns a turn for which nobody waits.
func (x *backgroundCommand) abandon() {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	if turn := x.take(); turn != nil {
		turn.giveBack(x.client.engine, func() {})
	}
}

// await lets the client wait for its charged turn.
func (x *backgroundCommand) await(t *chargedTurn) {
	s := x.client
	gone := s.pending.gone
	giveBack := func(then func()) { t.giveBack(s.engine, then) }
	waiter := s.engine.Queue.EnterRemote(t.atNs, &t.operation, s.x.Client.Conn, giveBack)
	s.awaitTurn(&s.x, waiter)
	if gone {
		waiter.Leave(queue.Cancelled)
	}
}

// giveBack returns a turn's charge. If the store fails, the charge stays and drains.
func (t *chargedTurn) giveBack(e *Engine, then func()) {
	r, now := e.Remote, e.Config.Now
	background.New(context.Background(), then).Run(r.Slots, t.who, func(context.Context) {
		o := limiter.Operation{Verb: limiter.GiveBack, DebitNs: t.operation.DebitNs}
		_ = r.Store.Apply(now(), t.key, &o)
	})
}
