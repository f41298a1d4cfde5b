package metrics

import (
	"net/http"
	"time"
)

const (
	// renderTimeout bounds the wait for figures, of which there are none while a shard is locked.
	renderTimeout = 5 * time.Second
	// renderedAtOnce bounds the concurrent requests, and so the memory of their replies.
	renderedAtOnce = 8
)

// bounded answers 503 if next takes too long or serves too many requests already. The reply is complete
// before the client reads it, so a slow client blocks no other.
func bounded(next http.Handler) http.Handler {
	slots := make(chan struct{}, renderedAtOnce)
	return http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			http.Error(w, "too many requests at once; try again", http.StatusServiceUnavailable)
		}
	}), renderTimeout, "the server does not respond; see /readyz\n")
}
