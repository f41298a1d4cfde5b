package cellserver

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
)

// Middleware limits the requests of an http.Handler, one unit each.
type Middleware struct {
	Limiter *Limiter
	Limit   string       // its name
	Key     KeyFunc      // whom a request counts for
	Denied  http.Handler // answers what is limited, after the headers are set; nil is 429 with a line of text
}

// KeyFunc returns a request's key, or an error, which refuses the request with 400, and 401 for ErrNoUser.
type KeyFunc func(*http.Request) (string, error)

// ErrNoUser is the error of a KeyFunc for a request without a user.
var ErrNoUser = errors.New("authentication required")

// Handler returns a handler that limits next. Several around each other add an item each to the headers.
// If no server decides and OnError does not either, it answers 503, and 500 for ErrMisconfigured.
func (m Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, err := m.Key(r)
		if err != nil {
			status := http.StatusBadRequest
			if errors.Is(err, ErrNoUser) {
				status = http.StatusUnauthorized
			}
			http.Error(w, err.Error(), status)
			return
		}
		result, err := m.Limiter.Allow(r.Context(), m.Limit, key, 1)
		if errors.Is(err, ErrMisconfigured) {
			http.Error(w, "the rate limiter is misconfigured", http.StatusInternalServerError)
			return
		} else if err != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "the rate limiter is unavailable", http.StatusServiceUnavailable)
			return
		}
		result.Headers(w.Header().Add)
		switch {
		case result.Allowed:
			next.ServeHTTP(w, r)
		case m.Denied != nil:
			m.Denied.ServeHTTP(w, r)
		default:
			http.Error(w, "too many requests", http.StatusTooManyRequests)
		}
	})
}

// ByAddress limits by the client's address (AddressKey). Behind a proxy all clients share one key, unless
// the proxy's address or network is trusted, such as netip.MustParsePrefix("10.0.0.0/8").
func ByAddress(trusted ...netip.Prefix) KeyFunc {
	return func(r *http.Request) (string, error) {
		return AddressKey(r.RemoteAddr, r.Header.Values("X-Forwarded-For"), trusted)
	}
}

// ByHeader limits by a header that is there once, such as an API key's after it was verified: a client
// that may make up its key has no limit.
func ByHeader(name string) KeyFunc {
	return func(r *http.Request) (string, error) {
		values := r.Header.Values(name)
		if len(values) != 1 || values[0] == "" {
			return "", fmt.Errorf("the header %s is required, once", name)
		}
		return values[0], nil
	}
}

// ByUser limits by a user, as from the request's context, and refuses requests without one ("").
func ByUser(user func(*http.Request) string) KeyFunc {
	return func(r *http.Request) (string, error) {
		if name := user(r); name != "" {
			return name, nil
		}
		return "", ErrNoUser
	}
}
