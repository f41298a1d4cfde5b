package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// scanner is what has a Scan: a Store, and an exclusive.
type scanner interface {
	Scan(nowNs int64, db uint16, cursor uint64, count int, visit func(key store.Key, e store.Entry)) (next uint64)
}

// walk scans a database and counts visits by key. It calls between after each Scan.
func walk(t testing.TB, s scanner, nowNs int64, db uint16, count int, between func()) map[string]int {
	t.Helper()
	met := map[string]int{}
	for cursor, calls := uint64(0), 0; ; calls++ {
		next := s.Scan(nowNs, db, cursor, count, func(k store.Key, _ store.Entry) { met[string(k.Name)]++ })
		if next == 0 {
			return met
		}
		if next <= cursor || next >= 1<<cursorBits {
			t.Fatalf("cursor %d after %d", next, cursor)
		}
		if calls > 1_000_000 {
			t.Fatal("the walk does not end")
		}
		cursor = next
		if between != nil {
			between()
		}
	}
}

func TestScanMeetsEveryKeyOnce(t *testing.T) {
	longer := strings.Repeat("long", 20)
	for _, keys := range []int{0, 1, 10, 3000} {
		s := newStore(4)
		want := [3]map[string]bool{{}, {}, {}}
		for i := range keys {
			for db := range want {
				name := fmt.Sprint(i, longer[:i%70])
				if i < 40 && i%10 == 7 {
					name = strings.Repeat("x", []int{500, 1500, arenaKeyBytes - 2, 5000}[i/10]) + name
				}
				put(t, s, t0-sec, key(uint16(db*300), fmt.Sprint("expired", i)), 1)
				put(t, s, t0, key(uint16(db*300), name), int64(60+i))
				want[db][name] = true
			}
		}
		checkWalks(t, s, want)
		x := s.BeginAll(t0)
		checkWalks(t, x, want)
		x.End()
	}
}

// checkWalks walks databases 0, 300 and 600 with all sorts of counts.
func checkWalks(t *testing.T, s scanner, want [3]map[string]bool) {
	t.Helper()
	for _, count := range []int{-1, 1, 2, 10, 64, 1000, 1 << 30} {
		for db := range want {
			got := walk(t, s, t0, uint16(db*300), count, nil)
			for name, n := range got {
				if n != 1 || !want[db][name] {
					t.Fatalf("database %d, %q was met %d times", db, name, n)
				}
			}
			if len(got) != len(want[db]) {
				t.Fatalf("%T, count %d: met %d keys, want %d", s, count, len(got), len(want[db]))
			}
		}
	}
}

func TestScanCounts(t *testing.T) {
	s := newStore(4)
	fill(t, s, t0, 10_000, "k", 60)
	for _, count := range []int{1, 10, 100, 1000, 5000} {
		n := 0
		next := s.Scan(t0, 0, 0, count, func(store.Key, store.Entry) { n++ })
		if n != count || next == 0 {
			t.Errorf("count %d: %d keys, cursor %d", count, n, next)
		}
	}
	n := 0
	if next := s.Scan(t0, 0, 0, 10_000, func(store.Key, store.Entry) { n++ }); n != 10_000 || next != 0 && !isLast(s, next) {
		t.Errorf("all: %d keys, cursor %d", n, next)
	}
}

func isLast(s *Store, cursor uint64) bool {
	n := 0
	return s.Scan(t0, 0, cursor, 1, func(store.Key, store.Entry) { n++ }) == 0 && n == 0
}

// TestCutScan: a cursor cannot separate keys that share its bits.
func TestCutScan(t *testing.T) {
	const p = 1 << cursorShift // from one prefix to the next
	for _, tt := range []struct {
		found []uint64
		count int
		want  []uint64
	}{
		{nil, 1, nil},
		{[]uint64{3 * p, p}, 2, []uint64{3 * p, p}},
		{[]uint64{3 * p, p, 2 * p}, 1, []uint64{p}},
		{[]uint64{3 * p, p, 2 * p}, 2, []uint64{p, 2 * p}},
		{[]uint64{3 * p, p + 5, 2 * p, p}, 1, []uint64{p, p + 5}},
		{[]uint64{p + 5, p + 1, 2 * p, p}, 2, []uint64{p, p + 1, p + 5}},
		{[]uint64{2 * p, p + 5, p + 1, p}, 3, []uint64{p, p + 1, p + 5}},
		{[]uint64{p + 5, p + 1, p}, 1, []uint64{p, p + 1, p + 5}},
	} {
		found := slices.Clone(tt.found)
		if n := cutScan(found, tt.count); !slices.Equal(found[:n], tt.want) {
			t.Errorf("%x, count %d: got %x, want %x", tt.found, tt.count, found[:n], tt.want)
		}
	}
}

