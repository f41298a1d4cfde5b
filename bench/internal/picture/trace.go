// Package picture draws how each limiter decides one and the same trace of requests, for docs/LIMITERS.md. The decisions are
// those of the server's own arithmetic.
package picture

import (
	"fmt"
	"io"
	"time"
)

// The trace lasts a minute, and its limits allow ten requests in ten seconds, each as it understands that.
const (
	traceLength = time.Minute
	units       = 10
	period      = 10 * time.Second
)

// Trace returns when the requests of the trace are made.
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
	at = append(at, 39*time.Second) // behind a pause, and with it a fixed window begins
	burst(48500*time.Millisecond, 12)
	burst(49500*time.Millisecond, 12) // which is in the next one
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
