package storetest

import (
	"context"
	"runtime"
	"strconv"
	"sync"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func watcherChecks() []check {
	var all []check
	for _, w := range watchCases() {
		all = append(all, check{"Watch: " + w.name, w.run})
	}
	return append(all,
		check{"Watch: keys are added", checkWatchAdds},
		check{"Watch: many of a key", checkManyWatches},
		check{"Watch: its keys need not be the transaction's", checkWatchApart},
		check{"Watch: read, then written in a transaction", checkWatchTransaction},
	)
}

// watchCase is redis-server 7.0.15's behavior of WATCH, MULTI and EXEC.
type watchCase struct {
	name  string
	keys  []store.Key
	after func(t reporter, s store.Store)
	atNs  int64 // of Dirty; t0 if 0
	want  bool
}

// watchedKeys returns a key with 60 s to live, an absent one, and one that expires at t0, all in database 1.
func watchedKeys() (live, absent, expired store.Key) {
	return key(1, "live"), key(1, "absent"), key(1, "expired")
}

func (c watchCase) run(t reporter, s store.Store) {
	watcher := need[store.Watcher](t, s)
	live, _, expired := watchedKeys()
	put(t, s, t0-sec, expired, 1)
	put(t, s, t0, live, 60)
	put(t, s, t0, key(1, "longer"), 90)
	w := watcher.Watch(t0, c.keys)
	defer w.Close()
	for _, k := range c.keys {
		wantTAT(t, s, t0, k, tatOf(t, s, t0, k)) // reads change nothing
	}
	if c.after != nil {
		c.after(t, s)
	}
	atNs := max(c.atNs, t0)
	for range 2 {
		if got := w.Dirty(atNs); got != c.want {
			t.Fatalf("dirty: got %v, want %v", got, c.want)
		}
	}
	w.Close()
	if c.after != nil {
		c.after(t, s) // without a watch
	}
}

func watchCases() []watchCase {
	live, absent, expired := watchedKeys()
	all := []watchCase{
		{name: "no key", want: false, after: func(t reporter, s store.Store) { put(t, s, t0, live, 60) }},
		{name: "nothing happens", keys: []store.Key{live, absent, expired}},
		{name: "live before it expires", keys: []store.Key{live}, atNs: t0 + 60*sec - 1},
		{name: "live and expires", keys: []store.Key{live}, atNs: t0 + 60*sec, want: true},
		{name: "the first of two expires", keys: []store.Key{live, key(1, "longer")}, atNs: t0 + 60*sec, want: true},
		{name: "the last of two expires", keys: []store.Key{key(1, "longer"), live}, atNs: t0 + 60*sec, want: true},
		{name: "absent, and time goes on", keys: []store.Key{absent, expired}, atNs: t0 + 3600*sec},
	}
	for _, cases := range [][]watchCase{watchedWrites(), watchedOther(), watchedFlushes(), watchedTransactions(), watchedExclusives()} {
		all = append(all, cases...)
	}
	return all
}

func watchedWrites() []watchCase {
	live, absent, expired := watchedKeys()
	write := func(k store.Key) func(t reporter, s store.Store) {
		return func(t reporter, s store.Store) { put(t, s, t0, k, 60) }
	}
	deletion := func(k store.Key) func(t reporter, s store.Store) {
		return func(t reporter, s store.Store) { remove(t, s, t0, k) }
	}
	return []watchCase{
		{name: "written", keys: []store.Key{live}, after: write(live), want: true},
		{name: "created", keys: []store.Key{absent}, after: write(absent), want: true},
		{name: "created anew", keys: []store.Key{expired}, after: write(expired), want: true},
		{name: "deleted", keys: []store.Key{live}, after: deletion(live), want: true},
		{name: "deleted with others", keys: []store.Key{live}, want: true, after: func(t reporter, s store.Store) {
			remove(t, s, t0, absent, live, key(1, "longer"))
		}},
		{name: "one of many", keys: []store.Key{absent, live, expired}, after: deletion(live), want: true},
		{name: "changed and changed back", keys: []store.Key{live}, want: true, after: func(t reporter, s store.Store) {
			throttle(t, s, t0, live, limit(99, 1, 60), 1)
			throttle(t, s, t0, live, limit(99, 1, 60), -1)
		}},
		{name: "created and deleted", keys: []store.Key{absent}, want: true, after: func(t reporter, s store.Store) {
			put(t, s, t0, absent, 60)
			remove(t, s, t0, absent)
		}},
		{name: "set", keys: []store.Key{live}, after: set(live, t0+5*sec, store.IfFound), want: true},
		{name: "set to what it was", keys: []store.Key{live}, after: set(live, t0+60*sec, store.Always), want: true},
		{name: "made by SetIf", keys: []store.Key{absent}, after: set(absent, t0+5*sec, store.IfAbsent), want: true},
		{name: "in a batch", keys: []store.Key{live}, want: true, after: func(t reporter, s store.Store) {
			batch := make([]store.Request, 40)
			for i := range batch {
				batch[i] = store.Request{Key: key(1, []string{"live", "others"}[i%2]), Rule: limiter.OfFunnel(limit(99, 1, 60)), Quantity: 1}
			}
			decide(t, s, t0, batch)
		}},
	}
}

func set(k store.Key, tatNs int64, when store.Condition) func(t reporter, s store.Store) {
	return func(t reporter, s store.Store) { wantSetIf(t, s, k, tatNs, when, tatOf(t, s, t0, k)) }
}

// watchedOther lists actions that change no watched key.
func watchedOther() []watchCase {
	live, absent, _ := watchedKeys()
	return []watchCase{
		{name: "absent and deleted", keys: []store.Key{absent}, after: func(t reporter, s store.Store) { remove(t, s, t0, absent) }},
		{name: "not set", keys: []store.Key{live, absent}, after: func(t reporter, s store.Store) {
			set(live, t0+5*sec, store.IfAbsent)(t, s)
			set(absent, t0+5*sec, store.IfFound)(t, s)
			set(absent, t0, store.Always)(t, s)
		}},
		{name: "limited", keys: []store.Key{live}, after: func(t reporter, s store.Store) {
			throttle(t, s, t0, live, limit(0, 1, 60), 1)
		}},
		{name: "probed", keys: []store.Key{live, absent}, after: func(t reporter, s store.Store) {
			throttle(t, s, t0, live, limit(9, 1, 60), 0)
			throttle(t, s, t0, absent, limit(9, 1, 60), 0)
		}},
		{name: "refund of nothing", keys: []store.Key{absent}, after: func(t reporter, s store.Store) {
			throttle(t, s, t0, absent, limit(9, 1, 60), -1)
		}},
		{name: "another key", keys: []store.Key{live}, after: func(t reporter, s store.Store) { put(t, s, t0, absent, 60) }},
		{name: "the name in another database", keys: []store.Key{live}, after: func(t reporter, s store.Store) {
			put(t, s, t0, key(2, "live"), 60)
		}},
	}
}

func watchedFlushes() []watchCase {
	live, absent, expired := watchedKeys()
	flush := func(db uint16) func(t reporter, s store.Store) {
		return func(t reporter, s store.Store) { need[store.Walker](t, s).Flush(context.Background(), db) }
	}
	flushAll := func(t reporter, s store.Store) { need[store.Walker](t, s).FlushAll() }
	return []watchCase{
		{name: "flushed", keys: []store.Key{live}, after: flush(1), want: true},
		{name: "absent and flushed", keys: []store.Key{absent, expired}, after: flush(1)},
		{name: "another database flushed", keys: []store.Key{live}, after: flush(2)},
		{name: "all flushed", keys: []store.Key{live}, after: flushAll, want: true},
		{name: "absent and all flushed", keys: []store.Key{absent, expired}, after: flushAll},
	}
}

func watchedTransactions() []watchCase {
	live, absent, _ := watchedKeys()
	in := func(do func(t reporter, tx store.Transaction)) func(t reporter, s store.Store) {
		return func(t reporter, s store.Store) {
			tx := need[store.Transactor](t, s).Begin(t0, []store.Key{live, absent})
			defer tx.Rollback()
			do(t, tx)
		}
	}
	return []watchCase{
		{name: "by a transaction", keys: []store.Key{live}, want: true, after: in(func(t reporter, tx store.Transaction) {
			remove(t, tx, t0, live)
			tx.Commit()
		})},
		{name: "by a transaction that was released", keys: []store.Key{absent}, want: true, after: in(func(t reporter, tx store.Transaction) {
			tx.Release()
			put(t, tx, t0, absent, 60)
			tx.Commit()
		})},
		{name: "by a transaction that was rolled back", keys: []store.Key{live}, after: in(func(t reporter, tx store.Transaction) {
			remove(t, tx, t0, live)
		})},
		{name: "by a transaction that read", keys: []store.Key{live, absent}, after: in(func(t reporter, tx store.Transaction) {
			throttle(t, tx, t0, live, limit(0, 1, 60), 1)
			remove(t, tx, t0, absent)
			tx.Commit()
		})},
		{name: "set by a transaction to what it was", keys: []store.Key{live}, want: true, after: in(func(t reporter, tx store.Transaction) {
			setAgain(t, tx)
			tx.Commit()
		})},
		{name: "set to a TAT", keys: []store.Key{live}, want: true, after: in(func(t reporter, tx store.Transaction) {
			setTAT(t, tx, live, t0+5*sec)
			tx.Commit()
		})},
	}
}

func watchedExclusives() []watchCase {
	live, absent, _ := watchedKeys()
	in := func(do func(t reporter, x store.Exclusive)) func(t reporter, s store.Store) {
		return func(t reporter, s store.Store) {
			x := need[store.Transactor](t, s).BeginAll(t0)
			defer x.End()
			do(t, x)
		}
	}
	return []watchCase{
		{name: "by an exclusive", keys: []store.Key{live}, want: true, after: in(func(t reporter, x store.Exclusive) {
			remove(t, x, t0, live)
		})},
		{name: "by an exclusive that leaves it as it was", keys: []store.Key{live, absent}, after: in(func(t reporter, x store.Exclusive) {
			x.Save()()
			setTAT(t, x, absent, t0-sec)
		})},
		{name: "set by an exclusive to what it was", keys: []store.Key{live}, want: true, after: in(func(t reporter, x store.Exclusive) {
			setAgain(t, x)
		})},
	}
}

// setAgain sets the live key to its present state.
func setAgain(t reporter, ks store.Keys) {
	live, _, _ := watchedKeys()
	tatNs := tatOf(t, ks, t0, live)
	wantSetIf(t, ks, live, tatNs, store.Always, tatNs)
}

func checkWatchAdds(t reporter, s store.Store) {
	watcher := need[store.Watcher](t, s)
	a, b := key(0, "a"), key(0, "b")
	put(t, s, t0, a, 10)
	buf := []byte("a") // must not be kept
	w := watcher.Watch(t0, []store.Key{{Name: buf}, a})
	defer w.Close()
	buf[0] = 'z'
	put(t, s, t0, key(0, "z"), 60)
	for range 1000 {
		w.Add(t0+sec, []store.Key{a, b})
	}
	if w.Dirty(t0 + 2*sec) {
		t.Fatalf("dirty, and nothing has happened")
	}
	// A key watched after its expiry cannot expire, but a was live at the start.
	w.Add(t0+20*sec, []store.Key{a})
	if !w.Dirty(t0 + 20*sec) {
		t.Fatalf("a key that was watched again lost the time from which it was watched")
	}
	v := watcher.Watch(t0+20*sec, nil)
	defer v.Close()
	v.Add(t0+20*sec, []store.Key{b})
	put(t, s, t0+20*sec, b, 10)
	if !w.Dirty(t0+20*sec) || !v.Dirty(t0+20*sec) {
		t.Fatalf("a key that was added was created, and a watch is not dirty")
	}
}

// checkManyWatches opens and closes watches of the same keys in any order: all open ones notice.
func checkManyWatches(t reporter, s store.Store) {
	watcher, r := need[store.Watcher](t, s), newSource(4, true)
	type opened struct {
		w     store.Watch
		keys  [8]bool
		dirty bool
	}
	var watches []*opened
	keys := numbered(0, "k", len(opened{}.keys))
	for range 5000 {
		switch n := r.IntN(10); {
		case n < 4:
			o := new(opened)
			var some []store.Key
			for range r.IntN(4) {
				i := r.IntN(len(keys))
				o.keys[i] = true
				some = append(some, keys[i])
			}
			o.w = watcher.Watch(t0, some)
			watches = append(watches, o)
		case n < 8 && len(watches) > 0:
			i := r.IntN(len(watches))
			if got := watches[i].w.Dirty(t0); got != watches[i].dirty {
				t.Fatalf("one of %d watches: dirty is %v, want %v", len(watches), got, watches[i].dirty)
			}
			watches[i].w.Close()
			watches[i] = watches[len(watches)-1]
			watches = watches[:len(watches)-1]
		case n == 9 && r.IntN(10) == 0:
			i := r.IntN(len(keys))
			put(t, s, t0, keys[i], 3600)
			remove(t, s, t0, keys[i])
			for _, o := range watches {
				o.dirty = o.dirty || o.keys[i]
			}
		}
	}
	for _, o := range watches {
		o.w.Close()
		o.w.Close()
	}
}

// checkWatchApart watches one key in a transaction and writes another. After changing the first, an observer
// sees the second in its final state.
func checkWatchApart(t reporter, s store.Store) {
	watcher, transactor := need[store.Watcher](t, s), need[store.Transactor](t, s)
	l := limit(1<<20, 1, 3600)
	for i := range 1000 {
		watched, written := key(0, "watched"+strconv.Itoa(i)), key(0, "written"+strconv.Itoa(i))
		w := watcher.Watch(t0, []store.Key{watched})
		var seenNs int64
		var wg sync.WaitGroup
		wg.Go(func() {
			throttle(concurrent{t}, s, t0, watched, l, 1)
			seenNs = tatOf(concurrent{t}, s, t0, written)
		})
		tx := transactor.Begin(t0, []store.Key{written})
		if !w.Dirty(t0) {
			throttle(t, tx, t0, written, l, 1)
		}
		tx.Commit()
		wg.Wait()
		if isNs := tatOf(t, s, t0, written); isNs != seenNs {
			t.Fatalf("a transaction happened after the change of a key that it watched had been seen")
		}
		w.Close()
	}
}

// checkWatchTransaction watches, reads and then begins: a clean watch means an unchanged key.
func checkWatchTransaction(t reporter, s store.Store) {
	const callers, each = 4, 200
	a, b := key(0, "a"), key(0, "b")
	need[store.Watcher](t, s)
	need[store.Transactor](t, s)
	together(t, callers, func(t reporter, _ int) {
		for n := 0; n < each; {
			if watchAndThrottle(t, s, a, b) {
				n++
			}
		}
	})
	for _, k := range []store.Key{a, b} {
		wantTAT(t, s, t0, k, t0+callers*each*3600*sec)
	}
}

// watchAndThrottle takes a unit of both keys, unless the first has changed.
func watchAndThrottle(t reporter, s store.Store, a, b store.Key) bool {
	w := s.(store.Watcher).Watch(t0, []store.Key{a})
	defer w.Close()
	readNs := tatOf(t, s, t0, a)
	runtime.Gosched() // lets others come between
	tx := s.(store.Transactor).Begin(t0, []store.Key{a, b})
	defer tx.Rollback()
	if w.Dirty(t0) {
		return false
	}
	wantTAT(t, tx, t0, a, readNs)
	throttle(t, tx, t0, a, limit(1<<20, 1, 3600), 1)
	throttle(t, tx, t0, b, limit(1<<20, 1, 3600), 1)
	return tx.Commit()
}
