package shard

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"cellserver/internal/store"
)

// A segment fills a size class, and a bucket two cache lines.
var (
	_ [segmentBytes]byte = [unsafe.Sizeof(segment{})]byte{}
	_ [128]byte          = [unsafe.Sizeof(bucket{})]byte{}
	_ [128]byte          = [unsafe.Offsetof(segment{}.buckets)]byte{}
	_ [64]byte           = [slabChunks]byte{} // a word of a bitset
)

func TestWords(t *testing.T) {
	name := []byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\xff")
	for n := range inlineBytes + 1 {
		var want [2]uint64
		for i, c := range name[:n] {
			want[i/8] |= uint64(c) << (8 * (i % 8))
		}
		if low, high := wordsOf(name[:n]); low != want[0] || high != want[1] {
			t.Errorf("%d bytes: got %x, %x, want %x", n, low, high, want)
		}
	}
}

func TestFreeSlot(t *testing.T) {
	for full := range 1 << inlineSlots {
		for _, code := range []uint64{1, 16, 17, codeMask} {
			b := bucket{bitPassed}
			want := inlineSlots
			for slot := inlineSlots - 1; slot >= 0; slot-- {
				if full>>slot&1 != 0 {
					b.setInline(slot, code|bitOtherDB, 1, 2)
				} else {
					want = slot
				}
			}
			if got := b.freeInline(); got != want {
				t.Errorf("slots %05b with code %d: got %d, want %d", full, code, got, want)
			}
		}
	}
	for full := range 1 << longSlots {
		for _, place := range []uint64{placeArena, placeLarge} {
			b := bucket{bitPassed}
			want := longSlots
			for slot := longSlots - 1; slot >= 0; slot-- {
				if full>>slot&1 != 0 {
					b.setLong(slot, place|laneKindMask<<laneKindShift, ^uint64(0), 1)
				} else {
					want = slot
				}
			}
			if got := b.freeLong(); got != want {
				t.Errorf("slots %07b in place %d: got %d, want %d", full, place, got, want)
			}
		}
	}
}

// TestCandidates: used slots with equal hash bits.
func TestCandidates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		b, want := bucket{bitPassed, 15: 0xff << 56}, uint64(0)
		hash := rng.Uint64()
		for slot := range longSlots {
			if rng.IntN(5) == 0 {
				b.setLong(slot, 0, rng.Uint64(), 0) // the remains of a removed entry
				b[hashesWord] ^= (b[hashesWord]>>(8*slot)&0xff ^ hashLane(hash)) << (8 * slot)
				continue
			}
			place, otherHash := []uint64{placeArena, placeLarge}[rng.IntN(2)], hash^1<<40
			if rng.IntN(2) == 0 {
				otherHash ^= 1 << (8 + rng.IntN(8))
			}
			b.setLong(slot, place|uint64(rng.IntN(8))<<laneKindShift, otherHash, 0)
			if hashLane(otherHash) == hashLane(hash) {
				want |= 0x80 << (8 * slot)
			}
		}
		if got := b.candidates(hash); got != want {
			t.Fatalf("%x, %x: got %x, want %x", b[0], b[hashesWord], got, want)
		}
	}
}

// TestKeysOfEveryLength uses names that are parts of each other and of stored records.
func TestKeysOfEveryLength(t *testing.T) {
	s, m, l := New(), model{}, limit(t, 3, 1, 60)
	long := "\x01\x00" + strings.Repeat("\x00\x01\x00\xff", 10) + strings.Repeat("x", 2*arenaKeyBytes)
	lengths := []int{arenaKeyBytes - 3, arenaKeyBytes - 2, arenaKeyBytes - 1, arenaKeyBytes, arenaKeyBytes + 1}
	for n := range 41 {
		lengths = append(lengths, n)
	}
	var keys []store.Key
	for _, db := range []uint16{0, 1, 255, 256, 65535} {
		for _, n := range lengths {
			for from := range 3 {
				keys = append(keys, key(db, long[from:from+n]))
			}
		}
	}
	for round := range 6 {
		for _, k := range keys {
			quantity := int64(len(k.Name)+round)%4 - 1
			if got, want := one(s, t0, k, l, quantity), m.throttle(t0, k, l, quantity); got != want {
				t.Fatalf("db %d, %d bytes: got %+v, want %+v", k.DB, len(k.Name), got, want)
			}
		}
	}
	for _, db := range []uint16{0, 1, 255, 256, 65535} {
		if got, want := length(s, t0, db), m.count(t0, db); got != want {
			t.Errorf("db %d: Count is %d, want %d", db, got, want)
		}
	}
}

// lookUp is find for a name of database 0.
func lookUp(t *table, name string) (tatNs int64, ok bool) {
	k := key(0, name)
	b, slot := t.find(refOf(&k, hashKey(t.seed, 0, k.Name)), &k)
	if b == nil {
		return 0, false
	}
	return b.tatNs(slot), true
}

func setTAT(t *table, name string, tatNs int64) {
	k := key(0, name)
	ref := refOf(&k, hashKey(t.seed, 0, k.Name))
	t.setFunnel(ref, &k, 0, tatNs)
}

