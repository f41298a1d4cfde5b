package cellserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Settlements counts what could not be settled at once.
type Settlements struct {
	Waiting int   // to be sent, or sent again
	GivenUp int64 // the queue was full or closed, a day was over, or the server says that it is a mistake
	Lost    int64 // units counted locally whose charge had no answer, and may or may not have been made
}

// Settlements returns the counts of now.
func (l *Limiter) Settlements() Settlements {
	l.outbox.mu.Lock()
	defer l.outbox.mu.Unlock()
	s := l.outbox.counts
	s.Waiting = l.outbox.waitingLocked()
	return s
}

// Close waits until no settlement waits, or ctx ends, and gives up the rest. Settle holds before it.
func (l *Limiter) Close(ctx context.Context) error {
	o := &l.outbox
	o.mu.Lock()
	o.closed = true
	done := o.done
	o.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	o.mu.Lock()
	left := o.waitingLocked()
	o.stop()
	o.mu.Unlock()
	<-done
	return fmt.Errorf("cellserver: close: %d settlements given up: %w", left, ctx.Err())
}

const (
	maxWaiting = 10_000         // settlements, some hundred bytes each
	maxCancels = 5_000          // beyond which holds without an answer are left to their time
	giveUp     = 24 * time.Hour // when the server has forgotten a hold whose time was over
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
	debitTTL   = time.Minute // of a hold that makes a debit repeatable
)

// outbox sends settlements that have no answer, one after the other, while there are any. Its zero value is
// empty.
type outbox struct {
	mu      sync.Mutex // guards the rest
	queue   []*settlement
	sending bool // one that is not in the queue
	away    bool // the latest had no answer
	closed  bool
	stop    context.CancelFunc
	done    chan struct{} // of the goroutine that sends; nil if there is none
	counts  Settlements
}

func (o *outbox) waitingLocked() (n int) {
	if o.sending {
		n = 1
	}
	return n + len(o.queue)
}

// isAway reports whether settlements wait for a server that does not answer.
func (o *outbox) isAway() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.away && o.done != nil
}

// put has a settlement sent, or returns why it will not be.
func (o *outbox) put(l *Limiter, s *settlement) (err error) {
	if s.until.IsZero() {
		s.until = time.Now().Add(giveUp)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed && o.done == nil:
		err = errClosed
	case o.waitingLocked() >= maxWaiting, s.stage == canceling && o.waitingLocked() >= maxCancels:
		err = fmt.Errorf("cellserver: %d settlements wait already", o.waitingLocked())
	}
	if err != nil {
		if s.stage != canceling || !s.again { // the second is for a rare case
			o.counts.GivenUp++
		}
		s.release(l)
		return err
	}
	o.queue = append(o.queue, s)
	if o.done == nil {
		var ctx context.Context
		ctx, o.stop = context.WithCancel(context.Background())
		o.away, o.done = true, make(chan struct{})
		go o.run(ctx, l)
	}
	return nil
}

// next returns a settlement, or nil, with which the goroutine ends.
func (o *outbox) next(ctx context.Context, l *Limiter) *settlement {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ctx.Err() != nil {
		for _, s := range o.queue {
			s.release(l)
		}
		o.counts.GivenUp += int64(len(o.queue))
		o.queue = nil
	}
	o.sending = len(o.queue) > 0
	if !o.sending {
		o.stop()
		close(o.done)
		o.done = nil
		return nil
	}
	s := o.queue[0]
	o.queue = slices.Delete(o.queue, 0, 1)
	return s
}

func (o *outbox) run(ctx context.Context, l *Limiter) {
	pause := firstPause
	for s := o.next(ctx, l); s != nil; s = o.next(ctx, l) {
		err := l.ping(ctx)
		away := err != nil
		if !away {
			var outcome outcome
			outcome, err = s.send(ctx, l)
			away = outcome == unanswered
		}
		o.mu.Lock()
		o.sending, o.away = false, away
		switch {
		case !away && err == nil:
			pause = firstPause
		case away && ctx.Err() == nil && time.Now().Before(s.until):
			o.queue = append(o.queue, s)
		case away, !errors.Is(err, ErrNoHold):
			o.counts.GivenUp++
			s.release(l)
		}
		o.mu.Unlock()
		if away {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, lastPause)
		}
	}
}

// settlement is a message to the server. Its stages:
//
//	canceling  -- answered --> done      of a reservation that was not answered
//	committing -- answered --> done
//	committing -- no hold  --> reserving      it is lost, as nobody else has settled it
//	reserving  -- allowed  --> committing     of units counted locally, too
//	reserving  -- denied   --> debiting       there is no room, not even for a unit
//	debiting   -- answered or not --> done    each use once
type settlement struct {
	id     string
	uses   []Use // as used
	stage  stage
	local  bool // the units are counted in this process until it is done
	again  bool // it may have been settled before
	shared bool // somebody else may have settled it
	until  time.Time
}

type stage uint8

const (
	canceling stage = iota
	committing
	reserving
	debiting
)

// outcome is whether a settlement has to be sent again.
type outcome uint8

const (
	answered outcome = iota
	unanswered
)

