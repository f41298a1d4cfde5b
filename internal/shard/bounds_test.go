package shard

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// TestNumberOfShards: a power of two that suits the cores.
func TestNumberOfShards(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for procs, want := range map[int]int{1: 16, 2: 16, 3: 32, 4: 32, 5: 64, 16: 128, 17: 256, 32: 256, 33: 256, 500: 256} {
		runtime.GOMAXPROCS(procs)
		if s := New(); len(s.shards) != want {
			t.Errorf("%d shards for %d processors, want %d", len(s.shards), procs, want)
		}
	}
}

// TestSplitAndMergeBounds: a full segment splits for one more entry, and two sparse ones merge.
func TestSplitAndMergeBounds(t *testing.T) {
	for _, tt := range []struct {
		long         bool
		full, sparse int
	}{{false, 139, 129}, {true, 195, 180}} {
		tb := &table{seed: maphash.MakeSeed(), long: tt.long}
		name := func(i int) string { return nameFor(tt.long, i, 0) }
		entries := 0
		for ; tb.depth == 0; entries++ {
			setTAT(tb, name(entries), 1)
		}
		if entries != tt.full+1 {
			t.Fatalf("split with %d entries, want %d", entries, tt.full+1)
		}
		for left := entries; ; left-- {
			if merged := tb.merge(0, tb.sparse()); merged != (left <= tt.sparse) {
				t.Fatalf("merged with %d entries: %t", left, merged)
			} else if merged {
				break
			}
			setTAT(tb, name(left-1), 0)
		}
		if tb.depth != 0 || len(tb.directory) != 1 || tb.made != 1 || tb.count != tt.sparse {
			t.Errorf("merged to %d entries in %d segments, a directory of depth %d", tb.count, tb.made, tb.depth)
		}
		if tb.merge(0, tb.sparse()) {
			t.Error("the only segment merged with itself")
		}
	}
}

// TestOnlyHalvesMerge: a segment waits for its split sibling.
func TestOnlyHalvesMerge(t *testing.T) {
	tb := &table{seed: maphash.MakeSeed()}
	for i := 0; tb.made < 3; i++ {
		setTAT(tb, fmt.Sprint(i), 1)
	}
	for _, seg := range tb.directory {
		tb.removeWhere(seg, func(*bucket, int) bool { return tb.count > 1 })
	}
	whole, parts := uint64(0), uint64(1)<<63 // where the segments of depth 1 and 2 are
	if tb.directory[0].depth == 2 {
		whole, parts = parts, whole
	}
	for i, want := range []struct {
		at     uint64
		merged bool
	}{{whole, false}, {parts, true}, {whole, true}, {whole, false}} {
		if merged := tb.merge(want.at, tb.sparse()); merged != want.merged {
			t.Fatalf("step %d: merged: %t", i, merged)
		}
	}
}

// TestSqueezeBound: an arena is squeezed when a chunk's worth and an eighth of it is garbage, or all.
func TestSqueezeBound(t *testing.T) {
	for _, tt := range []struct{ keys, keyBytes, removed int }{{50, 100, 11}, {100, 100, 13}, {20, 30, 20}, {3, 2000, 1}} {
		tb := &table{seed: maphash.MakeSeed(), long: true}
		name := func(i int) string { return fmt.Sprintf("%0*d", tt.keyBytes, i) }
		for i := range tt.keys {
			setTAT(tb, name(i), 1)
		}
		k := key(0, name(0))
		record := nameRecordBytes(len(k.Name))
		a, removed := &tb.directory[0].arena, 0
		for before := a.bytes; a.bytes == before; removed++ {
			if want := removed * record; int(a.garbage) != want {
				t.Fatalf("%d keys removed: %d bytes of garbage, want %d", removed, a.garbage, want)
			}
			setTAT(tb, name(removed), 0)
		}
		if removed != tt.removed || a.garbage != 0 || int(a.bytes) != (tt.keys-removed)*record || (a.first == 0) != (a.bytes == 0) {
			t.Errorf("%+v: squeezed to %+v when %d keys were removed", tt, *a, removed)
		}
	}
}

