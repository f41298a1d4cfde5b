package command

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"cellserver/internal/peer"
)

// wait makes the session wait for the command that runs. done appends the command's reply and returns true, or
// returns false while there is none; it is called after each wake-up, never from another goroutine. What is waited for
// must begin after wait, for it has a time of its own.
func (s *Session) wait(done func(*Session) bool) {
	s.waiting = done
	s.status = peer.Waiting
	s.handedNs = s.engine.config.Now()
}

func (s *Session) resume() bool {
	done := s.waiting
	s.waiting = nil
	if !done(s) && s.waiting == nil {
		s.waiting = done
	}
	if s.waiting != nil {
		return false
	}
	s.countAhead()
	return true
}

// slots bound how much is done aside at once, so that the event loops have processors left to run on.
type slots chan struct{}

func newSlots(n int) slots { return make(slots, max(1, n)) }

func (s slots) take() { s <- struct{}{} }
func (s slots) give() { <-s }

// aside runs work that may take long on a goroutine of its own, so that the driver can serve others meanwhile, and
// then reply. The arguments of the command are work's only if it has copied them.
func (s *Session) aside(work func(), reply func(*Session)) { s.asideIn(s.engine.asides, work, reply) }

// asideIn is aside with a choice of the slots. In EXEC and scripts it is all done at once, for they are aside already.
func (s *Session) asideIn(slots slots, work func(), reply func(*Session)) {
	if s.inner != outer {
		work()
		reply(s)
		return
	}
	var ended atomic.Bool
	var failure error // a panic, which must end this connection and not the process
	var tookNs int64
	s.wait(func(s *Session) bool {
		if !ended.Load() {
			return false
		}
		if failure != nil {
			panic(failure)
		}
		s.aheadNs = tookNs
		reply(s)
		return true
	})
	go func() {
		defer s.conn.Wake()
		defer ended.Store(true)
		slots.take()
		defer slots.give()
		defer func() {
			if p := recover(); p != nil {
				failure = fmt.Errorf("%v\n%s", p, debug.Stack())
			}
		}()
		if !s.gone.Load() { // else those that come and go could pile up work
			beganNs := s.engine.config.Now()
			work()
			tookNs = s.engine.config.Now() - beganNs
		}
	}()
}

// after replies when a time has passed. It is not for EXEC and scripts, which would hold up others.
func (s *Session) after(d time.Duration, reply func(*Session)) {
	var over atomic.Bool
	s.wait(func(s *Session) bool {
		if over.Load() {
			s.beganNs = s.engine.config.Now() // the pause is no work
			reply(s)
		}
		return over.Load()
	})
	time.AfterFunc(d, func() {
		over.Store(true)
		s.conn.Wake()
	})
}
