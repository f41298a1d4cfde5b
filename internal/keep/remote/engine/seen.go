package engine

import (
	"sync"
	"time"

	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/timeline"
)

const (
	// knownFor is how long a value is taken for the present one.
	knownFor = time.Second
	// seenKeys and seenBytes bound how many values are kept, and the bytes of each with its key.
	seenKeys, seenBytes = 4096, 1 << 10
)

// reading is what was found at a key, and when: by the servers' clock, and by ours when the reply came.
type reading struct {
	script.Found
	is       bool
	large    bool // it is, or was, more than script.LargeBytes
	serverNs int64
	at       time.Time
}

// nowNs returns the servers' time, or a slightly earlier one. A later one would allow what is not allowed
// yet.
func (r *reading) nowNs() int64 { return timeline.After(r.serverNs, int64(time.Since(r.at))) }

// seen is the values of keys that nothing waits for.
type seen struct {
	mu   sync.Mutex // guards all below
	keys map[string]reading
}

// add remembers what was found at a key.
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

// take returns what was found at a key a moment ago, and forgets it.
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
