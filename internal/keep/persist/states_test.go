package persist

import (
	"bytes"
	"strconv"
	"testing"

	"cellserver/internal/keep/changes"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// stateOf returns the state of a key in the tests that expires at a time. A name of digits says which kind it
// is of.
func stateOf(name []byte, expiresNs int64) limiter.State {
	kind := kindOf(name)
	if kind == limiter.Funnel || expiresNs <= 0 {
		return limiter.State{ExpiresNs: expiresNs}
	}
	s, err := limitertest.State(kind, expiresNs, 1+expiresNs%4)
	if err != nil {
		return limiter.State{}
	}
	s.ExpiresNs = expiresNs
	return s
}

func kindOf(name []byte) limiter.Kind {
	n, err := strconv.ParseUint(string(name), 10, 8)
	if err != nil {
		return limiter.Funnel
	}
	return limiter.Kind(n) % limiter.Kinds
}

// change gives a key the state that stateOf has.
func change(name []byte, expiresNs int64) store.Change {
	return store.Change{Key: store.Key{Name: name}, State: stateOf(name, expiresNs)}
}

// isAsChanged reports whether a change is one that change has made.
func isAsChanged(c store.Change) bool {
	want := stateOf(c.Key.Name, c.State.ExpiresNs)
	return c.State.Kind == want.Kind && bytes.Equal(c.State.Payload, want.Payload)
}

// recordOf returns the record of a key's state.
func recordOf(name string, s limiter.State) []byte {
	return changes.Append(nil, 0, &store.Change{Key: store.Key{Name: []byte(name)}, State: s})
}

// deaf ignores what is restored.
type deaf struct{ store.Tracker }

func (deaf) Restore(int64, int, int, []store.Change) {}

// TestSmallFramesAllocateNothing: a log may have a frame for each change.
func TestSmallFramesAllocateNothing(t *testing.T) {
	if racetest.Enabled {
		t.Skip("a sync.Pool forgets on purpose")
	}
	payload := changes.Append(nil, 0, &store.Change{Key: store.Key{Name: []byte("key")}, State: limiter.State{ExpiresNs: 1}})
	r := newRestorer(deaf{}, 0)
	add := r.addUntil(t.Context())
	allocs := testing.AllocsPerRun(1000, func() {
		if err := add(payload); err != nil {
			t.Fatal(err)
		}
	})
	if err := r.end(); err != nil || allocs > 0 {
		t.Errorf("%v allocations for a frame, %v", allocs, err)
	}
}
