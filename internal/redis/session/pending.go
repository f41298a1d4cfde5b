package session

import (
	"cellserver/internal/decide"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/queue"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// pending is the command that is not done: its handler has returned, or its batch is with the store, and its reply is
// still to come. While there is one the session consumes nothing, so replies stay in order.
type pending struct {
	*background.Task                  // nil for what the store answers, and for a turn
	command          *catalog.Command // nil for a batch, which the decider counts
	args             []string         // for SLOWLOG; nil if nothing is slow enough
	beganNs          int64            // when its handler was called
	handedNs         int64            // when its handler left the rest to others
	handlerNs        int64            // that the handler took
	workNs           int64            // that the rest took
	muted            bool             // its reply is not wanted
	stays            bool             // it is waited for even if the client sends no more: a pause would be no penalty otherwise
	finish           execute.Finish
	// later is what the store has still to answer, and answered replies to that.
	later    *decide.Later
	answered execute.Answered
	turn     *queue.Waiter // that is waited for; else nil
	// abandoned is told that nobody waits for the work any more; nil where it need not know.
	abandoned func()
	gone      bool // the client sends no more
	// next is the command that was read behind a batch and could not be put back.
	next      *held
	argsBytes int // that the arguments take which the rest and next have
}

// waiting is a session's place for the command that is not done.
type waiting struct {
	pending *pending // nil where there is none
}

// wait makes the session wait for the command that runs.
func (w *waiting) wait(x *execute.Executor, p *pending) *pending {
	p.handedNs = x.Engine.Config.Now()
	w.pending = p
	x.Status = peer.Waiting
	return p
}

// waitForTask makes the session wait for a task.
func (w *waiting) waitForTask(x *execute.Executor, finish execute.Finish) *pending {
	return w.wait(x, &pending{Task: background.New(x.Engine.Context, x.Client.Conn.Wake), finish: finish})
}

func (w *waiting) awaitTurn(x *execute.Executor, turn *queue.Waiter) {
	w.wait(x, &pending{turn: turn})
	x.Client.Await(turn)
}

// hold keeps a command until the batch in front of it is answered.
func (w *waiting) hold(c *clients.Client, h held) {
	if h.long != nil {
		h.long = h.long.kept()
		w.holdArguments(c, h.long.bytes())
	} else {
		h.args = h.kept()
		w.holdArguments(c, h.bytes())
	}
	w.pending.next = &h
}

// holdArguments counts the arguments that are kept for the command that is not done.
func (w *waiting) holdArguments(c *clients.Client, bytes int) {
	w.pending.argsBytes += bytes
	c.Hold(clients.Arguments, w.pending.argsBytes)
}

// hungUp cancels what only waits and, where the client is gone, what runs. A batch that is with the store is decided.
func (p *pending) hungUp(h peer.Hangup) {
	p.gone = true
	switch {
	case p.later != nil || p.stays && h == peer.HalfClosed:
		return
	case p.turn != nil:
		p.turn.Leave(queue.Cancelled)
		return
	}
	if !p.Cancel() && h == peer.Reset {
		p.End()
	}
}

// abandon ends whatever is still done for the command.
func (p *pending) abandon() {
	switch {
	case p.later != nil:
		p.later.Cancel()
	case p.turn != nil:
		p.turn.Leave(queue.Cancelled)
	default:
		p.End()
		if p.abandoned != nil {
			p.abandoned()
		}
	}
}

// resume finishes the command that the session waits for, and executes the one that was held behind it. It is false if
// the session still waits.
func (s *Session) resume() bool {
	p := s.pending
	finish := p.ended(s)
	if finish == nil {
		return false
	}
	before := s.x.Replied()
	switch err := finish(&s.x); {
	case err != nil && p.command == nil:
		s.x.Fail(nil, nil, err)
	case err != nil:
		s.x.FailCommand(p.command, nil, err)
	case p.command != nil && !p.muted && (s.x.Wrote || p.command.Flags&catalog.FlagWrite != 0):
		s.x.Scratch.NoteTold(before, s.x.Replied())
	}
	if p.muted {
		s.x.W.Buf = s.x.W.Buf[:before]
	}
	if s.pending != p {
		s.pending.follow(p)
		return false
	}
	s.pending = nil
	s.x.Wrote = s.x.Wrote || p.command != nil && p.command.Flags&catalog.FlagWrite != 0
	if p.argsBytes > 0 {
		s.x.Client.Hold(clients.Arguments, 0)
	}
	p.tally(&s.x)
	s.x.LookAfter(p.command)
	if p.next != nil && p.muted {
		untold(&s.x, func() {
			s.goOn(*p.next)
			s.x.Flush()
		})
		s.muteFrom(before)
	} else if p.next != nil {
		s.goOn(*p.next)
	}
	return s.pending == nil
}

// ended returns what finishes the command, and nil if it is still to be waited for.
func (p *pending) ended(s *Session) (finish execute.Finish) {
	if p.later != nil {
		answers, ok := p.later.Answers(&s.x.Scratch.Local)
		if !ok {
			return nil
		}
		return func(x *execute.Executor) error { return p.answered(x, answers) }
	}
	if p.turn != nil {
		if p.turn.Outcome() == queue.Waiting {
			return nil
		}
		return p.replyTurn
	}
	outcome, ended := p.Outcome()
	switch {
	case !ended:
		return nil
	case outcome.Failure != nil:
		panic(outcome.Failure)
	case outcome.Cancelled:
		s.leaveOut(p)
		finish = func(*execute.Executor) error { return s.cancelled(p.command) }
	default:
		finish = p.finish
	}
	p.End()
	p.workNs = outcome.WorkNs
	return finish
}

// follow makes a pending the next part of a command.
func (p *pending) follow(first *pending) {
	p.command, p.args, p.beganNs, p.muted, p.argsBytes = first.command, first.args, first.beganNs, first.muted, first.argsBytes
	p.handlerNs = first.handlerNs + first.workNs
}

// leaveOut forgets a command that was to be admitted. A transaction without it must not be executed.
func (s *Session) leaveOut(p *pending) {
	if p.next != nil && s.multi != nil {
		s.multi.Failed = true
	}
	p.next = nil
}

// cancelled replies to a command that was cancelled before it ran.
func (s *Session) cancelled(c *catalog.Command) error {
	if c != nil && c.Name == "exec" {
		s.discard() // or the next transaction would depend on what was watched for this one
	}
	return reply.ErrCancelled
}

// goOn executes a command that was held.
func (s *Session) goOn(h held) {
	s.x.Monitored = s.engine.Config.Records.Monitors.Any() // which may have changed since it was read
	switch {
	case h.long != nil:
		s.admitLater(h.long)
	case len(h.args) == 0:
		s.failInput(h.err)
	case h.command == nil && h.err == nil:
		s.dispatch(h.args)
	default:
		s.proceed(h)
	}
}

// who is between whom the slots are shared.
func who(x *execute.Executor) background.Who {
	return background.Who{Addr: x.Client.Peer.Network(), User: x.User.Name(), Client: x.Client.ID}
}

// tally counts what was not done and has ended. Its work is what is slow or not; its waiting, too, is what
// the client has felt.
func (p *pending) tally(x *execute.Executor) {
	if p.command == nil {
		return
	}
	nowNs, ns := x.Engine.Config.Now(), p.handlerNs+p.workNs
	x.Scratch.Local.Took(p.command, true, ns, nowNs-p.beganNs)
	if records := x.Engine.Config.Records; records.Slowness.IsSlow(ns) {
		records.SlowCall(p.command, p.args, x.Client, nowNs, ns)
	}
}

// replyTurn replies to who has waited for its turn.
func (p *pending) replyTurn(x *execute.Executor) error {
	x.Client.Await(nil)
	nowNs := x.Engine.Config.Now()
	p.beganNs = nowNs - p.handlerNs // what it has waited for is what it wanted
	switch p.turn.Outcome() {
	case queue.Cancelled:
		return reply.ErrCancelled
	case queue.Ended:
		return reply.ErrEnded
	case queue.Unblocked:
		return reply.ErrUnblocked
	default:
		r := p.turn.Result(nowNs)
		execute.Result(&x.W, &r)
		return nil
	}
}
