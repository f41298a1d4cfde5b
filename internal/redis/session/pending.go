package session

import (
	"context"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/queue"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
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
	finish           func(*Session) error
	// later is what the store has still to answer, and answered replies to that.
	later    *decide.Later
	answered func(*Session, []store.Request) error
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
	p.handedNs = s.engine.config.Now()
	s.pending = p
	s.status = peer.Waiting
	return p
}

// waitForTask makes the session wait for a task.
func (s *Session) waitForTask(finish func(*Session) error) *pending {
	return s.wait(&pending{Task: background.New(s.engine.ctx, s.client.Conn.Wake), finish: finish})
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
	before := len(s.w.Buf)
	switch err := finish(s); {
	case err != nil && p.command == nil:
		s.fail(held{}, err)
	case err != nil:
		s.failCommand(held{command: p.command}, err)
	case p.command != nil && !p.muted && (s.wrote || p.command.Flags&catalog.FlagWrite != 0):
		s.noteTold(before)
	}
	if p.muted {
		s.w.Buf = s.w.Buf[:before]
	}
	if s.pending != p {
		s.pending.follow(p)
		return false
	}
	s.pending = nil
	s.wrote = s.wrote || p.command != nil && p.command.Flags&catalog.FlagWrite != 0
	if p.argsBytes > 0 {
		s.client.Hold(clients.Arguments, 0)
	}
	s.countPending(p)
	s.lookAfter(p.command)
	if p.next != nil && p.muted {
		s.untold(func() {
			s.goOn(*p.next)
			s.flush()
		})
		s.muteFrom(before)
	} else if p.next != nil {
		s.goOn(*p.next)
	}
	return s.pending == nil
}

// ended returns what finishes the command, and nil if it is still to be waited for.
func (p *pending) ended(s *Session) (finish func(*Session) error) {
	if p.later != nil {
		answers, ok := p.later.Answers(&s.scratch.local)
		if !ok {
			return nil
		}
		return func(s *Session) error { return p.answered(s, answers) }
	}
	if p.turn != nil {
		if p.turn.Outcome() == queue.Waiting {
			return nil
		}
		return func(s *Session) error { return s.replyTurn(p) }
	}
	outcome, ended := p.Outcome()
	switch {
	case !ended:
		return nil
	case outcome.Failure != nil:
		panic(outcome.Failure)
	case outcome.Cancelled:
		s.leaveOut(p)
		finish = func(s *Session) error { return s.cancelled(p.command) }
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
	s.client.Hold(clients.Arguments, s.pending.argsBytes)
}

// goOn executes a command that was held.
func (s *Session) goOn(h held) {
	s.monitored = s.engine.config.Records.Monitors.Any() // which may have changed since it was read
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

// await makes the session wait for a batch that its store answers later.
func (s *Session) await(later *decide.Later, answered func(*Session, []store.Request) error) {
	s.wait(&pending{later: later, answered: answered})
	later.Notify(s.client.Conn.Wake)
}

// inBackground runs work that may take long on a goroutine of its own, in its turn for one of the slots, so that the
// driver can serve others meanwhile; then finish replies. The arguments of the command are work's only if it has copied
// them. In EXEC and scripts all is done at once, because they run in the background already.
func (s *Session) inBackground(slots *background.Slots, work func(context.Context), finish func(*Session) error) error {
	if s.inner != nil {
		work(s.inner.ctx)
		return finish(s)
	}
	s.waitForTask(finish).Run(slots, s.who(), work)
	return nil
}

// who is between whom the slots are shared.
func (s *Session) who() background.Who {
	return background.Who{Addr: s.client.Peer.Network(), User: s.user.Name(), Client: s.client.ID}
}

// after finishes a command when a time has passed.
func (s *Session) after(d time.Duration, finish func(*Session) error) error {
	if s.inner != nil {
		return reply.ErrNotInMulti
	}
	s.waitForTask(finish).After(d)
	return nil
}

// count counts a command that has run, or notes of one that is not done what is to be counted then.
func (s *Session) count(h held, beganNs int64) {
	p := s.pending
	if p == nil {
		ns := s.engine.config.Now() - beganNs
		s.scratch.local.Took(h.command, false, ns, ns)
		s.engine.config.Records.Slow(h.command, h.args, s.client, beganNs+ns, ns)
		s.spend(max(int(ns), h.command.Cost.Call))
		return
	}
	s.scratch.local.Called(h.command, 1)
	p.command, p.beganNs, p.handlerNs = h.command, beganNs, p.handedNs-beganNs
	if p.later == nil && p.argsBytes == 0 {
		s.holdArguments(h.bytes()) // at most: its handler has copied what it still needs
	}
	if p.turn != nil {
		s.holdArguments(queue.WaiterBytes + len(h.args[h.command.Keys.First])) // which has the name, too
	}
	if s.engine.config.Records.Slowness.Any() {
		p.args = observe.ShortArgs(observe.Redacted(h.command, h.args))
	}
}

// countPending is count for what was not done and has ended. Its work is what is slow or not; its waiting, too, is what
// the client has felt.
func (s *Session) countPending(p *pending) {
	if p.command == nil {
		return
	}
	nowNs, ns := s.engine.config.Now(), p.handlerNs+p.workNs
	s.scratch.local.Took(p.command, true, ns, nowNs-p.beganNs)
	if records := s.engine.config.Records; records.Slowness.IsSlow(ns) {
		records.SlowCall(p.command, p.args, s.client, nowNs, ns)
	}
}