// TestEntriesAtABorder: a walk continuing at a hash meets that entry and not the one before.
func TestEntriesAtABorder(t *testing.T) {
	s := newStore(1)
	for i, name := range []string{"inline", "inline too", strings.Repeat("long", 10), strings.Repeat("longer", 1000)} {
		k := key(0, name)
		put(t, s, t0, k, 1)
		hash := ref(s, k).hash
		sh := s.shardOf(hash)
		tb := sh.tableFor(&k, limiter.Funnel)
		seg := tb.segmentOf(hash)
		for _, tt := range []struct {
			at, next uint64
			found    bool
		}{{hash, 0, true}, {hash + 1, 0, false}, {0, hash, false}, {0, hash + 1, true}, {hash, hash + 1, true}} {
			sc := scan{store: s, nowNs: t0, scanBuffer: &scanBuffer{}}
			sc.findIn(tb, seg, tt.at, tt.next)
			found := false
			for _, f := range sc.found {
				found = found || f&^lowBits == hash&^lowBits
			}
			if found != tt.found {
				t.Errorf("%d: from %x to %x: found is %t", i, tt.at, tt.next, found)
			}
		}
		tb.removeWhere(seg, func(b *bucket, slot int) bool { return tb.hashAt(b, slot) != hash })
		here, one := tb.prefix(hash), tb.prefix(1)
		for at, want := range map[part]int{
			{here, here, false}: 1, {here, here + one, false}: 1, {here - one, here, false}: 1, {0, 0, true}: 1,
			{here + one, ^uint64(0), false}: 0, {0, here - one, false}: 0,
		} {
			counts := make([]store.KeyCount, 1)
			if counter(t0, counts)(tb, seg, at); counts[0].Keys != want {
				t.Errorf("%d, %+v: Count met %d", i, at, counts[0].Keys)
			}
		}
	}
}

// TestScanLooksAtSoMany: a fruitless call stops after leastScanSegments, or as many as its count asks for,
// without empty shards.
func TestScanLooksAtSoMany(t *testing.T) {
	s := newStore(2)
	for i := range 60_000 {
		put(t, s, t0, key(1, fmt.Sprint(i)), 60)
	}
	s.shards[1].inline.reset()
	for _, tt := range []struct{ count, segments int }{
		{1, leastScanSegments},
		{scanSegmentSlots * (leastScanSegments/scanSlots + 1), leastScanSegments + scanSlots},
		{scanSegmentSlots*(leastScanSegments/scanSlots+2) - 1, leastScanSegments + scanSlots},
		{scanSegmentSlots * 25, 25 * scanSlots},
	} {
		want, segments := uint64(0), tt.segments
		for i := range s.shards {
			for at, tb := uint64(0), &s.shards[i].inline; tb.count > 0 && segments > 0; segments-- {
				if _, at = tb.segmentAfter(at); at == 0 {
					want = uint64(i+1) << 62
					segments--
					break
				}
				want = uint64(i)<<62 | at>>2
			}
		}
		if got := s.Scan(t0, 0, 0, tt.count, func(store.Key, store.Entry) { t.Error("a key of another database") }); got != want>>cursorShift {
			t.Errorf("count %d: goes on at %x, want %x", tt.count, got, want>>cursorShift)
		}
	}
}

// TestScanBuffers: a buffer is as large as the first names need, and is kept unless it is very large.
func TestScanBuffers(t *testing.T) {
	s := newStore(1)
	put(t, s, t0, key(0, "0123456789"), 60)
	put(t, s, t0, key(0, "another"), 60)
	for i := range s.shards {
		sc := scan{store: s, nowNs: t0, scanBuffer: &scanBuffer{}}
		sc.segment(uint64(i)<<63, 10)
		names := 0
		for at, tb := uint64(0), &s.shards[i].inline; tb.count > 0; {
			seg, next := tb.segmentAfter(at)
			tb.each(seg, func(b *bucket, slot int) { names += tb.nameBytesAt(b, slot) })
			if at = next; next == 0 {
				break
			}
		}
		if cap(sc.names) != names || len(sc.names) != names {
			t.Errorf("shard %d: %d bytes of names in %d, want %d", i, len(sc.names), cap(sc.names), names)
		}
	}
	for _, tt := range []struct{ bytes, kept int }{{10, 10}, {keepScanBytes, keepScanBytes}, {keepScanBytes + 1, 0}} {
		b := &scanBuffer{names: make([]byte, 0, tt.bytes)}
		s.giveScanBuffer(b)
		if cap(b.names) != tt.kept {
			t.Errorf("of a buffer of %d bytes %d are kept", tt.bytes, cap(b.names))
		}
	}
}

