package shard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
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
	batch := []store.Request{{Key: k, Rule: limiter.OfFunnel(l), Quantity: quantity}}
	ks.Throttle(nowNs, batch)
	return batch[0].Result
}

// tatOf is TAT without its error: nothing here has any.
func tatOf(ks store.Keys, nowNs int64, k store.Key) (tatNs int64, ok bool) {
	e, ok, _ := ks.Entry(nowNs, k)
	return e.ExpiresNs, ok
}

// remove is Delete for one key.
func remove(ks store.Keys, nowNs int64, k store.Key) bool {
	deleted, _ := ks.Delete(nowNs, []store.Key{k})
	return deleted == 1
}

// length counts a database's live keys.
func length(s *Store, nowNs int64, db uint16) int {
	counts := make([]store.KeyCount, int(db)+1)
	s.Count(context.Background(), nowNs, counts)
	return counts[db].Keys
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

func TestThrottleDoesNotAllocate(t *testing.T) {
	l := limit(t, 15, 30, 60)
	names := []string{"short", strings.Repeat("long", 20), strings.Repeat("longer", 2000)}
	for _, n := range []int{1, 2, 16, pieceRequests, 2*pieceRequests + 1} {
		s, now := New(), t0
		batch := make([]store.Request, n)
		for i := range batch {
			batch[i] = store.Request{Key: key(uint16(i%2), fmt.Sprint(names[i%3], i/6)), Rule: limiter.OfFunnel(l), Quantity: 1}
		}
		if allocs := testing.AllocsPerRun(1000, func() {
			now += sec
			s.Throttle(now, batch)
		}); allocs != 0 {
			t.Errorf("%v allocations a batch of %d on existing keys, want 0", allocs, n)
		}
	}
}

// TestSetIfFrozen: nothing is set in any way, and vain settings are answered.
func TestSetIfFrozen(t *testing.T) {
	s, there, absent := New(), key(0, "there"), key(0, "absent")
	set := func(ks store.Keys, k store.Key, when store.Condition) error {
		_, _, err := store.SetIf(ks, t0, k, limiter.State{ExpiresNs: t0 + 9*sec}, when)
		return err
	}
	if err := set(s, there, store.Always); err != nil {
		t.Fatal(err)
	}
	for _, fromNs := range []int64{t0, t0 + 1, store.Never} {
		frozen := fromNs == t0
		s.Freeze(fromNs, store.ErrFrozen)
		tx := s.Begin(t0, []store.Key{there, absent})
		inTx := []error{set(tx, there, store.Always), set(tx, absent, store.IfAbsent), set(tx, there, store.IfAbsent)}
		tx.Rollback()
		for _, got := range [][]error{inTx, {set(s, there, store.Always), set(s, absent, store.IfAbsent), set(s, there, store.IfAbsent)}} {
			for i, err := range got {
				if refused := frozen && i < 2; errors.Is(err, store.ErrFrozen) != refused || !refused && err != nil {
					t.Errorf("frozen %t, call %d: %v", frozen, i, err)
				}
			}
		}
	}
}
