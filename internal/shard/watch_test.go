package shard

import (
	"testing"

	"cellserver/internal/store"
)

// watchedKeys counts the entries of all lists of watchers, and the shards that have a map for them.
func watchedKeys(s *Store) (entries, maps int) {
	for i := range s.shards {
		if s.shards[i].watched != nil {
			maps++
		}
		for _, x := range s.shards[i].watched {
			for ; x != nil; x = x.next {
				entries++
			}
		}
	}
	return entries, maps
}

// TestWatchAndSweep: a watched live key has expired when the sweep removes it; an expired one was absent.
func TestWatchAndSweep(t *testing.T) {
	live, expired := key(1, "live"), key(1, "expired")
	for _, tt := range []struct {
		name string
		key  store.Key
		atNs int64 // the time of the sweep
		want bool
	}{
		{"live", live, t0 + 60*sec - 1, false},
		{"expires", live, t0 + 60*sec, true},
		{"expired before", expired, t0, false},
		{"expired long before", expired, t0 + 60*sec, false},
	} {
		s := newStore(4)
		put(t, s, t0-sec, expired, 1)
		put(t, s, t0, live, 60)
		w := s.Watch(t0, []store.Key{tt.key})
		sweepOnce(s, tt.atNs)
		if got := w.Dirty(t0); got != tt.want {
			t.Errorf("%s: dirty is %v, want %v", tt.name, got, tt.want)
		}
		w.Close()
		if entries, maps := watchedKeys(s); entries != 0 || maps != 0 {
			t.Errorf("%s: after Close %d keys are watched in %d shards", tt.name, entries, maps)
		}
	}
}

func TestWatchAddsKeys(t *testing.T) {
	s := newStore(4)
	a, b := key(0, "a"), key(0, "b")
	put(t, s, t0, a, 10)
	w := s.Watch(t0, []store.Key{a, a})
	for range 1000 {
		w.Add(t0+sec, []store.Key{a, b})
	}
	if entries, _ := watchedKeys(s); entries != 2 {
		t.Errorf("%d keys are watched, want 2", entries)
	}
	// A key watched after its expiry cannot expire, but a was live at the start.
	w.Add(t0+20*sec, []store.Key{a})
	if !w.Dirty(t0+20*sec) || w.Dirty(t0+2*sec) {
		t.Error("a key that was watched again lost the time from which it was watched")
	}
	put(t, s, t0, b, 10)
	w.Add(t0, []store.Key{b, key(0, "c")})
	if entries, _ := watchedKeys(s); !w.Dirty(t0) || entries != 1 {
		t.Errorf("dirty %v with %d keys that are still watched, want 1", w.Dirty(t0), entries)
	}
	w.Close()
	if _, maps := watchedKeys(s); maps != 0 {
		t.Error("something is left after Close")
	}
}
