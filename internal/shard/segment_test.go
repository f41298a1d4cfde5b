package shard

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"cellserver/internal/store"
)

// A segment fills a size class of the allocator, and a bucket two cache lines.
var (
	_ [segmentBytes]byte = [unsafe.Sizeof(segment{})]byte{}
	_ [128]byte          = [unsafe.Sizeof(bucket{})]byte{}
	_ [128]byte          = [unsafe.Offsetof(segment{}.buckets)]byte{}
	_ [64]byte           = [unsafe.Offsetof(bucket{}.key) + unsafe.Sizeof([2]uint64{})]byte{}
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
	for full := range 1 << bucketSlots {
		for _, code := range []uint64{1, 16, 17, codeInArena, codeAlone, codeMask} {
			b := bucket{meta: bitPassed}
			want := bucketSlots
			for slot := bucketSlots - 1; slot >= 0; slot-- {
				if full>>slot&1 != 0 {
					b.meta |= (code | uint64(kindFunnel)<<kindShift | bitOtherDB) << (slotBits * slot)
				} else {
					want = slot
				}
			}
			if got := b.free(); got != want {
				t.Errorf("slots %05b with code %d: got %d, want %d", full, code, got, want)
			}
		}
	}
}

// TestKeysOfEveryLength has names that are parts of each other, and of what is stored of each other.
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
	return b.tatNs[slot], true
}

func setTAT(t *table, name string, tatNs int64) {
	k := key(0, name)
	ref := refOf(&k, hashKey(t.seed, 0, k.Name))
	b, slot := t.find(ref, &k)
	t.set(ref, &k, b, slot, 0, tatNs)
}

// checkTable compares a table with a map, and what it counts with what it holds.
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
	if tb.count == 0 {
		return
	}
	segments, entries, inUse := 0, 0, map[uint32]bool{}
	for at := uint64(0); ; {
		seg, next := tb.segmentAfter(at)
		used := 0
		seg.each(func(b *bucket, slot int) {
			used++
			if tb.segmentOf(tb.hashAt(b, slot)) != seg {
				t.Fatalf("an entry stands in a segment that is not its own")
			}
			if b.code(slot)&codeMask == codeAlone {
				inUse[uint32(b.key[slot][1])] = true
			}
		})
		if used != int(seg.used) || at<<seg.depth != 0 {
			t.Fatalf("a segment at %x of depth %d counts %d entries and has %d", at, seg.depth, seg.used, used)
		}
		if seg.arena != 0 {
			inUse[seg.arena] = true
		}
		segments, entries = segments+1, entries+used
		if next == 0 {
			break
		}
		at = next
	}
	if entries != len(m) || segments != tb.segments() {
		t.Fatalf("%d entries in %d segments, want %d in %d", entries, segments, len(m), tb.segments())
	}
	if n := len(tb.arenas.bufs) - len(tb.arenas.free); n != 0 && n-1 != len(inUse) {
		t.Fatalf("%d arenas, %d in use", n-1, len(inUse))
	}
	bytes := 0
	for _, buf := range tb.arenas.bufs {
		bytes += cap(buf)
	}
	if tb.arenas.bytes != bytes {
		t.Fatalf("%d bytes of arenas are counted, there are %d", tb.arenas.bytes, bytes)
	}
}

// TestFullSegments drives one segment to its bound and empties it, again and again, with lookups at all fills:
// removals leave holes under overflow marks, and rebuilding takes them away.
func TestFullSegments(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	tb, m := &table{seed: maphash.MakeSeed()}, map[string]int64{}
	name := func() string { return strings.Repeat(fmt.Sprint(rng.IntN(400)), 1+rng.IntN(9)) }
	for round := range 60 {
		for len(m) < segmentFull {
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
		least := rng.IntN(segmentFull)
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

// TestMarksAreTakenBack: a lookup of an absent key reads one bucket again, once the sweep has removed what made
// it read more.
func TestMarksAreTakenBack(t *testing.T) {
	s := newStore(1)
	fill(t, s, t0, 4000, "k", 1)
	fill(t, s, t0, 20, "stays", 3600)
	w := NewSweeper(s)
	for range 200 {
		w.Step(t0 + sec)
	}
	for i := range s.shards {
		s.shards[i].eachSegment(context.Background(), func(seg *segment, _ uint64) {
			marks := 0
			for j := range seg.buckets {
				marks += int(seg.buckets[j].meta / bitPassed & 1)
			}
			if seg.passed != (marks > 0) || marks > 2 || seg.passed && seg.holed { // without marks, holes matter to nobody
				t.Errorf("a segment of %d entries: %d marks, passed %v, holed %v", seg.used, marks, seg.passed, seg.holed)
			}
		})
	}
}

// TestTableAgainstMap splits and merges under random operations. The bits to skip are a shard's.
func TestTableAgainstMap(t *testing.T) {
	for _, skip := range []uint8{0, 4, 8} {
		rng := rand.New(rand.NewPCG(5, uint64(skip)))
		tb, m := &table{seed: maphash.MakeSeed(), skip: skip}, map[string]int64{}
		least, most := math.MaxInt, 0
		for phase := range 6 {
			for range 6000 {
				i := rng.IntN(4000)
				name := strings.Repeat(fmt.Sprint(i), 1+i%13)
				if i == 0 {
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
			least, most = min(least, tb.segments()), max(most, tb.segments())
		}
		if least >= most {
			t.Errorf("there were %d segments throughout", most)
		}
	}
}

func sweepAll(tb *table, m map[string]int64, nowNs int64) {
	sh := &shard{table: *tb, budget: &budget{}}
	for at, more := uint64(0), true; more; more = at != 0 {
		_, _, at = sh.sweepLocked(at, nowNs)
	}
	maps.DeleteFunc(m, func(_ string, tatNs int64) bool { return tatNs <= nowNs })
	*tb = sh.table
}
