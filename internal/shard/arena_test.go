package shard

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// TestArenaIsSqueezed replaces keys of one segment many times over.
func TestArenaIsSqueezed(t *testing.T) {
	for _, keyBytes := range []int{17, 36, 100, 1000, arenaKeyBytes} {
		tb, m := &table{seed: maphash.MakeSeed(), long: true}, map[string]int64{}
		const live = 100
		name := func(i int) string { return fmt.Sprintf("%0*d", keyBytes, i) }
		for i := range 20 * live {
			setTAT(tb, name(i), int64(i+1))
			m[name(i)] = int64(i + 1)
			if i >= live {
				setTAT(tb, name(i-live), 0)
				delete(m, name(i-live))
			}
			if got, most := tb.chunks.inUse(), (live+1)*(keyBytes+hashBytes)*9/8/roomBytes+3; got > most {
				t.Fatalf("after %d keys of %d bytes, %d of them live, the arena has %d chunks, want %d", i, keyBytes, len(m), got, most)
			}
		}
		checkTable(t, tb, m)
	}
}

// TestInsertSqueezes: gaps are closed before another chunk is taken.
func TestInsertSqueezes(t *testing.T) {
	for _, keyBytes := range []int{60, 500, 3000} {
		tb, m := &table{seed: maphash.MakeSeed(), long: true}, map[string]int64{}
		name := func(i int) string { return fmt.Sprintf("%0*d", keyBytes, i) }
		for i := range 1000 {
			setTAT(tb, name(i), 1)
			m[name(i)] = 1
			if at := i - 100; at >= 0 {
				k := key(0, name(at))
				ref := refOf(&k, hashKey(tb.seed, 0, k.Name))
				b, slot := tb.find(ref, &k)
				tb.remove(tb.segmentOf(ref.hash), b, slot)
				delete(m, name(at))
			}
		}
		if got, most := tb.chunks.count, 200*(keyBytes+hashBytes)/roomBytes; got > most {
			t.Errorf("%d chunks for 100 keys of %d bytes, want %d", got, keyBytes, most)
		}
		checkTable(t, tb, m)
	}
}

// TestLongKeysCostTheirBytes: an arena has little more than its keys.
func TestLongKeysCostTheirBytes(t *testing.T) {
	for _, keyBytes := range []int{24, 36, 64, 200, 1000} {
		s := newStore(4)
		const n = 20_000
		fill(t, s, t0, n, strings.Repeat("k", keyBytes-5), 60)
		if got := arenaBytes(s) - n*keyBytes; got > n*(12+keyBytes/50) {
			t.Errorf("%d keys of up to %d bytes take %d more each", n, keyBytes, got/n)
		}
	}
}

func TestArenasAreGivenBack(t *testing.T) {
	tb := &table{seed: maphash.MakeSeed(), long: true}
	long := func(i int) string { return strings.Repeat(fmt.Sprint(i, "-"), 20) }
	large := func(i int) string { return strings.Repeat(fmt.Sprint(i, "-"), arenaKeyBytes) }
	for round := range 3 {
		for i := range 1000 {
			setTAT(tb, long(i), 1)
		}
		for i := range 20 {
			setTAT(tb, large(i), 1)
		}
		if len(tb.large.bufs) != 21 || tb.chunks.inUse() < tb.made {
			t.Fatalf("round %d: %d keys are large, %d chunks", round, len(tb.large.bufs), tb.chunks.inUse())
		}
		for i := range 1000 {
			setTAT(tb, long(i), 0)
		}
		for i := range 20 {
			setTAT(tb, large(i), 0)
		}
		if tb.large.bufs != nil || tb.large.free != nil || tb.chunks.inUse() != 0 || tb.chunks.count > slabChunks+spareChunks {
			t.Fatalf("round %d: %d keys are large, %d chunks are in use and %d there", round, len(tb.large.bufs), tb.chunks.inUse(), tb.chunks.count)
		}
	}
}

// firstOf returns the next chunk to take, or 0 for a new slab, and whether it adds to the count.
func firstOf(c *chunks) (id uint32, grows int) {
	for i, set := range []bitset{c.free, c.fresh} {
		for at, word := range set[0] {
			if word != 0 {
				return uint32(at<<slabShift+bits.TrailingZeros64(word)) + 1, i
			}
		}
	}
	return 0, 1
}

// TestChunksAgainstSet: the lowest number is taken, and free chunks are bounded.
func TestChunksAgainstSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var c chunks
	var used []uint32
	for range 200_000 {
		if grows := len(used) < 30_000 && rng.IntN(100_000) > len(used)*2; len(used) == 0 || grows {
			want, grows := firstOf(&c)
			before := c.count
			id := c.take()
			if want != 0 && id != want || c.count-before != grows {
				t.Fatalf("%d is taken, and %d more, want %d and %d", id, c.count-before, want, grows)
			}
			if slices.Contains(used[max(0, len(used)-20):], id) || id == 0 {
				t.Fatalf("%d is taken twice", id)
			}
			c.at(id).setNext(id)
			used = append(used, id)
		} else {
			i := rng.IntN(len(used))
			if got := c.at(used[i]).next(); got != used[i] {
				t.Fatalf("%d is %d", used[i], got)
			}
			c.give(used[i])
			used = slices.Delete(used, i, i+1)
		}
	}
	checkChunks(t, &c, len(used))
	for _, id := range used {
		c.give(id)
	}
	checkChunks(t, &c, 0)
	if c.count > 2*slabChunks || c.growth(c.unused) != 0 || c.growth(c.unused+3) != 3*chunkBytes {
		t.Errorf("%d chunks are left, %d of them free", c.count, c.unused)
	}
	slabs := len(c.slabs)
	for range 2 * slabChunks * slabs {
		c.take()
	}
	if n := ceilDiv(c.count, slabChunks); len(c.slabs) != n || len(c.absent) != 0 {
		t.Errorf("%d chunks in %d slabs, the places of %d are not used again", c.count, len(c.slabs), len(c.absent))
	}
	checkChunks(t, &c, 2*slabChunks*slabs)
}

