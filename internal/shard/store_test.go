package shard

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/store"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)
)

func limit(t testing.TB, maxBurst, count, periodSec int64) funnel.Limit {
	t.Helper()
	l, err := funnel.NewLimit(funnel.Burst, maxBurst, count, periodSec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func key(db uint16, name string) store.Key { return store.Key{DB: db, Name: []byte(name)} }

// one is Throttle for one request.
func one(ks store.Keys, nowNs int64, k store.Key, l funnel.Limit, quantity int64) funnel.Result {
	batch := []store.Request{{Key: k, Limit: l, Quantity: quantity}}
	ks.Throttle(nowNs, batch)
	return batch[0].Result
}

// tatOf is TAT without its error: nothing here has any.
func tatOf(ks store.Keys, nowNs int64, k store.Key) (tatNs int64, ok bool) {
	tatNs, ok, _ = ks.TAT(nowNs, k)
	return tatNs, ok
}

// remove is Delete for one key.
func remove(ks store.Keys, nowNs int64, k store.Key) bool {
	deleted, _ := ks.Delete(nowNs, []store.Key{k})
	return deleted == 1
}

// length counts a database's live keys.
func length(s *Store, nowNs int64, db uint16) int {
	counts := make([]int, int(db)+1)
	s.Count(nowNs, counts)
	return counts[db]
}

func TestBatchIsAnsweredInOrder(t *testing.T) {
	s, l := New(), limit(t, 1, 1, 1)
	batch := make([]store.Request, 4)
	for i := range batch {
		batch[i] = store.Request{Key: key(0, "k"), Limit: l, Quantity: 1}
	}
	batch[2].Key = key(1, "k") // another database: another key
	s.Throttle(t0, batch)
	want := []funnel.Result{
		{Limit: 2, Remaining: 1, RetryAfterSec: -1, ResetAfterSec: 1},
		{Limit: 2, Remaining: 0, RetryAfterSec: -1, ResetAfterSec: 2},
		{Limit: 2, Remaining: 1, RetryAfterSec: -1, ResetAfterSec: 1},
		{Limited: true, Limit: 2, RetryAfterSec: 1, ResetAfterSec: 2},
	}
	for i, q := range batch {
		if q.Result != want[i] {
			t.Errorf("request %d: got %+v, want %+v", i, q.Result, want[i])
		}
	}
}

// TestLongBatches: a batch beyond what is sorted at a time, with keys again and again, is answered in order.
func TestLongBatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	s, m, l := New(), model{}, limit(t, 20, 1, 1)
	for round := range 200 {
		now := t0 + int64(round)*sec
		batch := make([]store.Request, rng.IntN(3*pieceRequests))
		for i := range batch {
			batch[i] = store.Request{Key: key(uint16(rng.IntN(2)), fmt.Sprint(rng.IntN(50))), Limit: l, Quantity: rng.Int64N(4) - 1}
		}
		s.Throttle(now, batch)
		for i, q := range batch {
			if want := m.throttle(now, q.Key, l, q.Quantity); q.Result != want {
				t.Fatalf("round %d, request %d of %d: got %+v, want %+v", round, i, len(batch), q.Result, want)
			}
		}
	}
}

func TestKeysAreAnyBytes(t *testing.T) {
	s, l := New(), limit(t, 0, 1, 60)
	names := []string{"", "\x00", "\x00\x00", "\xff\xfe", "a", strings.Repeat("k", 19), strings.Repeat("k", 20),
		strings.Repeat("k", 21), strings.Repeat("k", 255), strings.Repeat("k", 4096)}
	for _, n := range names {
		if r := one(s, t0, key(0, n), l, 1); r.Limited {
			t.Errorf("key %.30q: limited at its first call", n)
		}
	}
	for _, n := range names {
		if r := one(s, t0, key(0, n), l, 1); !r.Limited {
			t.Errorf("key %.30q: passed twice", n)
		}
	}
	if n := length(s, t0, 0); n != len(names) {
		t.Errorf("Count: got %d, want %d", n, len(names))
	}
}

func TestExpiredIsAbsentForEveryReaderAtOnce(t *testing.T) {
	s, l, k := New(), limit(t, 0, 1, 1), key(3, "k")
	one(s, t0, k, l, 1)
	for _, tt := range []struct {
		nowNs int64
		live  bool
	}{{t0, true}, {t0 + sec - 1, true}, {t0 + sec, false}, {t0 + 2*sec, false}} {
		_, ok := tatOf(s, tt.nowNs, k)
		tx := s.Begin(tt.nowNs, []store.Key{k})
		_, exists := tatOf(tx, tt.nowNs, k)
		tx.Rollback()
		if n := length(s, tt.nowNs, 3); ok != tt.live || exists != tt.live || (n == 1) != tt.live {
			t.Errorf("%d ns later: TAT %v, Exists %v, Count %d, want live %v", tt.nowNs-t0, ok, exists, n, tt.live)
		}
	}
}

func TestFullRefundAndProbeLeaveNoEntry(t *testing.T) {
	s, l := New(), limit(t, 4, 1, 10)
	one(s, t0, key(0, "probe"), l, 0)
	one(s, t0, key(0, "too much"), l, 6)
	one(s, t0, key(0, "refund of nothing"), l, -1)
	one(s, t0, key(0, "refunded"), l, 2)
	one(s, t0, key(0, "refunded"), l, -2)
	var st store.Stats
	if s.UpdateStats(&st); st.Keys != 0 || st.Allowed != 4 || st.Limited != 1 {
		t.Errorf("got %+v, want no keys, 4 allowed, 1 limited", st)
	}
}

func TestFlush(t *testing.T) {
	s, l := New(), limit(t, 0, 1, 60)
	for i := range 1000 {
		one(s, t0, key(uint16(i%3), fmt.Sprint(i)), l, 1)
	}
	s.Flush(1)
	if a, b, c := length(s, t0, 0), length(s, t0, 1), length(s, t0, 2); a != 334 || b != 0 || c != 333 {
		t.Errorf("after Flush(1): %d, %d, %d keys", a, b, c)
	}
	s.FlushAll()
	if a, c := length(s, t0, 0), length(s, t0, 2); a != 0 || c != 0 {
		t.Errorf("after FlushAll: %d, %d keys", a, c)
	}
}

func TestExactlyTheLimitPassesUnderConcurrency(t *testing.T) {
	const callers, each, burst = 16, 500, 999
	s, l := New(), limit(t, burst, 1, 3600)
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				if !one(s, t0, key(0, "hot"), l, 1).Limited {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if passed.Load() != burst+1 {
		t.Errorf("%d of %d calls passed, want %d", passed.Load(), callers*each, burst+1)
	}
}

func TestThrottleDoesNotAllocate(t *testing.T) {
	l := limit(t, 15, 30, 60)
	names := []string{"short", strings.Repeat("long", 20), strings.Repeat("longer", 2000)}
	for _, n := range []int{1, 2, 16, pieceRequests, 2*pieceRequests + 1} {
		s, now := New(), t0
		batch := make([]store.Request, n)
		for i := range batch {
			batch[i] = store.Request{Key: key(uint16(i%2), fmt.Sprint(names[i%3], i/6)), Limit: l, Quantity: 1}
		}
		if allocs := testing.AllocsPerRun(1000, func() {
			now += sec
			s.Throttle(now, batch)
		}); allocs != 0 {
			t.Errorf("%v allocations a batch of %d on existing keys, want 0", allocs, n)
		}
	}
}