// TestBytesAreExact: the tables' size is known to the byte.
func TestBytesAreExact(t *testing.T) {
	s := newStore(1)
	for i := range 2000 {
		put(t, s, t0, key(0, strings.Repeat(fmt.Sprint(i, "-"), 1+i%12)), 60)
	}
	put(t, s, t0, key(0, strings.Repeat("large", arenaKeyBytes)), 60)
	var st store.Stats
	s.UpdateStats(&st)
	n, directory := segments(s)
	want := n*segmentBytes + directory*pointerBytes + arenaBytes(s)
	for i := range s.shards {
		want += len(s.shards[i].long.large.bufs) * sliceHeaderBytes
	}
	if st.Bytes != want {
		t.Errorf("%d bytes, want %d", st.Bytes, want)
	}
}

// TestUnevenTables: most hashes share their beginning, so shallow segments stand beside deep ones.
func TestUnevenTables(t *testing.T) {
	racetest.SkipAlone(t)
	for round := range uint64(20) {
		rng := rand.New(rand.NewPCG(11, round))
		tb, m := &table{seed: maphash.MakeSeed(), skip: uint8(4 * (round % 2)), long: round%4 > 1}, map[uint64]bool{}
		entry := func(i uint64) (keyRef, *store.Key) {
			name := fmt.Sprintf("%08d", i)
			if tb.long {
				name = fmt.Sprintf("%020d", i)
			}
			k := key(0, name)
			return refOf(&k, hashKey(tb.seed, 0, k.Name)), &k
		}
		check := func(when string) {
			t.Helper()
			for i := range m {
				if b, _ := tb.find(entry(i)); b == nil {
					t.Fatalf("round %d, %s: entry %d is not found", round, when, i)
				}
			}
			seen, segments := 0, 0
			for at, more := uint64(0), tb.count > 0; more; more = at != 0 {
				seg, next := tb.segmentAfter(at)
				if at<<seg.depth != 0 {
					t.Fatalf("round %d, %s: a segment of depth %d at %x", round, when, seg.depth, at)
				}
				seen, segments, at = seen+int(seg.used), segments+1, next
			}
			if seen != len(m) || tb.count != len(m) || tb.count > 0 && segments != tb.made {
				t.Fatalf("round %d, %s: a walk sees %d entries in %d segments, want %d in %d", round, when, seen, segments, len(m), tb.made)
			}
		}
		for _, bits := range []int{8, 1, 3} { // the first fill goes deep, the others split what was left behind
			for range 1000 {
				for alike := 64 - rng.IntN(bits); ; {
					i := rng.Uint64N(100_000_000)
					ref, k := entry(i)
					if !m[i] && tb.prefix(ref.hash)>>1<<1>>alike == 0 {
						tb.insert(&item{ref: ref, key: k, expiresNs: 1})
						m[i] = true
						break
					}
				}
			}
			check(fmt.Sprint("filled by ", bits))
		}
		depth := tb.depth
		for len(m) > 0 {
			for i := range m {
				if ref, k := entry(i); rng.IntN(4) == 0 {
					tb.setFunnel(ref, k, 1, 1)
					delete(m, i)
				}
			}
			for at, more := uint64(0), true; more; more = at != 0 {
				for tb.merge(at, tb.sparse()) {
					continue
				}
				_, at = tb.segmentAfter(at)
			}
			check("thinned out")
		}
		if depth < 5 || tb.depth != 0 || tb.made != 1 {
			t.Errorf("round %d: the directory's depth was %d, and is %d with %d segments in the end", round, depth, tb.depth, tb.made)
		}
	}
}