// setFunnel is shard.storeLocked for a funnel in one table.
func (t *table) setFunnel(k keyRef, key *store.Key, nowNs, tatNs int64) {
	b, slot := t.find(k, key)
	switch {
	case tatNs > nowNs && b != nil:
		t.changeTAT(k.hash, b, slot, tatNs)
	case tatNs > nowNs:
		t.insert(&item{ref: k, key: key, expiresNs: tatNs})
	case b != nil:
		seg := t.segmentOf(k.hash)
		t.remove(seg, b, slot)
		t.tidy(seg)
	}
}

// checkTable compares a table with a map.
func checkTable(t *testing.T, tb *table, m map[string]int64) {
	t.Helper()
	for name, want := range m {
		if got, ok := lookUp(tb, name); !ok || got != want {
			t.Fatalf("%.20q: got %d, %v, want %d", name, got, ok, want)
		}
	}
	if tb.count != len(m) {
		t.Fatalf("the table counts %d entries, want %d", tb.count, len(m))
	}
	checkShape(t, tb)
}

// checkShape compares a table's counts with its contents.
func checkShape(t *testing.T, tb *table) {
	t.Helper()
	if tb.count == 0 {
		return
	}
	segments, entries, inArenas, inUse := 0, 0, 0, map[uint32]bool{}
	shorts, names := 0, 0
	for at := uint64(0); ; {
		seg, next := tb.segmentAfter(at)
		used := 0
		live := 0
		tb.each(seg, func(b *bucket, slot int) {
			used++
			k := store.Key{DB: tb.dbAt(b, slot), Name: tb.appendName(nil, b, slot)}
			ref := refOf(&k, hashKey(tb.seed, k.DB, k.Name))
			if found, at := tb.find(ref, &k); found != b || at != slot || tb.hashAt(b, slot) != ref.hash || tb.segmentOf(ref.hash) != seg {
				t.Fatalf("%d bytes in database %d are not found where they stand", len(k.Name), k.DB)
			}
			if isInline(&k) {
				shorts++
			}
			switch {
			case !tb.long:
			case b.place(slot) == placeLarge:
				inUse[numberOf(b.locator(slot))] = true
				names += len(k.Name)
			default:
				live += lengthOf(b.locator(slot))
			}
		})
		inArenas += checkArena(t, tb, &seg.arena, live)
		if used != int(seg.used) || at<<seg.depth != 0 {
			t.Fatalf("a segment at %x of depth %d counts %d entries and has %d", at, seg.depth, seg.used, used)
		}
		segments, entries = segments+1, entries+used
		if next == 0 {
			break
		}
		at = next
	}
	if entries != tb.count || segments != tb.made {
		t.Fatalf("%d entries in %d segments, %d in %d are counted", entries, segments, tb.count, tb.made)
	}
	if n := len(tb.large.bufs) - len(tb.large.free); n != 0 && n-1 != len(inUse) {
		t.Fatalf("%d keys are large, %d are in use", n-1, len(inUse))
	}
	if shorts != tb.shorts || names != tb.large.names {
		t.Fatalf("%d short keys and %d bytes of names are counted, there are %d and %d", tb.shorts, tb.large.names, shorts, names)
	}
	bytes := 0
	for _, buf := range tb.large.bufs {
		bytes += cap(buf)
	}
	if tb.large.bytes != bytes {
		t.Fatalf("%d bytes of buffers are counted, there are %d", tb.large.bytes, bytes)
	}
	checkChunks(t, &tb.chunks, inArenas)
}

// checkArena follows an arena's chain and returns its number of chunks.
func checkArena(t *testing.T, tb *table, a *arena, live int) (chunks int) {
	t.Helper()
	last := uint32(0)
	for id := a.first; id != 0; id = tb.chunks.at(id).next() {
		if got := tb.chunks.at(id).place(); got != chunks {
			t.Fatalf("chunk %d of an arena says that it is %d", chunks, got)
		}
		last = id
		chunks++
	}
	if chunks != a.length() || last != a.last || a.liveBytes() != live {
		t.Fatalf("an arena of %+v has %d chunks, the last is %d, and %d bytes of keys", *a, chunks, last, live)
	}
	if a.isWasteful() && a.garbage > roomBytes+arenaKeyBytes && int(a.garbage) > int(a.bytes)/4 {
		t.Fatalf("an arena is left with garbage: %+v", *a)
	}
	return chunks
}

// checkChunks compares what is counted of chunks with what there is.
func checkChunks(t *testing.T, c *chunks, inUse int) {
	t.Helper()
	unused, made, slabs, idle := 0, 0, 0, 0
	for at, slab := range c.slabs {
		if slab == nil {
			if c.fresh[0][at] != 0 || c.free[0][at] != 0 {
				t.Fatalf("slab %d was given back, and chunks of it are said to be there", at)
			}
			continue
		}
		slabs++
		if c.free[0][at]&c.fresh[0][at] != 0 {
			t.Fatalf("chunks of slab %d are free and fresh", at)
		}
		made += bits.OnesCount64(^c.fresh[0][at])
		unused += bits.OnesCount64(c.free[0][at])
		if c.free[0][at]|c.fresh[0][at] == math.MaxUint64 {
			idle++
			if c.idle != at+1 {
				t.Fatalf("slab %d is not in use, and not known to be: that is %d", at, c.idle-1)
			}
		}
	}
	if unused != c.unused || made != c.count || c.inUse() != inUse || len(c.absent) != len(c.slabs)-slabs || idle > 1 {
		t.Fatalf("%d of %d chunks are free and %d in use, want %d of %d, %d", unused, made, c.inUse(), c.unused, c.count, inUse)
	}
}