// TestMostChunks: a key without a chunk number is dropped, others stay.
func TestMostChunks(t *testing.T) {
	tb := &table{seed: maphash.MakeSeed(), long: true}
	first, last := strings.Repeat("first", 10), strings.Repeat("last", 10)
	setTAT(tb, first, 1)
	for _, tt := range []struct{ inUse, keys int }{{mostChunks, 1}, {mostChunks - 1, 2}} {
		tb.chunks.count, tb.chunks.unused = tt.inUse, 0
		setTAT(tb, last, 1)
		tb.chunks.count = 1
		if tb.count != tt.keys {
			t.Errorf("with %d chunks in use: %d keys, want %d", tt.inUse, tb.count, tt.keys)
		}
		checkShape(t, tb)
	}
	at := locatorOf(mostChunks, chunkBytes-1, arenaKeyBytes+hashBytes, math.MaxUint16)
	if chunkOf(at) != mostChunks || offsetOf(at) != chunkBytes-1 || lengthOf(at) != arenaKeyBytes+hashBytes || dbOf(at) != math.MaxUint16 {
		t.Errorf("a locator of the greatest numbers: %x", at)
	}
}

// TestGather: after most keys are removed, the others move together and memory is freed.
func TestGather(t *testing.T) {
	const n, stay = 50_000, 20
	s := newStore(1)
	prefix := strings.Repeat("p", 30)
	for i := range n {
		ttlSec := int64(1)
		if i%stay == 0 {
			ttlSec = 3600
		}
		put(t, s, t0, key(0, fmt.Sprint(prefix, i)), ttlSec)
	}
	full := arenaBytes(s)
	for range 3 {
		sweepOnce(s, t0+sec)
	}
	checkBudget(t, s)
	if got, most := arenaBytes(s), full/stay*3/2+2*(slabChunks+spareChunks)*chunkBytes; got > most || length(s, t0+sec, 0) != n/stay {
		t.Errorf("%d of %d keys are left in %d bytes, want %d", length(s, t0+sec, 0), n, got, most)
	}
}

// churn replaces all keys, some at a time, and returns the tables' size relative to the new keys alone. With
// more at a time than there are keys, new ones come first.
func churn(t *testing.T, newStore func() *Store, keys int, from, to func(i int) int, order int) float64 {
	t.Helper()
	old := func(i int) store.Key { return key(0, fmt.Sprintf("%0*d", from(i), i)) }
	other := func(i int) store.Key { return key(0, fmt.Sprintf("%0*d", to(i), keys+i)) }
	fresh, s := newStore(), newStore()
	for i := range keys {
		put(t, fresh, t0, other(i), 3600)
		put(t, s, t0, old(i), 1)
	}
	for first := 0; first < keys; first += order {
		for i := first; i < min(first+order, keys) && order <= keys; i++ {
			remove(s, t0, old(i))
		}
		for i := first; i < min(first+order, keys); i++ {
			put(t, s, t0, other(i), 3600)
		}
	}
	for range 4 {
		sweepOnce(s, t0+sec)
	}
	if n := statsOf(s).Keys; n != keys {
		t.Errorf("%d keys, want %d", n, keys)
	}
	return float64(statsOf(s).Bytes) / float64(statsOf(fresh).Bytes)
}

func always(length int) func(int) int { return func(int) int { return length } }

// TestChurn: after all keys are replaced, the tables hardly exceed the new keys' own, for any lengths and
// orders. With few keys, free and half-full chunks weigh most.
func TestChurn(t *testing.T) {
	if racetest.OmitsLong() {
		t.Skip("takes seconds, and many with the race detector; it has one goroutine")
	}
	const keys = 50_000
	lengths := map[string]func(i int) int{
		"short": always(12),
		"60":    always(60),
		"mixed": func(i int) int { return 6 + i*7%90 },
	}
	for _, tt := range []struct{ from, to string }{{"60", "60"}, {"60", "mixed"}, {"mixed", "60"}, {"short", "short"}, {"60", "short"}} {
		for how, order := range map[string]int{"one by one": 1, "the old ones go first": keys, "the new ones come first": 2 * keys} {
			got := churn(t, func() *Store { return newStore(1) }, keys, lengths[tt.from], lengths[tt.to], order)
			t.Logf("%s to %s bytes, %s: %.3f", tt.from, tt.to, how, got)
			if got > 1.2 {
				t.Errorf("%s to %s bytes, %s: %.3f of what the new ones take alone, want at most 1.2", tt.from, tt.to, how, got)
			}
		}
	}
}

// TestChurnOfMany is TestChurn with negligible free chunks.
func TestChurnOfMany(t *testing.T) {
	if racetest.OmitsLong() {
		t.Skip("takes half a minute with the race detector")
	}
	const keys = 300_000
	for how, order := range map[string]int{"one by one": 1, "the new ones come first": 2 * keys} {
		got := churn(t, New, keys, always(60), always(60), order)
		t.Logf("%s: %.3f", how, got)
		if got > 1.1 {
			t.Errorf("%s: %.3f of what the new ones take alone, want at most 1.1", how, got)
		}
	}
}
