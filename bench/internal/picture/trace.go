// Package picture draws the decisions of each limiter on one trace of requests, for docs/LIMITERS.md, by the
// server's own arithmetic.
package picture

import (
	"fmt"
	"io"
	"time"
)

// The trace lasts a minute; its limits allow ten requests in ten seconds, in each limiter's sense.
const (
	traceLength = time.Minute
	units       = 10
	period      = 10 * time.Second
)

// Trace returns the times of the trace's requests.
func Trace() (at []time.Duration) {
	burst := func(from time.Duration, requests int) {
		for i := range requests {
			at = append(at, from+time.Duration(i)*10*time.Millisecond)
		}
	}
	burst(time.Second, 15)
	for t := 5 * time.Second; t < 25*time.Second; t += time.Second / 2 { // twice as many as allowed
		at = append(at, t)
	}
	at = append(at, 39*time.Second) // after a pause; a fixed window begins with it
	burst(48500*time.Millisecond, 12)
	burst(49500*time.Millisecond, 12) // in the next one
	return at
}

// WriteTrace writes the trace as cellserver replay reads it.
func WriteTrace(w io.Writer) error {
	text := []byte("at,key\n")
	for _, at := range Trace() {
		text = fmt.Appendf(text, "%.2f,laoqian\n", at.Seconds())
	}
	_, err := w.Write(text)
	return err
}
