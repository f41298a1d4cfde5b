package storetest

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func keyChecks() []check {
	return []check{
		{"order within a batch", checkOrder},
		{"long batches", checkLongBatches},
		{"nothing in a batch", checkEmptyBatch},
		{"expiry", checkExpiry},
		{"debts below a millisecond", checkSmallDebts},
		{"refunds mint no burst", checkRefunds},
		{"probes and limited requests do not write", checkProbes},
		{"limits change from call to call", checkChangedLimits},
		{"delete", checkDelete},
		{"SetIf", checkSetIf},
		{"SetIf: only one makes a key", checkSetIfAbsent},
		{"keys are any bytes", checkAnyBytes},
		{"databases are apart", checkDatabases},
		{"names are not kept", checkNames},
		{"concurrent callers", checkConcurrent},
		{"statistics", checkStats},
	}
}

// checkOrder repeats a key in a batch among others.
func checkOrder(t reporter, s store.Store) {
	for round, n := range []int{1, 2, 3, 4, 5, 16, 127, 128, 129, 1000} {
		capacity := int64(n+1) / 2
		l, hot := limit(capacity-1, 1, 3600), key(uint16(round), "hot")
		var batch []store.Request
		for i := range n {
			batch = append(batch, store.Request{Key: hot, Rule: limiter.OfFunnel(l), Quantity: 1})
			if i%3 == 0 {
				batch = append(batch, store.Request{Key: numbered(uint16(round), "other", 7)[i%7], Rule: limiter.OfFunnel(l), Quantity: 1})
			}
		}
		passed := int64(0)
		for i, q := range decide(t, s, t0, batch) {
			if string(q.Key.Name) != "hot" {
				continue
			}
			passed++
			if limited := passed > capacity; q.Result.Limited != limited || !limited && q.Result.Remaining != capacity-passed {
				t.Fatalf("request %d of %d, number %d for a key that passes %d: %+v", i, len(batch), passed, capacity, q.Result)
			}
		}
	}
}

func checkLongBatches(t reporter, s store.Store) {
	r, m := newSource(2, true), model{}
	for round := range int64(60) {
		batch := make([]store.Request, r.IntN(500))
		for i := range batch {
			batch[i] = r.request()
		}
		m.decide(t, s, t0+round*sec, batch)
	}
}

func checkEmptyBatch(t reporter, s store.Store) {
	decide(t, s, t0, nil)
	decide(t, s, t0, []store.Request{})
	wantDeleted(t, s, t0, nil, 0)
}

// checkExpiry: keys expire to the nanosecond, for every operation.
func checkExpiry(t reporter, s store.Store) {
	k, l := key(3, "k"), limit(0, 1, 1)
	for round, at := range []int64{t0, t0 + 10*sec + 1, t0 + 20*sec + 999_999_999} {
		if throttle(t, s, at, k, l, 1).Limited {
			t.Fatalf("round %d: an expired key was limited", round)
		}
		wantTAT(t, s, at, k, at+sec)
		if r := throttle(t, s, at+sec-1, k, l, 1); !r.Limited {
			t.Fatalf("round %d: passed 1 ns too early", round)
		}
		wantTAT(t, s, at+sec-1, k, at+sec)
		wantTAT(t, s, at+sec, k, 0)
		wantDeleted(t, s, at+sec, []store.Key{k}, 0)
		fresh := funnel.Result{Limit: 1, Remaining: 1, RetryAfter: -1}
		if r := throttle(t, s, at+sec, k, l, 0); r != fresh {
			t.Fatalf("round %d: an expired key: got %+v, want %+v", round, r, fresh)
		}
	}
}

func checkSmallDebts(t reporter, s store.Store) {
	k, l := key(0, "k"), limit(0, 1500, 1)
	const intervalNs = sec / 1500
	nowNs := t0
	for range 100 {
		if throttle(t, s, nowNs, k, l, 1).Limited {
			t.Fatalf("limited after its interval of %d ns", intervalNs)
		}
		for _, earlyNs := range []int64{intervalNs - 1, intervalNs / 2, 1} {
			if !throttle(t, s, nowNs+intervalNs-earlyNs, k, l, 1).Limited {
				t.Fatalf("passed %d ns too early", earlyNs)
			}
		}
		nowNs += intervalNs
	}
}

