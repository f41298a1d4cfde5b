package shard

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// names are the kinds of keys to fill a store with.
var names = map[string]func(i int) string{
	"short":     func(i int) string { return fmt.Sprint("short:", i) },
	"long":      func(i int) string { return strings.Repeat("long:", 20) + fmt.Sprint(i) },
	"very long": func(i int) string { return strings.Repeat("x", arenaKeyBytes) + fmt.Sprint(i) },
	"mixed": func(i int) string {
		return strings.Repeat("m", []int{1, 1, 1, 40, 300, 1, 20, 4090, 1, 5000}[i%10]) + fmt.Sprint(i)
	},
	"short, then long": func(i int) string {
		return strings.Repeat("s", 1+300*(i/45_000)) + fmt.Sprint(i)
	},
}

func statsOf(s *Store) (st store.Stats) {
	s.UpdateStats(&st)
	return st
}

// checkBudget compares the budget with the tables.
func checkBudget(t *testing.T, s *Store) {
	t.Helper()
	if used, bytes := s.budget.usedBytes.Load(), statsOf(s).Bytes; int(used) != bytes {
		t.Fatalf("the budget counts %d bytes, there are %d", used, bytes)
	}
	for i := range s.shards {
		for _, tb := range s.shards[i].tables() {
			checkShape(t, tb)
		}
	}
}

// TestEvictionKeepsTheBound: the tables stay within their bound, nothing is refused, and every key is
// present, expired or evicted.
func TestEvictionKeepsTheBound(t *testing.T) {
	racetest.SkipAlone(t)
	const maxBytes, slack = 1 << 20, 128 << 10
	for kind, name := range names {
		t.Run(kind, func(t *testing.T) {
			s, l := newStore(4), limit(t, 0, 1, 3600)
			s.SetMaxBytes(maxBytes, store.VolatileTTL)
			most, keys := 0, 60_000
			if strings.HasPrefix(kind, "very") || kind == "mixed" {
				keys = 5000
			}
			for i := range keys {
				if one(s, t0, key(0, name(i)), l, 1).Limited {
					t.Fatalf("a new key was limited")
				}
				most = max(most, int(s.budget.usedBytes.Load()))
			}
			checkBudget(t, s)
			st := statsOf(s)
			if st.Keys+int(st.Evicted)+int(st.Expired) != keys || st.Refused != 0 {
				t.Errorf("%d keys, %d evicted, %d expired, %d refused of %d", st.Keys, st.Evicted, st.Expired, st.Refused, keys)
			}
			if most > maxBytes+slack || st.MaxBytes != maxBytes {
				t.Errorf("the tables grew to %d bytes, want at most %d and %d; %d are shown", most, maxBytes, slack, st.MaxBytes)
			}
			if st.Bytes < maxBytes*8/10 {
				t.Errorf("%d bytes are in use, of %d", st.Bytes, maxBytes)
			}
			t.Logf("%d keys in %d bytes, %d at most", st.Keys, st.Bytes, most)
		})
	}
}

// TestEvictsTheSoonest: long-lived keys stay, up to sampling, and expired ones go first.
func TestEvictsTheSoonest(t *testing.T) {
	s := newStore(1)
	s.SetMaxBytes(1<<20, store.VolatileTTL)
	const long = 4000
	fill(t, s, t0, long, "long:", 7200)
	fill(t, s, t0, 100_000, "short:", 60)
	left := 0
	for i := range long {
		if _, ok := tatOf(s, t0, key(0, fmt.Sprint("long:", i))); ok {
			left++
		}
	}
	if left < long*95/100 {
		t.Errorf("%d of %d keys with the longest time are left", left, long)
	}
	before := statsOf(s)
	if before.Expired != 0 || before.Evicted == 0 {
		t.Errorf("%d expired, %d evicted", before.Expired, before.Evicted)
	}
	fill(t, s, t0+61*sec, 1000, "new:", 60)
	if st := statsOf(s); st.Expired == 0 || st.Evicted > before.Evicted+10 { // where a bucket is full of long-lived ones
		t.Errorf("%d were evicted although %d had expired", st.Evicted-before.Evicted, st.Expired)
	}
}

