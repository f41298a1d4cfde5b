package shard

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"cellserver/internal/store"
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

// TestSplitAndMergeBounds: a segment splits when it has segmentFull entries and one more comes, and two merge when
// together they have no more than segmentSparse.
func TestSplitAndMergeBounds(t *testing.T) {
	tb := &table{seed: maphash.MakeSeed()}
	name := func(i int) string { return fmt.Sprint("k", i) }
	entries := 0
	for ; tb.depth == 0; entries++ {
		setTAT(tb, name(entries), 1)
	}
	if entries != segmentFull+1 {
		t.Fatalf("split with %d entries, want %d", entries, segmentFull+1)
	}
	for left := entries; ; left-- {
		if merged := tb.merge(0); merged != (left <= segmentSparse) {
			t.Fatalf("merged with %d entries: %t", left, merged)
		} else if merged {
			break
		}
		setTAT(tb, name(left-1), 0)
	}
	if tb.depth != 0 || len(tb.directory) != 1 || tb.segments() != 1 || tb.count != segmentSparse {
		t.Errorf("merged to %d entries in %d segments, a directory of depth %d", tb.count, tb.segments(), tb.depth)
	}
	if tb.merge(0) {
		t.Error("the only segment merged with itself")
	}
}

// TestOnlyHalvesMerge: a segment whose other half was split once more waits until that is one again.
func TestOnlyHalvesMerge(t *testing.T) {
	tb := &table{seed: maphash.MakeSeed()}
	for i := 0; tb.segments() < 3; i++ {
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
		if merged := tb.merge(want.at); merged != want.merged {
			t.Fatalf("step %d: merged: %t", i, merged)
		}
	}
}

// TestCompactBound: an arena is made anew when more of it is garbage than not.
func TestCompactBound(t *testing.T) {
	tb := &table{seed: maphash.MakeSeed()}
	const keys, keyBytes = 10, 100
	name := func(i int) string { return fmt.Sprintf("%0*d", keyBytes, i) }
	for i := range keys {
		setTAT(tb, name(i), 1)
	}
	seg := tb.directory[0]
	for i, wantGarbage := range []uint32{100, 200, 300, 400, 500, 0, 100, 200, 0, 0} {
		setTAT(tb, name(i), 0)
		live := keyBytes * (keys - 1 - i)
		if seg.garbage != wantGarbage || tb.liveBytes(seg) != live {
			t.Errorf("%d keys removed: %d bytes of garbage beside %d, want %d beside %d", i+1, seg.garbage, tb.liveBytes(seg), wantGarbage, live)
		}
	}
	if seg.arena != 0 {
		t.Error("a segment without long keys has an arena")
	}
}

// TestEntriesAtABorder: an entry whose hash is the very place that a walk goes on at is met there, and one just before
// it is not.
func TestEntriesAtABorder(t *testing.T) {
	const border = uint64(5) << 60 // of two segments, when there are 16 in the shard, and of 2 of a store's shards
	s := newStore(1)
	sh := &s.shards[0]
	sh.table.skip = 1
	for _, hash := range []uint64{border - 1, border} {
		k := key(0, strings.Repeat("long", 10)+fmt.Sprint(hash)) // hashes of long keys are kept
		sh.table.insert(keyRef{hash: hash, low: hash, code: codeInArena}, &k, kindFunnel, t0+sec)
	}
	var met []string
	visit := func(k store.Key, _ int64) { met = append(met, string(k.Name[40:])) }
	if next := s.Scan(t0, 0, border>>cursorShift, 10, visit); next != 0 || len(met) != 1 || met[0] != fmt.Sprint(border) {
		t.Errorf("Scan met %q, and goes on at %x", met, next)
	}
	counts := make([]int, 1)
	sh.counter(t0, counts)(sh.table.directory[0], sh.table.prefix(border))
	if counts[0] != 1 {
		t.Errorf("Count met %d", counts[0])
	}
}

