package server

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

type reader func(b []byte) (int, error)

func (r reader) Read(b []byte) (int, error) { return r(b) }

// TestHandshakesHaveTurns: as many are computed at once as there are turns, and none while it waits for its
// client.
func TestHandshakesHaveTurns(t *testing.T) {
	const turns = 2
	s := &Server{handshakes: make(chan struct{}, turns)}
	come := reader(func(b []byte) (int, error) { return len(b), nil })
	waits := make(chan struct{})
	var now, highest atomic.Int64
	var done sync.WaitGroup
	for range 16 {
		done.Go(func() {
			h := s.BeginHandshake()
			defer h.End()
			for range 50 {
				_, _ = h.Read(make([]byte, 1), come)
				if n := now.Add(1); n > highest.Load() {
					highest.Store(n)
				}
				runtime.Gosched()
				now.Add(-1)
				h.Write()
			}
			_, _ = h.Read(make([]byte, 1), reader(func([]byte) (int, error) { <-waits; return 0, nil })) // has none meanwhile
		})
	}
	other := s.BeginHandshake()
	for range 100 {
		_, _ = other.Read(make([]byte, 1), come)
	}
	other.End()
	close(waits)
	done.Wait()
	if int(highest.Load()) > turns {
		t.Errorf("%d at once, want %d", highest.Load(), turns)
	}
	if n := len(s.handshakes); n != 0 {
		t.Errorf("%d turns are left", n)
	}
}