// TestRefusesNewKeys: NoEviction leaves existing keys unaffected.
func TestRefusesNewKeys(t *testing.T) {
	for kind, name := range names {
		s, l := newStore(2), limit(t, 1, 1, 3600)
		s.SetMaxBytes(300<<10, store.NoEviction)
		var in, out []int
		for i := range 10_000 {
			batch := []store.Request{{Key: key(0, name(i)), Rule: limiter.OfFunnel(l), Quantity: 1}}
			if s.Throttle(t0, batch); batch[0].Err == nil {
				in = append(in, i)
			} else if out = append(out, i); !errors.Is(batch[0].Err, store.ErrFull) || batch[0].Result.Limit != 0 {
				t.Fatalf("%s: %+v", kind, batch[0])
			}
		}
		checkBudget(t, s)
		st := statsOf(s)
		const most = 310 << 10
		if st.Keys != len(in) || st.Evicted != 0 || int(st.Refused) != len(out) || st.Bytes > most || len(out) == 0 || int(st.Allowed) != len(in) {
			t.Errorf("%s: %+v with %d keys in and %d out", kind, st, len(in), len(out))
		}
		for _, i := range in {
			first, second := one(s, t0, key(0, name(i)), l, 1), one(s, t0, key(0, name(i)), l, 1)
			if first.Limited || !second.Limited {
				t.Fatalf("%s: a key that is there answers %+v, %+v", kind, first, second)
			}
		}
		for _, i := range out[:10] {
			if r := one(s, t0, key(0, name(i)), l, 0); r.Limited || r.Limit != 2 {
				t.Fatalf("%s: a look at a key that is not there: %+v", kind, r)
			}
			if r := one(s, t0, key(0, name(i)), l, 9); !r.Limited {
				t.Fatalf("%s: a key that is not there is never allowed 9 of 2: %+v", kind, r)
			}
		}
		if tatNs, _ := tatOf(s, t0, key(0, name(in[0]))); tatNs <= t0 {
			t.Errorf("%s: the first is gone", kind)
		}
		for _, i := range in {
			remove(s, t0, key(0, name(i)))
		}
		sweepOnce(s, t0)
		fill(t, s, t0, 100, kind, 1)
		if st := statsOf(s); st.Keys != 100 {
			t.Errorf("%s: %d of 100 keys have room when the others are gone", kind, st.Keys)
		}
	}
}

// TestTransactionIsNotEvicted: a transaction's keys do not evict one another.
func TestTransactionIsNotEvicted(t *testing.T) {
	racetest.SkipAlone(t)
	const own = 2000
	l := limit(t, 9, 1, 60)
	var keys []store.Key
	for i := range own {
		keys = append(keys, key(0, names["mixed"](i)+"own"))
	}
	for name, run := range map[string]func(*Store){
		"tx": func(s *Store) {
			tx := s.Begin(t0, keys)
			defer tx.Rollback()
			for _, k := range keys {
				one(tx, t0, k, l, 1)
			}
			if !tx.Commit() {
				t.Error("it did not commit")
			}
		},
		"exclusive": func(s *Store) {
			x := s.BeginAll(t0)
			defer x.End()
			for _, k := range keys {
				one(x, t0, k, l, 1)
			}
		},
	} {
		for maxBytes, mostBytes := range map[int64]int{64 << 10: 3 << 20, 1 << 20: 3 << 20} { // the keys alone take almost 2 MiB
			s := newStore(2)
			s.SetMaxBytes(maxBytes, store.VolatileTTL)
			fill(t, s, t0, 50_000, "other:", 3600)
			run(s)
			for _, k := range keys {
				if _, ok := tatOf(s, t0, k); !ok {
					t.Fatalf("%s: %.40q was evicted by its own transaction", name, k.Name)
				}
			}
			checkBudget(t, s)
			if st := statsOf(s); st.Bytes > mostBytes {
				t.Errorf("%s: %d bytes", name, st.Bytes)
			}
			for i := range s.shards {
				if s.shards[i].pins != nil {
					t.Errorf("%s: keys are pinned behind its end", name)
				}
			}
		}
	}
}

