package session

import (
	"context"
	"sync/atomic"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/decide/queue"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

var (
	_ execute.Role         = (*Session)(nil)
	_ execute.Conversation = (*Session)(nil)
)

// Words implements execute.Role.
func (s *Session) Words() execute.Words {
	if s.multi != nil {
		return execute.PlainWords("multi")
	}
	return execute.PlainWords("toplevel")
}

// Now implements execute.Role.
func (s *Session) Now(*execute.Executor) int64 { return s.engine.Config.Now() }

// Run implements execute.Role.
func (s *Session) Run(x *execute.Executor, c *catalog.Command, h execute.Handler, beganNs int64, args [][]byte) error {
	x.Client.Active(c, beganNs)
	switch {
	case h.IsApart():
		return s.runApart(h, s.engine.Remote.Slots, execute.Keep(args))
	case s.ownBytes > 0 && h.Own == nil:
		return s.runApart(h, s.engine.Background, args)
	}
	return h.Run(x, beganNs, args)
}

// Decide implements execute.Role.
func (s *Session) Decide(x *execute.Executor, c *catalog.Command, batch []store.Request) *decide.Later {
	nowNs := x.Engine.Config.Now()
	x.Client.Active(c, nowNs)
	return x.Engine.Decider.Batch(x.Space.Keys, nowNs, batch, x.By(c))
}

// Await implements execute.Role.
func (s *Session) Await(later *decide.Later, answered execute.Answered) {
	s.wait(&pending{later: later, answered: answered})
	later.Notify(s.x.Client.Conn.Wake)
}

// Together implements execute.Role.
func (s *Session) Together(_ *execute.Executor, j *execute.Joint) error {
	s.engine.Stage.Hold(j.Keys(), j.Decide)
	return nil
}

// Turn implements execute.Role.
func (s *Session) Turn(c execute.Call, name []byte, o *limiter.Operation) error {
	if o.Quantity <= 0 {
		return execute.Inner{}.Turn(c, name, o)
	}
	turn, err := s.x.EnterRoom(c.Now(), c.Key(name), o)
	if err != nil {
		return err
	}
	if turn == nil {
		execute.Result(c.Reply(), &o.Result)
		return nil
	}
	s.awaitTurn(turn)
	return nil
}

func (s *Session) awaitTurn(turn *queue.Waiter) {
	s.wait(&pending{turn: turn})
	s.x.Client.Await(turn)
}

// Background implements execute.Role: work runs on a goroutine of its own, so that the driver can serve others meanwhile. The
// arguments of the command are work's only if it has copied them.
func (s *Session) Background(_ *execute.Executor, slots *background.Slots, work func(context.Context), finish execute.Finish) error {
	s.waitForTask(finish).Run(slots, s.who(), work)
	return nil
}

// After implements execute.Role.
func (s *Session) After(d time.Duration, finish execute.Finish) error {
	s.waitForTask(finish).After(d)
	return nil
}

// AfterPause implements execute.Conversation.
func (s *Session) AfterPause(d time.Duration, err error) error {
	p := s.waitForTask(func(*execute.Executor) error {
		s.pending.beganNs, s.pending.workNs = s.engine.Config.Now(), 0
		return err
	})
	p.After(d)
	p.stays = true
	return nil
}

// Until implements execute.Role.
func (s *Session) Until(begin func(ctx context.Context, finish func()), atMost time.Duration, done func(c execute.Call) error) error {
	var ended atomic.Bool
	p := s.waitForTask(func(x *execute.Executor) error {
		s.pending.workNs = 0 // nothing was done for the client
		if ended.Load() {
			return reply.ErrEnded
		}
		return done(execute.Later(x))
	})
	p.stays = true
	if atMost > 0 {
		p.After(atMost)
	}
	server := s.engine.Context
	context.AfterFunc(p.Context(), func() {
		ended.Store(server.Err() != nil)
		p.Finish()
	})
	begin(p.Context(), p.Finish)
	return nil
}