// nameFor returns a name that an inline key can have, or a long one.
func nameFor(long bool, i, repeats int) string {
	if long {
		return strings.Repeat(fmt.Sprint(i, "-"), 10+repeats)
	}
	return strings.Repeat(fmt.Sprint(i), 1+repeats%4)
}

// TestFullSegments fills and empties a segment repeatedly, with lookups: removals leave holes under overflow
// marks, which rebuilding removes.
func TestFullSegments(t *testing.T) {
	for _, long := range []bool{false, true} {
		fillAndEmpty(t, long)
	}
}

func fillAndEmpty(t *testing.T, long bool) {
	rng := rand.New(rand.NewPCG(3, 4))
	tb, m := &table{seed: maphash.MakeSeed(), long: long}, map[string]int64{}
	name := func() string { return nameFor(long, rng.IntN(400), rng.IntN(9)) }
	for round := range 60 {
		for len(m) < int(tb.full()) {
			n := name()
			m[n] = rng.Int64N(1000) + 1
			setTAT(tb, n, m[n])
		}
		checkTable(t, tb, m)
		seg := tb.directory[0]
		if round%3 == 0 {
			if !seg.passed {
				t.Error("a segment that is full has no overflow mark")
			}
			tb.rebuild(seg)
			checkTable(t, tb, m)
		}
		least := rng.IntN(int(tb.full()))
		for n := range maps.Clone(m) {
			if len(m) <= least {
				break
			}
			setTAT(tb, n, 0)
			delete(m, n)
		}
		checkTable(t, tb, m)
		for range 300 {
			n := name()
			if _, ok := lookUp(tb, n); ok != (m[n] != 0) {
				t.Fatalf("%q: found %v", n, ok)
			}
		}
	}
	if tb.depth != 0 {
		t.Errorf("the segment was split: depth %d", tb.depth)
	}
}

// TestMarksAreTakenBack: after the sweep, a lookup of an absent key reads one bucket again.
func TestMarksAreTakenBack(t *testing.T) {
	s := newStore(1)
	fill(t, s, t0, 4000, "k", 1)
	fill(t, s, t0, 20, "stays", 3600)
	w := NewSweeper(s)
	for range 200 {
		w.Step(t0 + sec)
	}
	for i := range s.shards {
		s.shards[i].eachSegment(context.Background(), false, func(_ *table, seg *segment, _ part) {
			marks := 0
			for j := range seg.buckets {
				marks += int(seg.buckets[j][0] / bitPassed & 1)
			}
			if seg.passed != (marks > 0) || marks > 2 || seg.passed && seg.holed { // without marks, holes matter to nobody
				t.Errorf("a segment of %d entries: %d marks, passed %v, holed %v", seg.used, marks, seg.passed, seg.holed)
			}
		})
	}
}

// TestTableAgainstMap splits and merges under random operations, with a shard's skipped bits.
func TestTableAgainstMap(t *testing.T) {
	for i := range uint8(6) {
		skip, long := i/2*4, i%2 != 0
		rng := rand.New(rand.NewPCG(5, uint64(skip)))
		tb, m := &table{seed: maphash.MakeSeed(), skip: skip, long: long}, map[string]int64{}
		least, most := math.MaxInt, 0
		for phase := range 6 {
			for range 6000 {
				i := rng.IntN(4000)
				name := nameFor(long, i, i%13)
				if i == 0 && long {
					name = strings.Repeat("very long", arenaKeyBytes)
				}
				if rng.IntN(10) < 2+6*(phase%2) {
					setTAT(tb, name, 0)
					delete(m, name)
				} else {
					m[name] = rng.Int64N(1000) + 1
					setTAT(tb, name, m[name])
				}
			}
			checkTable(t, tb, m)
			sweepAll(tb, m, 50+850*int64(phase%2))
			checkTable(t, tb, m)
			least, most = min(least, tb.made), max(most, tb.made)
		}
		if least >= most {
			t.Errorf("there were %d segments throughout", most)
		}
	}
}

func sweepAll(tb *table, m map[string]int64, nowNs int64) {
	sh := &shard{}
	tb.budget = &budget{}
	own := &sh.inline
	if tb.long {
		own = &sh.long
	}
	*own = *tb
	for at, more := (hand{}), true; more; more = at != (hand{}) {
		_, _, at = sh.sweepLocked(at, nowNs)
	}
	maps.DeleteFunc(m, func(_ string, tatNs int64) bool { return tatNs <= nowNs })
	*tb = *own
}
