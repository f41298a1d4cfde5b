package shard

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
)

// TestArenaIsCompacted replaces keys of one segment many times over.
func TestArenaIsCompacted(t *testing.T) {
	tb, m := &table{seed: maphash.MakeSeed()}, map[string]int64{}
	const live, keyBytes = 100, 1000
	name := func(i int) string { return fmt.Sprintf("%0*d", keyBytes, i) }
	for i := range 50 * live {
		setTAT(tb, name(i), int64(i+1))
		m[name(i)] = int64(i + 1)
		if i >= live {
			setTAT(tb, name(i-live), 0)
			delete(m, name(i-live))
		}
		if seg := tb.directory[0]; tb.depth == 0 {
			if got := cap(tb.arenas.bufs[seg.arena]); got > 3*(live+1)*keyBytes {
				t.Fatalf("after %d keys of %d bytes, %d of them live, the arena takes %d", i, keyBytes, len(m), got)
			}
		}
	}
	checkTable(t, tb, m)
}

// TestLongKeysCostTheirBytes: an arena has little more than its keys.
func TestLongKeysCostTheirBytes(t *testing.T) {
	s := newStore(4)
	const n, keyBytes = 20_000, 200
	fill(t, s, t0, n, strings.Repeat("k", keyBytes-5), 60)
	if got := arenaBytes(s); got > n*keyBytes*3/2 {
		t.Errorf("%d keys of up to %d bytes take %d", n, keyBytes, got)
	}
}

func TestArenasAreGivenBack(t *testing.T) {
	tb := &table{seed: maphash.MakeSeed()}
	short, long := func(i int) string { return fmt.Sprint(i) }, func(i int) string { return strings.Repeat(fmt.Sprint(i, "-"), 20) }
	alone := func(i int) string { return strings.Repeat(fmt.Sprint(i, "-"), arenaKeyBytes) }
	for round := range 3 {
		for i := range 1000 {
			setTAT(tb, short(i), 1)
			setTAT(tb, long(i), 1)
		}
		for i := range 20 {
			setTAT(tb, alone(i), 1)
		}
		if len(tb.arenas.bufs) < 20+tb.segments() {
			t.Fatalf("round %d: %d arenas", round, len(tb.arenas.bufs))
		}
		for i := range 1000 {
			setTAT(tb, long(i), 0)
		}
		for i := range 20 {
			setTAT(tb, alone(i), 0)
		}
		if tb.arenas.bufs != nil || tb.arenas.free != nil {
			t.Fatalf("round %d: %d arenas are left", round, len(tb.arenas.bufs))
		}
	}
}