// TestScanLooksAtSoMany: a call that finds nothing goes on behind leastScanSegments segments, or behind as many as its
// count asks for; empty shards are none.
func TestScanLooksAtSoMany(t *testing.T) {
	s := newStore(2)
	for i := range 60_000 {
		put(t, s, t0, key(1, fmt.Sprint(i)), 60)
	}
	s.shards[1].table.reset()
	for _, tt := range []struct{ count, segments int }{
		{1, leastScanSegments},
		{segmentSlots * (leastScanSegments/scanSlots + 1), leastScanSegments + scanSlots},
		{segmentSlots*(leastScanSegments/scanSlots+2) - 1, leastScanSegments + scanSlots},
		{segmentSlots * 25, 25 * scanSlots},
	} {
		want, segments := uint64(0), tt.segments
		for i := range s.shards {
			for at, tb := uint64(0), &s.shards[i].table; tb.count > 0 && segments > 0; segments-- {
				if _, at = tb.segmentAfter(at); at == 0 {
					want = uint64(i+1) << 62
					segments--
					break
				}
				want = uint64(i)<<62 | at>>2
			}
		}
		if got := s.Scan(t0, 0, 0, tt.count, func(store.Key, int64) { t.Error("a key of another database") }); got != want>>cursorShift {
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
		for at, tb := uint64(0), &s.shards[i].table; tb.count > 0; {
			seg, next := tb.segmentAfter(at)
			seg.each(func(b *bucket, slot int) { names += tb.storedBytesAt(b, slot) })
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

// TestBytesAreExact: what the tables take is known to the byte.
func TestBytesAreExact(t *testing.T) {
	s := newStore(1)
	for i := range 2000 {
		put(t, s, t0, key(0, strings.Repeat(fmt.Sprint(i, "-"), 1+i%12)), 60)
	}
	put(t, s, t0, key(0, strings.Repeat("alone", arenaKeyBytes)), 60)
	var st store.Stats
	s.UpdateStats(&st)
	n, directory := segments(s)
	want := n*segmentBytes + directory*pointerBytes + arenaBytes(s)
	for i := range s.shards {
		want += len(s.shards[i].table.arenas.bufs) * sliceHeaderBytes
	}
	if st.Bytes != want {
		t.Errorf("%d bytes, want %d", st.Bytes, want)
	}
}

// TestUnevenTables: most hashes begin alike, so that segments of few leading bits, which have many places in the
// directory, stand beside ones of many. (A long key's hash is kept, so a test may choose it.)
func TestUnevenTables(t *testing.T) {
	for round := range uint64(20) {
		rng := rand.New(rand.NewPCG(11, round))
		tb, m := &table{seed: maphash.MakeSeed(), skip: uint8(4 * (round % 2))}, map[uint64]bool{}
		entry := func(hash uint64) (keyRef, *store.Key) {
			k := key(0, fmt.Sprintf("%020d", hash))
			return keyRef{hash: hash, low: hash, code: codeInArena}, &k
		}
		check := func(when string) {
			t.Helper()
			for hash := range m {
				if b, _ := tb.find(entry(hash)); b == nil {
					t.Fatalf("round %d, %s: the entry at %x is not found", round, when, hash)
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
			if seen != len(m) || tb.count != len(m) || tb.count > 0 && segments != tb.segments() {
				t.Fatalf("round %d, %s: a walk sees %d entries in %d segments, want %d in %d", round, when, seen, segments, len(m), tb.segments())
			}
		}
		for _, bits := range []int{8, 1, 3} { // the first fill goes deep, the others split what was left behind
			for range 1000 {
				hash := rng.Uint64() >> rng.IntN(bits) >> tb.skip
				ref, k := entry(hash)
				tb.insert(ref, k, kindFunnel, 1)
				m[hash] = true
			}
			check(fmt.Sprint("filled by ", bits))
		}
		depth := tb.depth
		for len(m) > 0 {
			for hash := range m {
				if ref, k := entry(hash); rng.IntN(4) == 0 {
					b, slot := tb.find(ref, k)
					tb.set(ref, k, b, slot, 1, 1)
					delete(m, hash)
				}
			}
			for at, more := uint64(0), true; more; more = at != 0 {
				for tb.merge(at) {
					continue
				}
				_, at = tb.segmentAfter(at)
			}
			check("thinned out")
		}
		if depth < 5 || tb.depth != 0 || tb.segments() != 1 {
			t.Errorf("round %d: the directory's depth was %d, and is %d with %d segments in the end", round, depth, tb.depth, tb.segments())
		}
	}
}

// TestDeleteOfExpired: what has expired cannot be deleted, even if the sweep has yet to come.
func TestDeleteOfExpired(t *testing.T) {
	for _, tt := range []struct {
		nowNs int64
		want  bool
	}{{t0, true}, {t0 + sec - 1, true}, {t0 + sec, false}, {t0 + sec + 1, false}} {
		s, k := newStore(4), key(0, "k")
		put(t, s, t0, k, 1)
		if n, _ := s.Delete(tt.nowNs, []store.Key{k}); (n == 1) != tt.want {
			t.Errorf("%d ns later: deleted: %d", tt.nowNs-t0, n)
		}
		if n, _ := s.Delete(tt.nowNs, []store.Key{k}); n != 0 {
			t.Errorf("%d ns later: deleted twice", tt.nowNs-t0)
		}
	}
}