// send sends what the stage says. An error that comes with an answer is one that no repetition ends.
func (s *settlement) send(ctx context.Context, l *Limiter) (outcome, error) {
	for {
		was := s.stage
		outcome, err := s.step(ctx, l)
		if outcome == unanswered || err != nil || s.stage == was {
			return outcome, err
		}
	}
}

func (s *settlement) step(ctx context.Context, l *Limiter) (outcome, error) {
	switch s.stage {
	case reserving:
		return s.reserve(ctx, l)
	case debiting:
		return s.debit(ctx, l)
	default:
		return s.commit(ctx, l)
	}
}

// commit sends CL.MCOMMIT, which changes nothing if the server has done it before.
func (s *settlement) commit(ctx context.Context, l *Limiter) (outcome, error) {
	args := []any{"CL.MCOMMIT", s.id, len(s.uses)}
	for _, u := range s.uses {
		args = append(args, u.Limit, u.Key, u.Units)
	}
	v, err := l.ask(ctx, args...)
	again := s.again || s.shared
	s.again = s.again || err == nil || !wasNotSent(err)
	switch {
	case err != nil:
		return s.failed(l, err)
	case v == int64(0) && s.stage == canceling:
		// The reservation may still be behind this, in another connection.
		if !again {
			time.AfterFunc(lastPause, func() { _ = l.outbox.put(l, s) })
		}
		return answered, nil
	case v == int64(0) && !again:
		s.stage = reserving
		return answered, nil
	}
	s.finish(l)
	if v == int64(0) && s.shared {
		return answered, ErrNoHold
	}
	return answered, nil
}

// reserve makes a debit of what no server holds repeatable: it holds one unit of each use, and what was used
// is committed in its place.
func (s *settlement) reserve(ctx context.Context, l *Limiter) (outcome, error) {
	if !slices.ContainsFunc(s.uses, func(u Use) bool { return u.Units > 0 }) {
		s.finish(l)
		return answered, nil
	}
	args := []any{"CL.MRESERVE", len(s.uses)}
	for _, u := range s.uses {
		args = append(args, u.Limit, u.Key, 1)
	}
	v, err := l.ask(ctx, append(args, "TTL", debitTTL.Milliseconds(), "ID", s.id)...)
	var allowed bool
	switch {
	case err == nil:
		if _, allowed, err = readAll(s.uses, v); err != nil {
			return s.failed(l, err)
		}
	case strings.Contains(err.Error(), "whose time is over"): // an earlier try, long ago
		allowed = true
	case strings.Contains(err.Error(), tooManyHolds): // there may be for hours, and a debit is none
	default:
		return s.failed(l, err)
	}
	if s.stage = debiting; allowed {
		s.stage = committing
		l.note(s.id, Held)
	}
	return answered, nil
}

// debit sends CL.CHECK ... DEBIT for what finds no room, each at most once, as it could charge twice. It is
// sent again only if it surely was not executed.
func (s *settlement) debit(ctx context.Context, l *Limiter) (outcome, error) {
	for i := range s.uses {
		u := &s.uses[i]
		if u.Units == 0 {
			continue
		}
		if err := l.ping(ctx); err != nil {
			return unanswered, err
		}
		if !s.again {
			s.again = true
			l.note(s.id, Held) // whoever resumes it must not send these again
		}
		_, err := l.ask(ctx, "CL.CHECK", u.Limit, u.Key, u.Units, "DEBIT")
		if err != nil && (wasNotSent(err) || !isUnavailable(err)) {
			return s.failed(l, err)
		}
		if err != nil {
			l.outbox.lose(u.Units)
			l.report.add("cellserver: a debit without an answer", err, l.Report)
		}
		l.counted.add([]Use{*u}, withUnits([]Use{*u}, 0))
		u.Units = 0
	}
	s.finish(l)
	return answered, nil
}

// ping returns an error if no server answers.
func (l *Limiter) ping(ctx context.Context) error {
	if _, err := l.ask(ctx, "PING"); err != nil && isUnavailable(err) {
		return err
	}
	return nil
}

func (o *outbox) lose(units int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts.Lost += units
}

// failed returns whether to send again, and reports a mistake.
func (s *settlement) failed(l *Limiter, err error) (outcome, error) {
	if isUnavailable(err) {
		return unanswered, err
	}
	err = fmt.Errorf("%w: %w", ErrMisconfigured, err)
	l.report.add("cellserver: not settled", err, l.Report)
	return answered, err
}

func (s *settlement) finish(l *Limiter) {
	s.release(l)
	if s.stage != canceling {
		l.note(s.id, Settled)
	}
}

// release ends that units count in this process.
func (s *settlement) release(l *Limiter) {
	if s.local {
		l.counted.add(s.uses, withUnits(s.uses, 0))
	}
}

func (l *Limiter) note(id string, s Stage) {
	if l.Note != nil {
		l.Note(id, s)
	}
}

// wasNotSent reports whether a call has surely not been executed: there was no connection, or it was refused
// at the door.
func wasNotSent(err error) bool {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout) {
		return true
	}
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false
	}
	code, _, _ := strings.Cut(answer.Error(), " ")
	return slices.Contains([]string{"BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "OOM", "READONLY", tooManyHolds}, code)
}

const tooManyHolds = "TOOMANYHOLDS"