// TestScanUnderChanges inserts, deletes, expires and sweeps between calls: lasting keys are met once, and
// others not twice unless re-created.
func TestScanUnderChanges(t *testing.T) {
	for round := range 40 {
		rng := rand.New(rand.NewPCG(9, uint64(round)))
		s, now := newStore(1+round%4), t0
		sweeper := NewSweeper(s)
		throughout, came := map[string]bool{}, map[string]int{}
		name := func() string { return strings.Repeat(fmt.Sprint(rng.IntN(20_000)), 1+rng.IntN(4)) }
		insert := func(ttlSec int64) {
			n := name()
			if _, live := tatOf(s, now, key(0, n)); !live {
				put(t, s, now, key(0, n), ttlSec)
				came[n]++
			}
		}
		for range rng.IntN(2000) {
			insert(1 + rng.Int64N(2)*1_000_000)
		}
		s.Scan(now+sec, 0, 0, 1<<30, func(k store.Key, _ store.Entry) { throughout[string(k.Name)] = true })
		growing := round%2 == 0
		met := walk(t, movingClock{s, &now}, now, 0, 2+rng.IntN(40), func() {
			now = min(now+sec/20, t0+sec*3/2)
			for range 30 {
				if growing {
					insert(1 + rng.Int64N(2)*1_000_000)
					continue
				}
				n := name()
				remove(s, now, key(0, n))
				delete(throughout, n)
				sweeper.Step(now)
			}
		})
		for n := range throughout {
			if _, live := tatOf(s, now, key(0, n)); live && met[n] == 0 {
				t.Errorf("round %d: the walk missed %q", round, n)
			}
		}
		for n, times := range met {
			if times > came[n] {
				t.Errorf("round %d: %q was met %d times and came %d times", round, n, times, came[n])
			}
		}
	}
}

// movingClock is a Store at a time that goes on.
type movingClock struct {
	s     *Store
	nowNs *int64
}

func (m movingClock) Scan(_ int64, db uint16, cursor uint64, count int, visit func(key store.Key, e store.Entry)) uint64 {
	return m.s.Scan(*m.nowNs, db, cursor, count, visit)
}

// TestScanUnderWriters walks beside splits, merges, rebuilds and removals.
func TestScanUnderWriters(t *testing.T) {
	const stays, walks = 3000, 30
	s := newStore(4)
	fill(t, s, t0, stays, "stays:", 1_000_000)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for g := range 2 {
		wg.Go(func() {
			sweeper := NewSweeper(s)
			for now := t0; ctx.Err() == nil; now += 2 * sec {
				for i := range 2000 {
					put(t, s, now, key(0, fmt.Sprint("goes:", g, i)), 1)
					if i%3 == 0 {
						remove(s, now, key(0, fmt.Sprint("goes:", g, i)))
					}
				}
				for range 300 {
					sweeper.Step(now + sec)
				}
			}
		})
	}
	for i := range walks {
		met := walk(t, s, t0, 0, 1<<(i%10), nil)
		for j := range stays {
			if n := met[fmt.Sprint("stays:", j)]; n != 1 {
				t.Fatalf("walk %d met a key that stays %d times", i, n)
			}
		}
	}
	cancel()
	wg.Wait()
}

func TestScanDoesNotAllocate(t *testing.T) {
	s := New()
	fill(t, s, t0, 1000, strings.Repeat("long", 8), 60)
	bytes, cursor := 0, uint64(0)
	visit := func(k store.Key, _ store.Entry) { bytes += len(k.Name) }
	if allocs := testing.AllocsPerRun(200, func() { cursor = s.Scan(t0, 0, cursor, 10, visit) }); allocs > 0 && !racetest.Enabled {
		t.Errorf("%v allocations a call, want 0", allocs)
	}
}

// FuzzScanCursor continues at arbitrary cursors.
func FuzzScanCursor(f *testing.F) {
	s := newStore(4)
	fill(f, s, t0, 2000, "k", 60)
	for _, cursor := range []uint64{0, 1, 1<<44 - 1, 1 << 44, 1<<48 - 1, 1 << 48, 1<<64 - 1} {
		f.Add(cursor, 10, uint16(0))
	}
	f.Fuzz(func(t *testing.T, cursor uint64, count int, db uint16) {
		n := 0
		next := s.Scan(t0, db, cursor, count, func(k store.Key, _ store.Entry) {
			n++
			if got := s.ref(&k).hash >> cursorShift; got < cursor || k.DB != db {
				t.Errorf("cursor %x: met a key of database %d at %x", cursor, k.DB, got)
			}
		})
		if next != 0 && (next <= cursor || next >= 1<<cursorBits) || n > max(count, 1) {
			t.Errorf("cursor %x, count %d: %d keys, then %x", cursor, count, n, next)
		}
	})
}

func BenchmarkScan(b *testing.B) {
	for _, keyBytes := range []int{16, 36} {
		s := New()
		fillBench(b, s, keyBytes, 0, 1_000_000)
		for _, count := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("bytes=%d/count=%d", keyBytes, count), func(b *testing.B) {
				b.ReportAllocs()
				cursor, n := uint64(0), 0
				for b.Loop() {
					cursor = s.Scan(t0, 0, cursor, count, func(store.Key, store.Entry) { n++ })
				}
				b.ReportMetric(float64(b.Elapsed())/float64(n), "ns/key")
			})
		}
	}
}
