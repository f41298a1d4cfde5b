package session

import (
	"cellserver/internal/decide"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/queue"
	"cellserver/internal/redis/argument"
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

// wait makes the session wait for the command that runs.
func (s *Session) wait(p *pending) *pending {
	p.handedNs = s.engine.Config.Now()
	s.pending = p
	s.x.Status = peer.Waiting
	return p
}

// waitForTask makes the session wait for a task.
func (s *Session) waitForTask(finish execute.Finish) *pending {
	return s.wait(&pending{Task: background.New(s.engine.Context, s.x.Client.Conn.Wake), finish: finish})
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
	s.countPending(p)
	s.x.LookAfter(p.command)
	if p.next != nil && p.muted {
		s.untold(func() {
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
		return func(*execute.Executor) error { return s.replyTurn(p) }
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
		s.Discard() // or the next transaction would depend on what was watched for this one
	}
	return reply.ErrCancelled
}

// hold keeps a command until the batch in front of it is answered.
func (s *Session) hold(h held) {
	if h.long != nil {
		h.long = h.long.kept()
		s.holdArguments(h.long.bytes())
	} else {
		h.args = h.kept()
		s.holdArguments(h.bytes())
	}
	s.pending.next = &h
}

// holdArguments counts the arguments that are kept for the command that is not done.
func (s *Session) holdArguments(bytes int) {
	s.pending.argsBytes += bytes
	s.x.Client.Hold(clients.Arguments, s.pending.argsBytes)
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
func (s *Session) who() background.Who {
	return background.Who{Addr: s.x.Client.Peer.Network(), User: s.x.User.Name(), Client: s.x.Client.ID}
}

// Deferred implements execute.Role. It notes what is to be counted of a command when that is done.
func (s *Session) Deferred(c *catalog.Command, args [][]byte, beganNs int64) bool {
	p := s.pending
	if p == nil {
		return false
	}
	s.x.Scratch.Local.Called(c, 1)
	p.command, p.beganNs, p.handlerNs = c, beganNs, p.handedNs-beganNs
	if p.later == nil && p.argsBytes == 0 {
		bytes := s.ownBytes
		if bytes == 0 {
			bytes = argument.Memory(args)
		}
		s.holdArguments(bytes) // at most: its handler has copied what it still needs
	}
	if p.turn != nil {
		s.holdArguments(queue.WaiterBytes + len(args[c.Keys.First])) // which has the name, too
	}
	if s.engine.Config.Records.Slowness.Any() {
		p.args = observe.ShortArgs(observe.Redacted(c, args))
	}
	return true
}

// countPending counts what was not done and has ended. Its work is what is slow or not; its waiting, too, is what
// the client has felt.
func (s *Session) countPending(p *pending) {
	if p.command == nil {
		return
	}
	nowNs, ns := s.engine.Config.Now(), p.handlerNs+p.workNs
	s.x.Scratch.Local.Took(p.command, true, ns, nowNs-p.beganNs)
	if records := s.engine.Config.Records; records.Slowness.IsSlow(ns) {
		records.SlowCall(p.command, p.args, s.x.Client, nowNs, ns)
	}
}

// replyTurn replies to who has waited for its turn.
func (s *Session) replyTurn(p *pending) error {
	s.x.Client.Await(nil)
	nowNs := s.engine.Config.Now()
	p.beganNs = nowNs - p.handlerNs // what it has waited for is what it wanted
	switch p.turn.Outcome() {
	case queue.Cancelled:
		return s.cancelled(p.command)
	case queue.Ended:
		return reply.ErrEnded
	case queue.Unblocked:
		return reply.ErrUnblocked
	default:
		r := p.turn.Result(nowNs)
		execute.Result(&s.x.W, &r)
		return nil
	}
}
