package session

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"cellserver/internal/argument"
	"cellserver/internal/catalog"
	"cellserver/internal/decide"
	"cellserver/internal/observe"
	"cellserver/internal/peer"
	"cellserver/internal/reply"
	"cellserver/internal/store"
)

// pending is the command that is not done: its handler has returned, or its batch is with the store, and its reply is
// still to come. While there is one the session consumes nothing, so replies stay in order.
type pending struct {
	command   *catalog.Command // nil for a batch, which the decider counts
	args      []string         // for SLOWLOG; nil if nothing is slow enough
	beganNs   int64            // when its handler was called
	handedNs  int64            // when its handler left the rest to others
	handlerNs int64            // that the handler took
	workNs    int64            // that the rest took
	muted     bool             // its reply is not wanted
	finish    func(*Session) error
	// later is what the store has still to answer, and answered replies to that; both are nil for what is done here.
	later    *decide.Later
	answered func(*Session, []store.Request) error
	// next is the command that was read behind a batch and could not be put back.
	next *held

	ctx    context.Context // ends with the interest in it
	cancel context.CancelFunc
	timer  *time.Timer // of its deadline; nil without one

	mu      sync.Mutex // guards all below
	stage   stage
	failure error // a panic, which must end this connection and not the process
}

// stage is how far a pending command has come.
type stage uint8

const (
	stageWaits     stage = iota // for a time, a turn or the store
	stageRuns                   // on a goroutine
	stageCancelled              // before it ran
	stageDone
)

// wait makes the session wait for the command that runs.
func (s *Session) wait(finish func(*Session) error) *pending {
	ctx, cancel := context.WithCancel(context.Background())
	s.pending = &pending{finish: finish, ctx: ctx, cancel: cancel, handedNs: s.engine.config.Now()}
	s.status = peer.Waiting
	return s.pending
}

// advance changes the stage, if it is still the one that it is thought to be.
func (p *pending) advance(from, to stage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stage != from {
		return false
	}
	p.stage = to
	return true
}

func (p *pending) is(at stage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stage == at
}

// hungUp cancels what only waits and, where the client is gone, what runs. A batch that is with the store is decided.
func (p *pending) hungUp(h peer.Hangup) (cancelled bool) {
	if p.later != nil {
		return false
	}
	cancelled = p.advance(stageWaits, stageCancelled)
	if cancelled || h == peer.Reset {
		p.abandon()
	}
	return cancelled
}

// abandon ends whatever is still done for the command.
func (p *pending) abandon() {
	p.advance(stageWaits, stageCancelled)
	p.cancel()
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.later != nil {
		p.later.Cancel()
	}
}

// resume finishes the command that the session waits for, and executes the one that was held behind it. It is false if
// the session still waits.
func (s *Session) resume() bool {
	p := s.pending
	finish := p.finish
	switch {
	case p.later != nil:
		answers, ok := p.later.Answers(&s.scratch.local)
		if !ok {
			return false
		}
		finish = func(s *Session) error { return p.answered(s, answers) }
	case p.is(stageCancelled):
		finish = func(*Session) error { return errCancelled }
	case !p.is(stageDone):
		return false
	}
	p.cancel()
	if p.failure != nil {
		panic(p.failure)
	}
	before := len(s.w.Buf)
	if err := finish(s); err != nil {
		s.failCommand(p.command, err)
	}
	if p.muted {
		s.w.Buf = s.w.Buf[:before]
	}
	s.pending = nil
	s.countPending(p)
	if p.next != nil {
		s.goOn(*p.next)
	}
	return s.pending == nil
}

// hold keeps a command until the batch in front of it is answered.
func (s *Session) hold(h held) {
	h.args = argument.CloneAll(h.args)
	s.pending.next = &h
}

// goOn executes a command that was held.
func (s *Session) goOn(h held) {
	if len(h.args) == 0 {
		s.failInput(h.err)
	} else {
		s.proceed(h)
	}
}

// await makes the session wait for a batch that its store answers later.
func (s *Session) await(later *decide.Later, answered func(*Session, []store.Request) error) {
	p := s.wait(nil)
	p.later, p.answered = later, answered
	later.Notify(s.client.Conn.Wake)
}

// slots bound how much is done at once.
type slots chan struct{}

func newSlots(n int) slots { return make(slots, max(1, n)) }

// take waits for a slot, and is false if nobody is interested any more.
func (s slots) take(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s slots) give() { <-s }

// inBackground runs work that may take long on a goroutine of its own, in its turn for one of the slots, so that the
// driver can serve others meanwhile; then finish replies. The arguments of the command are work's only if it has copied
// them. In EXEC and scripts all is done at once, for they run in the background already.
func (s *Session) inBackground(slots slots, work func(context.Context), finish func(*Session) error) error {
	if s.inner != nil {
		work(s.inner.ctx)
		return finish(s)
	}
	go s.runPending(s.wait(finish), slots, work)
	return nil
}

func (s *Session) runPending(p *pending, slots slots, work func(context.Context)) {
	defer s.client.Conn.Wake()
	if !slots.take(p.ctx) {
		return
	}
	defer slots.give()
	if !p.advance(stageWaits, stageRuns) {
		return
	}
	defer p.advance(stageRuns, stageDone)
	defer func() {
		if value := recover(); value != nil {
			p.failure = fmt.Errorf("%v\n%s", value, debug.Stack())
		}
	}()
	beganNs := s.engine.config.Now()
	work(p.ctx)
	p.workNs = s.engine.config.Now() - beganNs
}

// after finishes a command when a time has passed.
func (s *Session) after(d time.Duration, finish func(*Session) error) error {
	if s.inner != nil {
		return reply.ErrNotInMulti
	}
	p := s.wait(finish)
	p.workNs = int64(d)
	wake := s.client.Conn.Wake
	p.timer = time.AfterFunc(d, func() {
		if p.advance(stageWaits, stageDone) {
			wake()
		}
	})
	return nil
}

// count counts a command that has run, or notes of one that is not done what is to be counted then.
func (s *Session) count(h held, beganNs int64) {
	p := s.pending
	if p == nil {
		ns := s.engine.config.Now() - beganNs
		s.scratch.local.Took(h.command, false, ns, ns)
		s.noteSlow(h, ns)
		return
	}
	s.scratch.local.Called(h.command, 1)
	p.command, p.beganNs, p.handlerNs = h.command, beganNs, p.handedNs-beganNs
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

// noteSlow is told how long a call took; unless that is long, it is one comparison.
func (s *Session) noteSlow(h held, ns int64) {
	if records := s.engine.config.Records; records.Slowness.IsSlow(ns) {
		args := observe.ShortArgs(observe.Redacted(h.command, h.args))
		records.SlowCall(h.command, args, s.client, s.engine.config.Now(), ns)
	}
}
