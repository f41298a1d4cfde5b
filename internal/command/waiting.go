package command

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// wait makes the session wait for the command that runs. done appends the command's reply and returns true, or
// returns false while there is none; it is called after each wake-up, never from another goroutine.
func (s *Session) wait(done func(*Session) bool) {
	s.waiting = done
	s.status = Waiting
}

func (s *Session) resume() bool {
	done := s.waiting
	s.waiting = nil
	if !done(s) && s.waiting == nil {
		s.waiting = done
	}
	return s.waiting == nil
}

// aside runs work that may take long on a goroutine of its own, so that the driver can serve others meanwhile, and
// then reply. The arguments of the command are work's only if it has copied them.
func (s *Session) aside(work func(), reply func(*Session)) {
	var ended atomic.Bool
	var failure error // a panic, which must end this connection and not the process
	conn := s.conn
	go func() {
		defer conn.Wake()
		defer ended.Store(true)
		defer func() {
			if p := recover(); p != nil {
				failure = fmt.Errorf("%v\n%s", p, debug.Stack())
			}
		}()
		work()
	}()
	s.wait(func(s *Session) bool {
		if !ended.Load() {
			return false
		}
		if failure != nil {
			panic(failure)
		}
		reply(s)
		return true
	})
}
