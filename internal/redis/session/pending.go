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

// pending is an unfinished command, or a batch at the store. The session consumes nothing meanwhile, so
// replies stay in order.
type pending struct {
	*background.Task                  // nil for a batch, a turn and pieces
	command          *catalog.Command // nil for a batch, which the decider counts
	args             []string         // for SLOWLOG; nil if never slow enough
	beganNs          int64            // start of the handler
	handedNs         int64            // end of the handler
	handlerNs        int64            // of the handler
	workNs           int64            // of the background work
	muted            bool             // its reply is suppressed
	stays            bool             // waits even after the client's last command; else a delay would be no penalty
	finish           execute.Finish
	// later is the store's pending answer, and answered replies to it.
	later    *decide.Later
	answered execute.Answered
	turn     *queue.Waiter // the awaited turn, or nil
	// pieces are the rest of a reply, after which the connection may have to close; else nil.
	pieces execute.Pieces
	closes bool
	// abandoned reports that nobody waits for the work; may be nil.
	abandoned func()
	gone      bool // the client has closed its half
	// next is a command read after a batch that could not be put back.
	next      *parsed
	argsBytes int // of the arguments of next and of the unfinished command
}

// waiting holds a session's unfinished command.
type waiting struct {
	pending *pending // nil where there is none
}

// wait makes the session wait for the running command.
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

// hold keeps a command until the batch before it is answered.
func (w *waiting) hold(c *clients.Client, h parsed) {
	if h.long != nil {
		h.long = h.long.kept()
		w.holdArguments(c, h.long.bytes())
	} else {
		h.args = h.kept()
		w.holdArguments(c, h.bytes())
	}
	w.pending.next = &h
}

// awaitRelease keeps a command until changes are no longer held, and admits it anew.
func (s *Session) awaitRelease(h parsed) {
	p := s.waitForTask(&s.x, func(*execute.Executor) error { return nil })
	s.hold(s.x.Client, parsed{args: h.args, ownBytes: h.ownBytes, frameBytes: h.frameBytes})
	s.engine.Config.Gate.Await(p.Finish)
}

// holdArguments counts the memory of stored arguments.
func (w *waiting) holdArguments(c *clients.Client, bytes int) {
	w.pending.argsBytes += bytes
	c.Hold(clients.Arguments, w.pending.argsBytes)
}

// hungUp cancels waiting work, and running work if the client is gone. A batch at the store is decided.
func (p *pending) hungUp(h peer.Hangup) {
	p.gone = true
	switch {
	case p.later != nil || p.pieces != nil || p.stays && h == peer.HalfClosed:
		return
	case p.turn != nil:
		p.turn.Leave(queue.Cancelled)
		return
	}
	if !p.Cancel() && h == peer.Reset {
		p.End()
	}
}

// abandon ends all work for the command.
func (p *pending) abandon() {
	switch {
	case p.later != nil:
		p.later.Cancel()
	case p.pieces != nil:
	case p.turn != nil:
		p.turn.Leave(queue.Cancelled)
	default:
		p.End()
		if p.abandoned != nil {
			p.abandoned()
		}
	}
}

// resume finishes the pending command and executes the held one. It returns false while the session must
// wait.
func (s *Session) resume() bool {
	p := s.pending
	if p.pieces != nil {
		return s.resumePieces(p)
	}
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
	case p.command == nil || p.muted:
	default:
		s.x.Settle()
		if s.x.Wrote || p.command.Flags&catalog.FlagWrite != 0 {
			s.x.Scratch.NoteTold(before, s.x.Replied())
		}
	}
	if p.muted {
		s.x.W.Buf = s.x.W.Buf[:before]
	}
	if s.pending != p {
		s.pending.follow(p)
		return false
	}
	s.x.Wrote = s.x.Wrote || p.command != nil && p.command.Flags&catalog.FlagWrite != 0
	return s.done(p, before)
}

// resumePieces gives out the next pieces of a reply. Its first ones have waited for the disk if it reports a
// change.
func (s *Session) resumePieces(p *pending) bool {
	before := s.x.Replied()
	held := s.x.AppendPieces(p.pieces)
	s.x.Client.Hold(clients.Pieces, held)
	if p.muted {
		s.x.W.Buf = s.x.W.Buf[:before]
	}
	if held > 0 {
		return false
	}
	if !s.done(p, before) {
		return false
	}
	if p.closes {
		s.x.Status = peer.Close
		return false
	}
	return true
}

// dropPieces drops the rest of a reply whose beginning an error has replaced.
func (s *Session) dropPieces() {
	if s.replies() {
		s.x.Client.Hold(clients.Pieces, 0)
		s.pending.pieces = func(*execute.Executor) int { return 0 }
	}
}

// replies reports whether pieces of a reply are still to come.
func (s *Session) replies() bool { return s.pending != nil && s.pending.pieces != nil }

// done ends a pending command, and executes the held one. It returns false while the session must wait.
func (s *Session) done(p *pending, before int) bool {
	s.pending = nil
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

// ended returns the function that finishes the command, or nil to wait.
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

// follow makes p the next part of a command.
func (p *pending) follow(first *pending) {
	p.command, p.args, p.beganNs, p.muted, p.argsBytes = first.command, first.args, first.beganNs, first.muted, first.argsBytes
	p.handlerNs, p.next = first.handlerNs+first.workNs, first.next
}

// leaveOut drops a command before its admission. Its transaction must not be executed.
func (s *Session) leaveOut(p *pending) {
	if p.next != nil && s.multi != nil {
		s.multi.Failed = true
	}
	p.next = nil
}

// cancelled replies to a command that was cancelled before it ran.
func (s *Session) cancelled(c *catalog.Command) error {
	if c != nil && c.Name == "exec" {
		s.discard() // else the next transaction would depend on its watched keys
	}
	return reply.ErrCancelled
}

// goOn executes a held command.
func (s *Session) goOn(h parsed) {
	s.x.Monitored = s.engine.Config.Records.Monitors.Any() // it may have changed since
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

// who identifies the client in the competition for slots.
func who(x *execute.Executor) background.Who {
	return background.Who{Addr: x.Client.Peer.Network(), User: x.User.Name(), Client: x.Client.ID}
}

// tally counts a finished command: its work decides whether it is slow, its waiting counts for the client.
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

// replyTurn replies to a client after its turn.
func (p *pending) replyTurn(x *execute.Executor) error {
	x.Client.Await(nil)
	nowNs := x.Engine.Config.Now()
	p.beganNs = nowNs - p.handlerNs // waiting was its purpose
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