// TestTransactionKeepsToTheBound, for keys of all lengths, up to a slab of chunks.
func TestTransactionKeepsToTheBound(t *testing.T) {
	const maxBytes = 1 << 20
	for _, bytes := range []int{12, 36, 500, 4000} {
		s, l := newStore(1), limit(t, 9, 1, 3600)
		name := func(i int) store.Key { return key(0, fmt.Sprintf("%0*d", bytes, i)) }
		s.SetMaxBytes(maxBytes, store.NoEviction)
		n := 0
		for batch := []store.Request{{Key: name(n), Rule: limiter.OfFunnel(l), Quantity: 1}}; batch[0].Err == nil; n++ {
			batch[0].Key = name(n)
			s.Throttle(t0, batch)
		}
		var gone, keys []store.Key
		for i := range 1000 {
			gone, keys = append(gone, name(i%30)), append(keys, name(n+i))
		}
		if _, err := s.Delete(t0, gone); err != nil {
			t.Fatal(err)
		}
		tx := s.Begin(t0, keys)
		allowed := 0
		for i := range keys {
			batch := []store.Request{{Key: keys[i], Rule: limiter.OfFunnel(l), Quantity: 1}}
			if tx.Throttle(t0, batch); batch[0].Err == nil {
				allowed++
			}
		}
		if !tx.Commit() {
			t.Fatal("nobody has changed a key")
		}
		if used := statsOf(s).Bytes; allowed == 0 && bytes < 1000 || allowed == len(keys) || used > maxBytes+slabChunks*chunkBytes {
			t.Errorf("%d new keys of %d bytes were allowed, and %d bytes are in use", allowed, bytes, used)
		}
	}
}

// TestEvictionIsSeenByWatch: a key that is evicted is a change.
func TestEvictionIsSeenByWatch(t *testing.T) {
	s := newStore(1)
	s.SetMaxBytes(128<<10, store.VolatileTTL)
	watched := key(0, "watched")
	put(t, s, t0, watched, 1)
	w := s.Watch(t0, []store.Key{watched})
	defer w.Close()
	for i := 0; ; i++ {
		_, ok := tatOf(s, t0, watched)
		if w.Dirty(t0) == ok {
			t.Fatalf("key %d: the watched key is there: %t; its watch is dirty: %t", i, ok, !ok)
		}
		if !ok {
			return
		}
		if i > 100_000 {
			t.Fatal("it was not evicted")
		}
		put(t, s, t0, key(0, fmt.Sprint(i)), 3600)
	}
}

// TestSweeperShrinks: sweeping reaches a lowered bound, the soonest expiring first.
func TestSweeperShrinks(t *testing.T) {
	racetest.SkipAlone(t)
	for kind, name := range names {
		s := newStore(2)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range 50_000 / (1 + len(name(0))/40) {
			put(t, s, t0, key(0, name(i)), 60+rng.Int64N(3600))
		}
		full := statsOf(s)
		s.SetMaxBytes(int64(full.Bytes/3), store.NoEviction)
		sweepOnce(s, t0)
		if st := statsOf(s); st.Keys != full.Keys {
			t.Fatalf("%s: NoEviction evicted", kind)
		}
		s.SetMaxBytes(int64(full.Bytes/3), store.VolatileTTL)
		for n := 0; n < 50 && statsOf(s).Bytes > full.Bytes/3; n++ {
			sweepOnce(s, t0)
		}
		checkBudget(t, s)
		if st := statsOf(s); st.Bytes > full.Bytes/3 || st.Bytes < full.Bytes/6 || int(st.Evicted) != full.Keys-st.Keys {
			t.Errorf("%s: %+v, of %d keys in %d bytes", kind, st, full.Keys, full.Bytes)
		}
	}
}

// TestShrinkKeepsKeys: a lowered bound is used for keys, not for free chunks.
func TestShrinkKeepsKeys(t *testing.T) {
	const maxBytes = 1 << 20
	for bytes, least := range map[int]float64{12: 0.35, 36: 0.5, 200: 0.8, 4000: 0.8} {
		s := newStore(4)
		for i := range 4 * maxBytes / bytes {
			put(t, s, t0, key(0, fmt.Sprintf("%0*d", bytes, i)), 60+int64(i))
		}
		s.SetMaxBytes(maxBytes, store.VolatileTTL)
		for n := 0; n < 10 || n < 50 && statsOf(s).Bytes > maxBytes; n++ { // by the hash's luck, 3 to 13
			sweepOnce(s, t0)
		}
		checkBudget(t, s)
		st := statsOf(s)
		if got := float64(st.Keys*bytes) / maxBytes; st.Bytes > maxBytes || got < least {
			t.Errorf("keys of %d bytes are %.2f of the bound, want %.2f, and %d bytes are in use", bytes, got, least, st.Bytes)
		}
	}
}

