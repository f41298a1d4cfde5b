package metrics

import (
	"net/http"
	"time"
)

const (
	// renderTimeout bounds the wait for figures: while a shard is held, there are none.
	renderTimeout = 5 * time.Second
	// renderedAtOnce bounds how many requests wait for the same figures, and how much memory their replies take.
	renderedAtOnce = 8
)

// bounded answers 503 where next does not answer in time, or is at work for too many already. The reply is complete before
// the client takes it, so one that reads slowly holds nobody up.
func bounded(next http.Handler) http.Handler {
	room := make(chan struct{}, renderedAtOnce)
	return http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			next.ServeHTTP(w, r)
		default:
			http.Error(w, "too many requests at once; try again", http.StatusServiceUnavailable)
		}
	}), renderTimeout, "the server does not respond; see /readyz\n")
}
