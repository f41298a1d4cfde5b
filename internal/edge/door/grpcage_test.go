package door_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	h2 "cellserver/internal/test/http2test"
)

// TestConnectionAge: a connection that is used all the time is told to close at its age, and has its grace.
func TestConnectionAge(t *testing.T) {
	t.Parallel()
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	ping := string(h2.Frame(h2.Ping, 0, 0, "12345678"))
	for _, tt := range []struct{ age, stays, leaves time.Duration }{
		{time.Minute, 50 * time.Second, 90 * time.Second}, // a tenth more or less, and the grace
		{0, 2 * time.Minute, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, d, on := serveAged(t, tt.age, 10*time.Second)
			theirs, ours := net.Pipe()
			p.ends <- ours
			var all sync.WaitGroup
			all.Go(func() {
				_, err := io.WriteString(theirs, preface)
				for err == nil {
					time.Sleep(10 * time.Second)
					_, err = io.WriteString(theirs, ping)
				}
			})
			all.Go(func() { _, _ = io.Copy(io.Discard, theirs) })
			time.Sleep(tt.stays)
			synctest.Wait()
			if n := on.Stats().Connected; n != 1 {
				t.Errorf("of age %v: %d clients after %v", tt.age, n, tt.stays)
			}
			if tt.leaves > 0 {
				time.Sleep(tt.leaves - tt.stays)
				synctest.Wait()
				if n := on.Stats().Connected; n != 0 {
					t.Errorf("of age %v: %d clients after %v", tt.age, n, tt.leaves)
				}
			}
			_ = theirs.Close()
			all.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			d.Shutdown(ctx)
			time.Sleep(time.Minute) // for timers
		})
	}
}
