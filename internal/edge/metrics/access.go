package metrics

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"cellserver/internal/base/often"
)

// Access admits requests with one of its secrets, or everyone if none is set. It is safe for concurrent use.
type Access struct {
	Log *slog.Logger
	Now func() int64 // monotonic nanoseconds

	secrets  atomic.Pointer[secrets]
	failures often.Counter
}

// secrets are hashed, so that comparing takes the same time for any content and length.
type secrets struct {
	token, userPassword       [sha256.Size]byte
	hasToken, hasUserPassword bool
}

// Set replaces the secrets: a bearer token, and "user:password" for basic authentication. An empty one admits
// nobody.
func (a *Access) Set(token, userPassword string) {
	a.secrets.Store(&secrets{
		token: sha256.Sum256([]byte(token)), hasToken: token != "",
		userPassword: sha256.Sum256([]byte(userPassword)), hasUserPassword: userPassword != "",
	})
}

// IsOpen reports whether no secret is required.
func (a *Access) IsOpen() bool {
	s := a.secrets.Load()
	return s == nil || !s.hasToken && !s.hasUserPassword
}

func (a *Access) allows(r *http.Request) bool {
	if a.IsOpen() {
		return true
	}
	s := a.secrets.Load()
	if user, password, ok := r.BasicAuth(); ok {
		return s.hasUserPassword && matches(user+":"+password, &s.userPassword)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return s.hasToken && strings.EqualFold(scheme, "Bearer") && matches(strings.TrimSpace(token), &s.token)
}

func matches(given string, want *[sha256.Size]byte) bool {
	hash := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(hash[:], want[:]) == 1
}

// guard answers 401 to requests without a valid secret.
func (a *Access) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.allows(r) {
			next.ServeHTTP(w, r)
			return
		}
		if count := a.failures.Due(a.Now()); count > 0 {
			a.Log.Warn("request to the metrics address with a missing or wrong secret", "client", r.RemoteAddr, "count", count,
				"hint", "see --metrics-token-file and --metrics-password-file")
		}
		s := a.secrets.Load()
		if s.hasToken {
			w.Header().Add("WWW-Authenticate", `Bearer realm="cellserver"`)
		}
		if s.hasUserPassword {
			w.Header().Add("WWW-Authenticate", `Basic realm="cellserver", charset="UTF-8"`)
		}
		http.Error(w, "a secret is required", http.StatusUnauthorized)
	})
}
