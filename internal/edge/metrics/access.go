package metrics

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"cellserver/internal/base/often"
)

// Access admits requests with its token, or everyone if none is set. It is safe for concurrent use.
type Access struct {
	Log *slog.Logger
	Now func() int64 // monotonic nanoseconds

	// token is hashed, so that comparing takes the same time for any content and length; nil for none.
	token    atomic.Pointer[[sha256.Size]byte]
	failures often.Counter
}

// Set replaces the token, which clients send as a bearer token, or as any user's password for basic
// authentication, as browsers do. An empty one admits everybody.
func (a *Access) Set(token string) {
	if token == "" {
		a.token.Store(nil)
		return
	}
	hash := sha256.Sum256([]byte(token))
	a.token.Store(&hash)
}

// IsOpen reports whether no token is required.
func (a *Access) IsOpen() bool { return a.token.Load() == nil }

func (a *Access) allows(r *http.Request) bool {
	want := a.token.Load()
	if want == nil {
		return true
	}
	_, given, ok := r.BasicAuth()
	if !ok {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		given, ok = strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
	}
	hash := sha256.Sum256([]byte(given))
	return ok && subtle.ConstantTimeCompare(hash[:], want[:]) == 1
}

// guard answers 401 to requests without the token.
func (a *Access) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.allows(r) {
			next.ServeHTTP(w, r)
			return
		}
		if count := a.failures.Due(a.Now()); count > 0 {
			a.Log.Warn("request to the metrics address with a missing or wrong token", "client", r.RemoteAddr, "count", count,
				"hint", "see --metrics-token-file")
		}
		w.Header().Add("WWW-Authenticate", `Bearer realm="cellserver"`)
		w.Header().Add("WWW-Authenticate", `Basic realm="cellserver", charset="UTF-8"`)
		http.Error(w, "a token is required", http.StatusUnauthorized)
	})
}

// share has scrapes and pages computed one at a time. While others wait it then rests for as long as it has
// worked, so that they take half of a processor however many there are, and RESP has the rest.
type share struct {
	turn    chan struct{} // full while one is computed, or rests
	waiting atomic.Int64
}

const (
	// renderTimeout bounds the wait for a turn, and for figures, which a locked shard withholds.
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