func checkRefunds(t reporter, s store.Store) {
	l := limit(4, 1, 10)
	for i, refund := range []int64{-1, -3, -5, -1000, math.MinInt64 + 1, math.MinInt64} {
		for taken := range int64(6) {
			k := numbered(uint16(i), "k", 6)[taken]
			throttle(t, s, t0, k, l, taken)
			if r := throttle(t, s, t0, k, l, refund); r.Limited {
				t.Fatalf("a refund of %d was limited", refund)
			}
			left := max(min(taken, 5)+max(refund, -10), 0)
			wantTAT(t, s, t0, k, t0+left*10*sec)
			for n := int64(0); ; n++ {
				if throttle(t, s, t0, k, l, 1).Limited {
					if n != 5-left {
						t.Fatalf("%d passed after %d and a refund of %d, want %d", n, taken, refund, 5-left)
					}
					break
				}
			}
		}
	}
}

func checkProbes(t reporter, s store.Store) {
	l, absent, live := limit(4, 1, 10), key(0, "absent"), key(0, "live")
	throttle(t, s, t0, live, l, 3)
	for _, q := range []struct {
		quantity int64
		limit    funnel.Limit
	}{{0, l}, {0, limit(0, 1, 1)}, {6, l}, {math.MaxInt64, l}, {3, l}, {1, limit(0, 1, 1)}} {
		throttle(t, s, t0, live, q.limit, q.quantity)
		wantTAT(t, s, t0, live, t0+30*sec)
		if q.quantity == 0 || q.quantity > 5 {
			throttle(t, s, t0, absent, q.limit, q.quantity)
			wantTAT(t, s, t0, absent, 0)
		}
	}
	throttle(t, s, t0, absent, l, -1)
	wantTAT(t, s, t0, absent, 0)
}

// checkChangedLimits: a TAT is absolute.
func checkChangedLimits(t reporter, s store.Store) {
	k, wide, narrow := key(0, "k"), limit(99, 1, 60), limit(0, 1, 1)
	throttle(t, s, t0, k, wide, 10)
	if r := throttle(t, s, t0, k, narrow, 1); !r.Limited || r.RetryAfter != 600 {
		t.Fatalf("a narrower limit: got %+v, want 600 s", r)
	}
	if r := throttle(t, s, t0+599*sec, k, limit(1, 1, 1), 1); r.Limited || r.Remaining != 0 {
		t.Fatalf("another interval: got %+v", r)
	}
	wantTAT(t, s, t0+599*sec, k, t0+601*sec)
}

func checkDelete(t reporter, s store.Store) {
	keys := numbered(1, "k", 40)
	for i, k := range keys {
		put(t, s, t0, k, int64(1+i))
	}
	nowNs := t0 + 10*sec // keys 0 to 9 have expired
	wantDeleted(t, s, nowNs, keys[5:15], 5)
	wantDeleted(t, s, nowNs, keys[5:15], 0)
	wantDeleted(t, s, nowNs, []store.Key{keys[20], key(1, "k20"), key(0, "k20"), keys[21], keys[20]}, 2)
	wantDeleted(t, s, nowNs, keys[39:], 1)
	for i, k := range keys {
		wantNs := t0 + int64(1+i)*sec
		if i < 15 || i == 20 || i == 21 || i == 39 {
			wantNs = 0
		}
		wantTAT(t, s, nowNs, k, wantNs)
	}
	put(t, s, nowNs, keys[20], 60) // as if new
	wantTAT(t, s, nowNs, keys[20], nowNs+60*sec)
}

// anyNames returns names with shared prefixes, separators and binary bytes.
func anyNames() []string {
	names := []string{"", "\x00", "\x00\x00", "a", "a\x00", "a\x00b", "\xff\xfe", "\xc3", "\xc3\x28", "\r\n", " ", "{a}", "{a}b", "*"}
	for _, n := range []int{7, 8, 15, 16, 17, 18, 31, 32, 255, 256, 257, 4096, 1<<16 - 1, 1 << 16} {
		names = append(names, strings.Repeat("k", n), strings.Repeat("k", n-1)+"\x00")
	}
	return names
}

func checkAnyBytes(t reporter, s store.Store) {
	names, l := anyNames(), limit(999, 1, 60)
	for i, name := range names {
		throttle(t, s, t0, key(0, name), l, int64(1+i))
	}
	for i, name := range names {
		wantTAT(t, s, t0, key(0, name), t0+int64(1+i)*60*sec)
		if i%2 == 0 {
			wantDeleted(t, s, t0, []store.Key{key(0, name)}, 1)
		}
	}
	for i, name := range names {
		wantTAT(t, s, t0, key(0, name), t0+int64((1+i)*(i%2))*60*sec)
	}
}

