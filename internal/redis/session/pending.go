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

// A session that is blocked consumes nothing, so that replies stay in order. It waits for one of four:
//
//	wait    begins with                      ends with              the client hangs up
//	task    work aside, a delay, a signal,   its outcome            cancelled; running work only if
//	        changes that the gate holds                             the client reads no more
//	batch   requests to a store that         the store's answers    decided all the same
//	        answers later
//	turn    a turn in the queue of a key     the turn, its end,     leaves the queue
//	                                         CLIENT UNBLOCK
//	pieces  a reply longer than a turn       the last of them       given out all the same
//
// Then the command that was stashed behind it, if any, is dispatched; it may block the session again.
type wait interface {
	// done returns what finishes the command, or nil before.
	done(s *Session) execute.Finish
	// cancel ends what nobody needs once the client has hung up.
	cancel(h peer.Hangup)
	// abandon ends the interest in it: the session ends.
	abandon()
}

// pending is an unfinished command, or a batch at the store.
type pending struct {
	wait  wait
	of    deferred
	muted bool // its reply is suppressed
	gone  bool // the client has closed its half
	// next is a command read after a batch that could not be put back.
	next      *parsed
	argsBytes int // of the arguments of next and of the unfinished command
}

// deferred is the account of an unfinished command. A batch, which the decider counts, has none.
type deferred struct {
	command   *catalog.Command // nil without an account
	args      []string         // for SLOWLOG; nil if never slow enough
	beganNs   int64            // start of the handler
	handedNs  int64            // end of the handler
	handlerNs int64            // of the handler
	workNs    int64            // of the background work
}

// writes reports whether it may have changed something.
func (d *deferred) writes() bool { return d.command != nil && d.command.Flags&catalog.FlagWrite != 0 }

// task is a wait for a background.Task.
type task struct {
	*background.Task
	finish execute.Finish
	stays  bool // waits even after the client's last command; else a delay would be no penalty
	// abandoned reports that nobody waits for the work; may be nil.
	abandoned func()
}

func (t *task) done(s *Session) execute.Finish {
	outcome, ended := t.Outcome()
	finish := t.finish
	switch {
	case !ended:
		return nil
	case outcome.Failure != nil:
		panic(outcome.Failure)
	case outcome.Cancelled:
		command := s.pending.of.command
		s.leaveOut(s.pending)
		finish = func(*execute.Executor) error { return s.cancelled(command) }
	}
	t.End()
	s.pending.of.workNs = outcome.WorkNs
	return finish
}

func (t *task) cancel(h peer.Hangup) {
	if t.stays && h == peer.HalfClosed {
		return
	}
	if !t.Cancel() && h == peer.Reset {
		t.End()
	}
}

func (t *task) abandon() {
	t.End()
	if t.abandoned != nil {
		t.abandoned()
	}
}

// batch is a wait for the store's answers.
type batch struct {
	later    *decide.Later
	answered execute.Answered
}

func (b *batch) done(s *Session) execute.Finish {
	answers, ok := b.later.Answers(&s.x.Scratch.Local)
	if !ok {
		return nil
	}
	return func(x *execute.Executor) error { return b.answered(x, answers) }
}

func (*batch) cancel(peer.Hangup) {}

func (b *batch) abandon() { b.later.Cancel() }

// turn is a wait for a turn.
type turn struct{ *queue.Waiter }

func (t turn) done(s *Session) execute.Finish {
	if t.Outcome() == queue.Waiting {
		return nil
	}
	return func(x *execute.Executor) error { return t.reply(x, &s.pending.of) }
}

func (t turn) cancel(peer.Hangup) { t.Leave(queue.Cancelled) }

func (t turn) abandon() { t.Leave(queue.Cancelled) }

// reply replies to a client after its turn.
func (t turn) reply(x *execute.Executor, of *deferred) error {
	x.Client.Await(nil)
	nowNs := x.Engine.Config.Now()
	of.beganNs = nowNs - of.handlerNs // waiting was its purpose
	switch t.Outcome() {
	case queue.Cancelled:
		return reply.ErrCancelled
	case queue.Ended:
		return reply.ErrEnded
	case queue.Unblocked:
		return reply.ErrUnblocked
	default:
		r := t.Result(nowNs)
		execute.Result(&x.W, &r)
		return nil
	}
}

// pieces are the rest of a reply, after which the connection may have to close.
type pieces struct {
	next   execute.Pieces
	closes bool
}

func (*pieces) done(*Session) execute.Finish { return nil } // see resumePieces

func (*pieces) cancel(peer.Hangup) {}

func (*pieces) abandon() {}

// waiting holds a session's unfinished command.
type waiting struct {
	pending *pending // nil if the session is not blocked
}

// wait makes the session wait for the running command.
func (w *waiting) wait(x *execute.Executor, what wait) {
	w.pending = &pending{wait: what, of: deferred{handedNs: x.Engine.Config.Now()}}
	x.Status = peer.Waiting
}

// waitForTask makes the session wait for a task.
func (w *waiting) waitForTask(x *execute.Executor, finish execute.Finish) *task {
	t := &task{Task: background.New(x.Engine.Context, x.Client.Conn.Wake), finish: finish}
	w.wait(x, t)
	return t
}

