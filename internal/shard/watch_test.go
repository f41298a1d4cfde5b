package shard

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
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

// TestWatch is what redis-server 7.0.15 does with WATCH, MULTI and EXEC, as far as it has the commands.
func TestWatch(t *testing.T) {
	live, absent, expired := key(1, "live"), key(1, "absent"), key(1, "expired")
	for _, tt := range []struct {
		name  string
		keys  []store.Key
		after func(s *Store)
		atNs  int64 // the time of Dirty; t0 if 0
		want  bool
	}{
		{name: "nothing happens", keys: []store.Key{live, absent, expired}},
		{name: "written", keys: []store.Key{live}, after: func(s *Store) { put(t, s, t0, live, 60) }, want: true},
		{name: "created", keys: []store.Key{absent}, after: func(s *Store) { put(t, s, t0, absent, 60) }, want: true},
		{name: "created anew", keys: []store.Key{expired}, after: func(s *Store) { put(t, s, t0, expired, 60) }, want: true},
		{name: "deleted", keys: []store.Key{live}, after: func(s *Store) { remove(s, t0, live) }, want: true},
		{name: "absent and deleted", keys: []store.Key{absent}, after: func(s *Store) { remove(s, t0, absent) }},
		{name: "one of many", keys: []store.Key{absent, live, expired}, after: func(s *Store) { remove(s, t0, live) }, want: true},
		{name: "changed and changed back", keys: []store.Key{live}, want: true, after: func(s *Store) {
			one(s, t0, live, limit(t, 99, 1, 60), 1)
			one(s, t0, live, limit(t, 99, 1, 60), -1)
		}},
		{name: "created and deleted", keys: []store.Key{absent}, want: true, after: func(s *Store) {
			put(t, s, t0, absent, 60)
			remove(s, t0, absent)
		}},
		{name: "limited", keys: []store.Key{live}, after: func(s *Store) { one(s, t0, live, limit(t, 0, 1, 60), 1) }},
		{name: "probed", keys: []store.Key{live, absent}, after: func(s *Store) {
			one(s, t0, live, limit(t, 9, 1, 60), 0)
			one(s, t0, absent, limit(t, 9, 1, 60), 0)
		}},
		{name: "refund of nothing", keys: []store.Key{absent}, after: func(s *Store) { one(s, t0, absent, limit(t, 9, 1, 60), -1) }},
		{name: "read", keys: []store.Key{live}, after: func(s *Store) { s.TAT(t0, live) }},
		{name: "another key", keys: []store.Key{live}, after: func(s *Store) { put(t, s, t0, absent, 60) }},
		{name: "the name in another database", keys: []store.Key{live}, after: func(s *Store) { put(t, s, t0, key(2, "live"), 60) }},
		{name: "in a batch", keys: []store.Key{live}, want: true, after: func(s *Store) {
			batch := make([]store.Request, 40)
			for i := range batch {
				batch[i] = store.Request{Key: key(1, []string{"live", "others"}[i%2]), Limit: limit(t, 99, 1, 60), Quantity: 1}
			}
			s.Throttle(t0, batch)
		}},
		{name: "by a transaction", keys: []store.Key{live}, want: true, after: func(s *Store) {
			tx := s.Begin(t0, []store.Key{live})
			remove(tx, t0, live)
			tx.Commit()
		}},
		{name: "by a transaction that was released", keys: []store.Key{absent}, want: true, after: func(s *Store) {
			tx := s.Begin(t0, []store.Key{absent})
			tx.Release()
			one(tx, t0, absent, limit(t, 9, 1, 60), 1)
			tx.Commit()
		}},
		{name: "by a transaction that did not commit", keys: []store.Key{live}, after: func(s *Store) {
			tx := s.Begin(t0, []store.Key{live})
			remove(tx, t0, live)
			tx.Rollback()
		}},
		{name: "by a transaction that read", keys: []store.Key{live, absent}, after: func(s *Store) {
			tx := s.Begin(t0, []store.Key{live, absent})
			one(tx, t0, live, limit(t, 0, 1, 60), 1)
			remove(tx, t0, absent)
			tx.Commit()
		}},
		{name: "by an exclusive", keys: []store.Key{live}, want: true, after: func(s *Store) {
			x := s.BeginAll(t0)
			defer x.End()
			remove(x, t0, live)
		}},
		{name: "flushed", keys: []store.Key{live}, after: func(s *Store) { s.Flush(1) }, want: true},
		{name: "absent and flushed", keys: []store.Key{absent, expired}, after: func(s *Store) { s.Flush(1) }},
		{name: "another database flushed", keys: []store.Key{live}, after: func(s *Store) { s.Flush(2) }},
		{name: "all flushed", keys: []store.Key{live}, after: (*Store).FlushAll, want: true},
		{name: "absent and all flushed", keys: []store.Key{absent, expired}, after: (*Store).FlushAll},
		{name: "live before it expires", keys: []store.Key{live}, atNs: t0 + 60*sec - 1},
		{name: "live and expires", keys: []store.Key{live}, atNs: t0 + 60*sec, want: true},
		{name: "the first of two expires", keys: []store.Key{live, key(1, "longer")}, atNs: t0 + 60*sec, want: true},
		{name: "the last of two expires", keys: []store.Key{key(1, "longer"), live}, atNs: t0 + 60*sec, want: true},
		{name: "swept", keys: []store.Key{live}, after: func(s *Store) { sweepOnce(s, t0+60*sec) }, want: true},
		{name: "expired and swept", keys: []store.Key{expired}, after: func(s *Store) { sweepOnce(s, t0) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(4)
			put(t, s, t0-sec, expired, 1)
			put(t, s, t0, live, 60)
			put(t, s, t0, key(1, "longer"), 90)
			w := s.Watch(t0, tt.keys)
			if tt.after != nil {
				tt.after(s)
			}
			if tt.atNs == 0 {
				tt.atNs = t0
			}
			if got := w.Dirty(tt.atNs); got != tt.want {
				t.Errorf("dirty: got %v, want %v", got, tt.want)
			}
			w.Close()
			w.Close()
			if entries, maps := watchedKeys(s); entries != 0 || maps != 0 {
				t.Errorf("after Close %d keys are watched in %d shards", entries, maps)
			}
		})
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
	// What is watched from when it has expired does not expire, but a was live when its watch began.
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

// TestManyWatchers opens and closes watches of the same keys in any order: all that are open notice.
func TestManyWatchers(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	s := newStore(4)
	type open struct {
		w     store.Watch
		keys  map[int]bool
		dirty bool
	}
	var watches []*open
	for range 20_000 {
		switch n := rng.IntN(10); {
		case n < 4:
			o := &open{keys: map[int]bool{}}
			var keys []store.Key
			for range rng.IntN(4) {
				i := rng.IntN(8)
				o.keys[i] = true
				keys = append(keys, key(0, fmt.Sprint(i)))
			}
			o.w = s.Watch(t0, keys)
			watches = append(watches, o)
		case n < 8 && len(watches) > 0:
			i := rng.IntN(len(watches))
			if watches[i].w.Dirty(t0) != watches[i].dirty {
				t.Fatalf("dirty: got %v, want %v", watches[i].w.Dirty(t0), watches[i].dirty)
			}
			watches[i].w.Close()
			watches[i] = watches[len(watches)-1]
			watches = watches[:len(watches)-1]
		case n == 9 && rng.IntN(10) == 0:
			i := rng.IntN(8)
			put(t, s, t0, key(0, fmt.Sprint(i)), 3600)
			remove(s, t0, key(0, fmt.Sprint(i)))
			for _, o := range watches {
				o.dirty = o.dirty || o.keys[i]
			}
		}
	}
	for _, o := range watches {
		o.w.Close()
	}
	if entries, maps := watchedKeys(s); entries != 0 || maps != 0 {
		t.Errorf("%d keys are watched in %d shards after all were closed", entries, maps)
	}
}

// TestWatchedKeysNeedNoLock has a transaction that watches one key and locks another. Who has changed the first
// and then looks at the second sees that as it will stay: the transaction is over, or it will not happen.
func TestWatchedKeysNeedNoLock(t *testing.T) {
	s, l := New(), limit(t, 1<<20, 1, 3600)
	watched, written := key(0, "watched"), key(0, "written")
	happened := 0
	for range 3000 {
		w := s.Watch(t0, []store.Key{watched})
		var seenNs int64
		var wg sync.WaitGroup
		wg.Go(func() {
			one(s, t0, watched, l, 1)
			seenNs, _ = tatOf(s, t0, written)
		})
		tx := s.Begin(t0, []store.Key{written})
		if !w.Dirty(t0) {
			one(tx, t0, written, l, 1)
			happened++
		}
		tx.Commit()
		wg.Wait()
		if isNs, _ := tatOf(s, t0, written); isNs != seenNs {
			t.Fatalf("a transaction happened after the change of a key that it watched had been seen")
		}
		w.Close()
	}
	t.Logf("%d of 3000 happened", happened)
}

// TestWatchIsATransaction has callers that watch and read a key, and then lock it: not dirty, it is as it was.
func TestWatchIsATransaction(t *testing.T) {
	s, l := New(), limit(t, 1<<20, 1, 3600)
	a, b := key(0, "a"), key(0, "b")
	var done atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := 0; n < 300; {
				w := s.Watch(t0, []store.Key{a})
				readNs, _ := tatOf(s, t0, a)
				tx := s.Begin(t0, []store.Key{a, b})
				if !w.Dirty(t0) {
					if nowNs, _ := tatOf(tx, t0, a); nowNs != readNs {
						t.Errorf("not dirty, but the TAT was %d and is %d", readNs, nowNs)
					}
					one(tx, t0, a, l, 1)
					one(tx, t0, b, l, 1)
					done.Add(1)
					n++
				}
				tx.Commit()
				w.Close()
			}
		})
	}
	wg.Wait()
	for _, k := range []store.Key{a, b} {
		if r := one(s, t0, k, l, 0); r.Limit-r.Remaining != done.Load() {
			t.Errorf("%s: %d units, want %d", k.Name, r.Limit-r.Remaining, done.Load())
		}
	}
	if entries, maps := watchedKeys(s); entries != 0 || maps != 0 {
		t.Errorf("%d keys are still watched in %d shards", entries, maps)
	}
}