// TestReclaimsFromBothTables: reclaiming goes on from the empty inline table to the other.
func TestReclaimsFromBothTables(t *testing.T) {
	const maxBytes, big, many = 2 << 20, 20 << 10, 60
	s := newStore(1)
	s.SetMaxBytes(maxBytes, store.VolatileTTL)
	fill(t, s, t0, 10, "inline:", 7200)
	for i := range 60_000 {
		put(t, s, t0, key(0, fmt.Sprintf("%036d", i)), 3600)
	}
	for i := range many {
		put(t, s, t0, key(0, fmt.Sprintf("%0*d", big, i)), 7200)
	}
	checkBudget(t, s)
	left := 0
	for i := range many {
		if _, ok := tatOf(s, t0, key(0, fmt.Sprintf("%0*d", big, i))); ok {
			left++
		}
	}
	if st := statsOf(s); st.Bytes > maxBytes+4*big || left < many/3 { // by the hash's luck, 45 with a deviation of 4
		t.Errorf("%d bytes are in use, want %d, and %d of %d keys are left", st.Bytes, maxBytes, left, many)
	}
}

// TestGrowthIsForeseen: an insert hardly exceeds its requested budget.
func TestGrowthIsForeseen(t *testing.T) {
	racetest.SkipAlone(t)
	for _, bytes := range []int{12, 17, 36, 64, 100, 500, 1000, 4096, 4097} {
		tb := &table{seed: maphash.MakeSeed(), long: bytes > inlineBytes}
		n := max(1000, 500_000/bytes)
		for i := range 6 * n {
			for at := max(0, i-n); i%n == 0 && at < i-n/10; at++ { // most of them go, and slabs do
				setTAT(tb, fmt.Sprintf("%0*d", bytes, at), 0)
			}
			k := key(0, fmt.Sprintf("%0*d", bytes, i))
			it := &item{ref: refOf(&k, hashKey(tb.seed, 0, k.Name)), key: &k, expiresNs: 1}
			before, slabs, said, splits := tb.bytes(), cap(tb.chunks.slabs), tb.growth(it), tb.made
			tb.insert(it)
			most := before + said + (cap(tb.chunks.slabs)-slabs)*pointerBytes
			if tb.made > splits || bytes > arenaKeyBytes { // which rounds up
				most += 4*chunkBytes + 32*bytes
			}
			if tb.bytes() > most {
				t.Fatalf("insert %d of %d bytes: the table has %d bytes, want at most %d", i, bytes, tb.bytes(), most)
			}
		}
	}
}

// TestTickEvicts: ticks continue while there is something to evict, within their budget.
func TestTickEvicts(t *testing.T) {
	s := newStore(2)
	fill(t, s, t0, 100_000, "k", 3600)
	s.SetMaxBytes(1<<20, store.VolatileTTL)
	w := NewSweeper(s)
	nowNs := t0
	for ticks := 0; !s.budget.fits(0); ticks++ {
		looks := 0
		w.tick(func() int64 { looks++; nowNs += int64(sweepBudget) / 4; return nowNs })
		if looks > 10 || ticks > 100 {
			t.Fatalf("tick %d: %d looks at the clock", ticks, looks)
		}
	}
}

// TestModelWithEviction: present keys answer like a map, and missing ones were evicted: no key exceeds its
// limit unless it was.
func TestModelWithEviction(t *testing.T) {
	s, m := newStore(2), model{}
	s.SetMaxBytes(256<<10, store.VolatileTTL)
	rng := rand.New(rand.NewPCG(7, 8))
	now, lost := t0, 0
	sweeper := NewSweeper(s)
	for i := range 25_000 {
		if i%500 == 0 {
			checkBudget(t, s)
		}
		now += rng.Int64N(sec / 100)
		k, l := key(0, names["mixed"](rng.IntN(10_000))), limit(t, 3, 1, 100)
		if want := m.tat(now, k); want > now {
			if tatNs, _ := tatOf(s, now, k); tatNs == now {
				delete(m, idOf(k)) // evicted
				lost++
			} else if tatNs != want {
				t.Fatalf("a key's TAT is %d, want %d", tatNs, want)
			}
		}
		quantity := 1 + rng.Int64N(2)
		if got, want := one(s, now, k, l, quantity), m.throttle(now, k, l, quantity); got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		sweeper.Step(now)
	}
	checkBudget(t, s)
	if st := statsOf(s); lost == 0 || int(st.Evicted) < lost {
		t.Errorf("%d keys were lost, %d evicted", lost, st.Evicted)
	}
}