func (w *waiting) awaitTurn(x *execute.Executor, waiter *queue.Waiter) {
	w.wait(x, turn{waiter})
	x.Client.Await(waiter)
}

// stash keeps a command until the batch before it is answered.
func (w *waiting) stash(c *clients.Client, h parsed) {
	if h.long != nil {
		h.long = h.long.kept()
		w.holdArguments(c, h.long.bytes())
	} else {
		h.args = h.kept()
		w.holdArguments(c, h.bytes())
	}
	w.pending.next = &h
}

// awaitRelease keeps a command until the gate no longer holds changes, and admits it anew.
func (s *Session) awaitRelease(h parsed) {
	t := s.waitForTask(&s.x, noFinish)
	s.stash(s.x.Client, parsed{args: h.args, ownBytes: h.ownBytes, frameBytes: h.frameBytes})
	s.engine.Config.Gate.Await(t.Finish)
}

// noFinish finishes what has no reply of its own.
func noFinish(*execute.Executor) error { return nil }

// holdArguments counts the memory of stored arguments.
func (w *waiting) holdArguments(c *clients.Client, bytes int) {
	w.pending.argsBytes += bytes
	c.Hold(clients.Arguments, w.pending.argsBytes)
}

// resume finishes the pending command and dispatches the stashed one. It returns false while the session is
// blocked.
func (s *Session) resume() bool {
	p := s.pending
	if rest, ok := p.wait.(*pieces); ok {
		return s.resumePieces(p, rest)
	}
	finish := p.wait.done(s)
	if finish == nil {
		return false
	}
	before := s.x.Replied()
	switch err := finish(&s.x); {
	case err != nil && p.of.command == nil:
		s.x.Fail(nil, nil, err)
	case err != nil:
		s.x.FailCommand(p.of.command, nil, err)
	case p.of.command == nil || p.muted:
	default:
		s.x.Settle()
		if s.x.Wrote || p.of.writes() {
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
	s.x.Wrote = s.x.Wrote || p.of.writes()
	return s.end(p, before)
}

// resumePieces gives out the next pieces of a reply. Its first ones have waited for the disk if it reports a
// change.
func (s *Session) resumePieces(p *pending, rest *pieces) bool {
	before := s.x.Replied()
	held := s.x.AppendPieces(rest.next)
	s.x.Client.Hold(clients.Pieces, held)
	if p.muted {
		s.x.W.Buf = s.x.W.Buf[:before]
	}
	if held > 0 {
		return false
	}
	if !s.end(p, before) {
		return false
	}
	if rest.closes {
		s.x.Status = peer.Close
		return false
	}
	return true
}

// pieces returns the pieces of a reply that are still to come, or nil.
func (s *Session) pieces() *pieces {
	if s.pending == nil {
		return nil
	}
	rest, _ := s.pending.wait.(*pieces)
	return rest
}

// dropPieces drops the rest of a reply whose beginning an error has replaced.
func (s *Session) dropPieces() {
	if rest := s.pieces(); rest != nil {
		s.x.Client.Hold(clients.Pieces, 0)
		rest.next = func(*execute.Executor) int { return 0 }
	}
}

// end ends a pending command, and dispatches the stashed one. It returns false while the session is blocked.
func (s *Session) end(p *pending, before int) bool {
	s.pending = nil
	if p.argsBytes > 0 {
		s.x.Client.Hold(clients.Arguments, 0)
	}
	p.of.count(&s.x)
	s.x.LookAfter(p.of.command)
	if p.next != nil && p.muted {
		untold(&s.x, func() {
			s.dispatchHeld(*p.next)
			s.x.Flush()
		})
		s.muteFrom(before)
	} else if p.next != nil {
		s.dispatchHeld(*p.next)
	}
	return s.pending == nil
}

// follow makes p the next part of a command.
func (p *pending) follow(first *pending) {
	handedNs := p.of.handedNs
	p.of, p.muted, p.argsBytes, p.next = first.of, first.muted, first.argsBytes, first.next
	p.of.handedNs, p.of.handlerNs, p.of.workNs = handedNs, first.of.handlerNs+first.of.workNs, 0
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

// dispatchHeld executes a stashed command.
func (s *Session) dispatchHeld(h parsed) {
	s.x.Monitored = s.engine.Config.Records.Monitors.Any() // it may have changed since
	switch {
	case h.long != nil:
		s.admitLater(h.long)
	case len(h.args) == 0:
		s.failInput(h.err)
	case h.command == nil && h.err == nil:
		s.dispatch(h.args)
	default:
		s.run(h)
	}
}

// who identifies the client in the competition for slots.
func who(x *execute.Executor) background.Who {
	return background.Who{Addr: x.Client.Peer.Network(), User: x.User.Name(), Client: x.Client.ID}
}

// count counts a finished command: its work decides whether it is slow, its waiting counts for the client.
func (d *deferred) count(x *execute.Executor) {
	if d.command == nil {
		return
	}
	nowNs, ns := x.Engine.Config.Now(), d.handlerNs+d.workNs
	x.Scratch.Local.Took(d.command, true, ns, nowNs-d.beganNs)
	if records := x.Engine.Config.Records; records.Slowness.IsSlow(ns) {
		records.SlowCall(d.command, d.args, x.Client, nowNs, ns)
	}
}
