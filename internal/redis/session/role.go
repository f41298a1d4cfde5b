package session

import (
	"context"
	"sync/atomic"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/queue"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

var (
	_ execute.Role         = (*clientRole)(nil)
	_ execute.Conversation = (*clientRole)(nil)
)

// clientRole is a Session as execute.Role for the client's own commands. The type keeps its methods from
// drivers; a conversion costs nothing.
type clientRole Session

func (r *clientRole) Words() execute.Words {
	if r.multi != nil {
		return execute.ClientWords("multi")
	}
	return execute.ClientWords("toplevel")
}

func (r *clientRole) Now(*execute.Executor) int64 { return r.engine.Config.Now() }

func (r *clientRole) Run(x *execute.Executor, c *catalog.Command, h execute.Handler, beganNs int64, args [][]byte) error {
	x.Client.Active(c, beganNs)
	switch {
	case h.WaitsForStore():
		return r.runInBackground(h, r.engine.Remote.Slots, execute.Keep(args))
	case r.ownBytes > 0 && h.Own == nil:
		return r.runInBackground(h, r.engine.Background, args)
	}
	return h.Run(x, beganNs, args)
}

// Deferred notes the counters of an unfinished command.
func (r *clientRole) Deferred(c *catalog.Command, args [][]byte, beganNs int64) bool {
	p := r.pending
	if p == nil {
		return false
	}
	r.x.Scratch.Local.Called(c, 1)
	of := &p.of
	of.command, of.beganNs, of.handlerNs = c, beganNs, of.handedNs-beganNs
	if _, isBatch := p.wait.(*batch); !isBatch && p.argsBytes == 0 {
		bytes := r.ownBytes
		switch {
		case r.x.Asked != nil:
			bytes = r.x.Asked.Bytes()
		case bytes == 0:
			bytes = argument.Memory(args)
		}
		r.holdArguments(r.x.Client, bytes) // at most; the handler has copied the rest
	}
	if _, isTurn := p.wait.(turn); isTurn {
		r.holdArguments(r.x.Client, queue.WaiterBytes)
	}
	if r.engine.Config.Records.Slowness.Any() {
		of.args = r.x.Shown(c, args)
	}
	return true
}

func (r *clientRole) Decide(x *execute.Executor, c *catalog.Command, requests []store.Request) *decide.Later {
	nowNs := x.Engine.Config.Now()
	x.Client.Active(c, nowNs)
	return x.Engine.Decider.Batch(x.Space.Keys, nowNs, requests, x.By(c))
}

func (r *clientRole) Await(later *decide.Later, answered execute.Answered) {
	r.wait(&r.x, &batch{later, answered})
	later.Notify(r.x.Client.Conn.Wake)
}

func (r *clientRole) Together(_ *execute.Executor, j *execute.Joint) error {
	r.engine.Stage.Hold(j.Keys(), j.Decide)
	return nil
}

func (r *clientRole) Turn(c execute.Call, name []byte, o *limiter.Operation) error {
	if o.Quantity <= 0 {
		return execute.NestedRole{}.Turn(c, name, o)
	}
	waiter, err := r.x.EnterQueue(c.Now(), c.Key(name), o)
	if err != nil {
		return err
	}
	if waiter == nil {
		execute.Result(c.Reply(), &o.Result)
		return nil
	}
	r.awaitTurn(&r.x, waiter)
	return nil
}

// Background runs work on a goroutine, so that the driver can serve others. work may use arguments only if it
// has copied them.
func (r *clientRole) Background(_ *execute.Executor, slots *background.Slots, work func(context.Context), finish execute.Finish) error {
	r.waitForTask(&r.x, finish).Run(slots, who(&r.x), work)
	return nil
}

func (r *clientRole) InTurns(x *execute.Executor, next execute.Pieces) {
	if held := x.AppendPieces(next); held > 0 {
		r.wait(x, &pieces{next: next})
		x.Status = peer.More
		x.Client.Hold(clients.Pieces, held)
	}
}

func (r *clientRole) Replies() bool { return (*Session)(r).pieces() != nil }

func (r *clientRole) After(d time.Duration, finish execute.Finish) error {
	r.waitForTask(&r.x, finish).After(d)
	return nil
}

func (r *clientRole) AfterPause(d time.Duration, err error) error {
	t := r.waitForTask(&r.x, func(*execute.Executor) error {
		r.pending.of.beganNs, r.pending.of.workNs = r.engine.Config.Now(), 0
		return err
	})
	t.stays = true
	t.After(d)
	return nil
}

func (r *clientRole) Until(begin func(ctx context.Context, finish func()), atMost time.Duration, done func(c execute.Call) error) error {
	var ended atomic.Bool
	t := r.waitForTask(&r.x, func(x *execute.Executor) error {
		of := &r.pending.of
		of.beganNs, of.workNs = r.engine.Config.Now()-of.handlerNs, 0 // waiting was its purpose
		if ended.Load() {
			return reply.ErrEnded
		}
		return done(execute.Later(x))
	})
	t.stays = true
	if atMost > 0 {
		t.After(atMost)
	}
	server := r.engine.Context
	context.AfterFunc(t.Context(), func() {
		ended.Store(server.Err() != nil)
		t.Finish()
	})
	begin(t.Context(), t.Finish)
	return nil
}

func (r *clientRole) Discard() { (*Session)(r).discard() }

// executeMuted executes a command without a reply, unless it turns replies on. No batch precedes it: turning
// replies off has flushed it. The skip ends before the command runs, as EXEC may be in the background when
// the next one is due.
func (s *Session) executeMuted(dispatch func()) {
	before := len(s.x.W.Buf)
	if s.x.Replies == execute.RepliesSkipNext {
		s.x.Replies = execute.RepliesSkipping
	}
	untold(&s.x, func() {
		dispatch()
		s.x.Flush()
	})
	if s.x.Replies != execute.RepliesOn {
		s.muteFrom(before)
	}
	if s.x.Replies == execute.RepliesSkipping {
		s.x.Replies = execute.RepliesOn
	}
}

// muteFrom drops replies and those to come of a pending command.
func (s *Session) muteFrom(before int) {
	s.x.W.Buf = s.x.W.Buf[:before]
	if s.pending != nil {
		s.pending.muted = true
	}
}

func (r *clientRole) BeginMonitor() error {
	if r.listens != nil && r.listens.monitor != nil { // no reply, as in Redis
		return nil
	}
	r.listen().monitor = r.engine.Config.Records.Monitors.Begin(r.x.Client)
	r.x.Monitored = true
	r.x.Client.Change(func(i *clients.Info) { i.Monitoring = true })
	r.x.W.OK()
	return nil
}