func checkDatabases(t reporter, s store.Store) {
	l, dbs := limit(999, 1, 60), []uint16{0, 1, 2, 15, 16, 255, 256, 32767, 65535}
	for _, name := range []string{"", "k", "\x01\x00", strings.Repeat("long", 20)} {
		for i, db := range dbs {
			wantTAT(t, s, t0, key(db, name), 0)
			throttle(t, s, t0, key(db, name), l, int64(1+i))
		}
		for i, db := range dbs {
			wantTAT(t, s, t0, key(db, name), t0+int64(1+i)*60*sec)
		}
		wantDeleted(t, s, t0, []store.Key{key(1, name)}, 1)
		wantTAT(t, s, t0, key(0, name), t0+60*sec)
		wantTAT(t, s, t0, key(2, name), t0+3*60*sec)
	}
}

// checkNames overwrites names after each call, and batches that are answered later.
func checkNames(t reporter, s store.Store) {
	l := limit(0, 1, 3600)
	for round, n := range []int{1, 8, 16, 17, 100, 5000, 1 << 16} {
		db := uint16(round)
		buf := make([]byte, 3*n)
		write := func() []store.Key {
			keys := make([]store.Key, 3)
			for i := range keys {
				keys[i] = store.Key{DB: db, Name: buf[i*n : (i+1)*n]}
				copy(keys[i].Name, strings.Repeat(string(rune('a'+i)), n))
			}
			return keys
		}
		overwrite := func() { copy(buf, strings.Repeat("z", len(buf))) }
		var batch []store.Request
		for _, k := range write() {
			batch = append(batch, store.Request{Key: k, Rule: limiter.OfFunnel(l), Quantity: 1})
		}
		p := s.Throttle(t0, batch)
		overwrite()
		if p != nil {
			clear(batch)
			wait(t, p)
		}
		wantTAT(t, s, t0, key(db, strings.Repeat("z", n)), 0)
		keys := write()
		for _, k := range keys {
			wantTAT(t, s, t0, k, t0+3600*sec)
		}
		wantDeleted(t, s, t0, keys[:1], 1)
		overwrite()
		wantTAT(t, s, t0, key(db, strings.Repeat("a", n)), 0)
		wantTAT(t, s, t0, key(db, strings.Repeat("b", n)), t0+3600*sec)
	}
}

// checkConcurrent runs callers on a common key and on keys of their own that come and go.
func checkConcurrent(t reporter, s store.Store) {
	const callers, batches, size, burst = 8, 100, 5, 1999
	hot, l := key(0, "hot"), limit(burst, 1, 3600)
	var passed atomic.Int64
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			t, own := concurrent{t}, numbered(1, "own", callers)[g]
			for range batches {
				batch := []store.Request{{Key: own, Rule: limiter.OfFunnel(l), Quantity: 1}}
				for range size {
					batch = append(batch, store.Request{Key: hot, Rule: limiter.OfFunnel(l), Quantity: 1})
				}
				for _, q := range decide(t, s, t0, batch)[1:] {
					if !q.Result.Limited {
						passed.Add(1)
					}
				}
				wantTAT(t, s, t0, own, t0+3600*sec)
				wantDeleted(t, s, t0, []store.Key{own, numbered(2, "absent", callers)[g]}, 1)
			}
		})
	}
	wg.Wait()
	if passed.Load() != burst+1 {
		t.Fatalf("%d of %d requests passed, want %d", passed.Load(), callers*batches*size, burst+1)
	}
}

// checkStats: requests are counted and added to the given figures.
func checkStats(t reporter, s store.Store) {
	got := store.Stats{Allowed: 1000, Limited: 1000, Requested: 1000, Granted: 1000}
	s.UpdateStats(&got)
	for i, k := range numbered(0, "k", 3) {
		// of 6 units: the second 3 and the 7 are too much
		for _, quantity := range []int64{int64(1 + i), 3, 3, 0, -1, 7} {
			throttle(t, s, t0, k, limit(5, 1, 60), quantity)
		}
	}
	s.UpdateStats(&got)
	got = store.Stats{Allowed: got.Allowed, Limited: got.Limited, Requested: got.Requested, Granted: got.Granted}
	if want := (store.Stats{Allowed: 1012, Limited: 1006, Requested: 1045, Granted: 1015}); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}
