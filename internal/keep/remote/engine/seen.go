package engine

import (
	"sync"
	"time"

	"cellserver/internal/keep/remote/prefilter"
	"cellserver/internal/keep/remote/script"
)

const (
	// knownFor is for how long a value is taken for the present one.
	knownFor = time.Second
	// seenKeys bounds the number of values, seenBytes the bytes of each with its key.
	seenKeys, seenBytes = 4096, 1 << 10
)

// reading is a key's value and the time of the reply, by the server's clock and by ours.
type reading struct {
	script.Found
	is       bool
	large    bool // more than script.LargeBytes, now or before
	serverNs int64
	at       time.Time
}

// nowNs returns the server's time or a slightly earlier one; a later one would allow too much.
func (r *reading) nowNs() int64 { return prefilter.After(r.serverNs, int64(time.Since(r.at))) }

// seen remembers values of keys without waiting jobs.
type seen struct {
	mu   sync.Mutex // rank 90: guards all below
	keys map[string]reading
}

func (s *seen) add(name string, r reading) {
	if r.large {
		r = reading{large: true, at: r.at}
	}
	if !r.is && !r.large || len(r.Value)+len(name) > seenBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.keys {
		if len(s.keys) < seenKeys {
			break
		}
		delete(s.keys, name)
	}
	s.keys[name] = r
}

// take removes and returns a recent reading of a key.
func (s *seen) take(name string) (r reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, is := s.keys[name]; is {
		delete(s.keys, name)
		if time.Since(r.at) < knownFor {
			return r
		}
	}
	return reading{}
}
