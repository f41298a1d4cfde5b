package metrics

import (
	"net/http"
	"sync/atomic"
	"time"
)

// share has scrapes and pages computed one at a time. While others wait it then rests for as long as it has
// worked, so that they take half of a processor however many there are, and RESP has the rest.
type share struct {
	turn    chan struct{} // full while one is computed, or rests
	waiting atomic.Int64
}

const (
	// renderTimeout bounds the wait for a turn, and for figures, of which there are none while a shard is
	// locked.
	renderTimeout = 5 * time.Second
	// longestRest bounds the rest after such a wait.
	longestRest = time.Second
)

func newShare() *share { return &share{turn: make(chan struct{}, 1)} }

// handler answers 503 if next has no turn or no answer in time. The reply is complete before the client reads
// it, so a slow client blocks no other.
func (s *share) handler(next http.Handler) http.Handler {
	return http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.waiting.Add(1)
		select {
		case s.turn <- struct{}{}:
			s.waiting.Add(-1)
		case <-r.Context().Done():
			s.waiting.Add(-1)
			return
		}
		began := time.Now()
		defer func() {
			if s.waiting.Load() == 0 {
				<-s.turn
				return
			}
			time.AfterFunc(min(time.Since(began), longestRest), func() { <-s.turn })
		}()
		next.ServeHTTP(w, r)
	}), renderTimeout, "the server does not respond; see /readyz\n")
}
