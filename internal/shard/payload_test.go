package shard

import (
	"bytes"
	"context"
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

// states is a store as a plain map.
type states map[id]limiter.State

func (m states) live(nowNs int64, k store.Key) (limiter.State, bool) {
	s := m[idOf(k)]
	return s, s.ExpiresNs > nowNs
}

func (m states) set(nowNs int64, k store.Key, s limiter.State) {
	if s.ExpiresNs > nowNs {
		m[idOf(k)] = s
	} else {
		delete(m, idOf(k))
	}
}

func same(a, b limiter.State) bool {
	return a.Kind == b.Kind && a.ExpiresNs == b.ExpiresNs && bytes.Equal(a.Payload, b.Payload)
}

// payloadRun is a run with states that have no meaning.
type payloadRun struct {
	*testing.T
	rng      *rand.Rand
	s        *Store
	m        states
	reported states // by Changes
	now      int64
	bounded  bool // by eviction
	sweeper  *Sweeper
}

func newPayloadRun(t *testing.T, seed uint64) *payloadRun {
	s := newStore(2)
	s.Track(func() {})
	return &payloadRun{
		T: t, rng: rand.New(rand.NewPCG(seed, 7)), s: s, m: states{}, reported: states{}, now: t0, sweeper: NewSweeper(s),
	}
}

func (r *payloadRun) key() store.Key {
	i := r.rng.IntN(1200)
	return key(uint16(i%3*300), strings.Repeat(fmt.Sprint(i, "-"), []int{1, 2, 3, 6, 30, 60, 120, 1000}[i%8]))
}

// payload returns a payload of a critical length, or one like another.
func (r *payloadRun) payload(like int) []byte {
	n := like + r.rng.IntN(60) - 20
	if r.rng.IntN(3) == 0 {
		n = []int{0, 1, 8, 16, 32, 100, 400, 480, 496, 500, 512, 600, 1000, 5000, 70_000}[r.rng.IntN(15)]
	}
	b := make([]byte, max(0, n))
	for i := range b {
		b[i] = byte(r.rng.Uint32())
	}
	return b
}

func (r *payloadRun) state(like int) limiter.State {
	s := limiter.State{Kind: limiter.Kind(r.rng.IntN(int(limiter.Kinds))), ExpiresNs: r.now + r.rng.Int64N(8*sec) - sec/4}
	if r.rng.IntN(20) == 0 {
		s.ExpiresNs = limiter.NeverNs
	}
	if s.Kind != limiter.Funnel {
		s.Payload = r.payload(like)
	}
	return s
}

// set sets a key's state, mostly similar to its present one.
func (r *payloadRun) set(ks store.Keys, k store.Key) {
	r.Helper()
	was, live := r.m.live(r.now, k)
	s := r.state(len(was.Payload))
	if live && r.rng.IntN(3) > 0 && was.Kind != limiter.Funnel {
		s.Kind, s.Payload = was.Kind, r.payload(len(was.Payload))
		if r.rng.IntN(2) == 0 {
			s.ExpiresNs = was.ExpiresNs
		}
	}
	before, found, err := store.SetIf(ks, r.now, k, s, store.Always)
	r.check(k, before, found)
	switch {
	case errors.Is(err, store.ErrFull):
		r.check(k, before, found)
	case err != nil:
		r.Fatal(err)
	default:
		r.m.set(r.now, k, s)
	}
}

// check compares a state with the map's. It may be evicted.
func (r *payloadRun) check(k store.Key, got limiter.State, found bool) {
	r.Helper()
	want, live := r.m.live(r.now, k)
	if live && !found && r.bounded {
		delete(r.m, idOf(k))
		return
	}
	if found != live || found && !same(got, want) {
		r.Fatalf("%.30q: got kind %d, %d ns, %d bytes, %v, want kind %d, %d ns, %d bytes, %v", k.Name,
			got.Kind, got.ExpiresNs-r.now, len(got.Payload), found, want.Kind, want.ExpiresNs-r.now, len(want.Payload), live)
	}
}

func (r *payloadRun) look(ks store.Keys, k store.Key) {
	r.Helper()
	s, found, _ := ks.State(r.now, k)
	r.check(k, s, found)
}

func (r *payloadRun) remove(ks store.Keys, k store.Key) {
	r.Helper()
	_, live := r.m.live(r.now, k)
	if got := remove(ks, r.now, k); got != live && (got || !r.bounded) {
		r.Fatalf("Delete: %v, want %v", got, live)
	}
	delete(r.m, idOf(k))
}

func (r *payloadRun) step() {
	r.Helper()
	switch n := r.rng.IntN(1000); {
	case n < 600:
		r.set(r.s, r.key())
	case n < 700:
		r.look(r.s, r.key())
	case n < 800:
		r.remove(r.s, r.key())
	case n < 850:
		r.tx()
	case n < 870:
		x := r.s.BeginAll(r.now)
		r.set(x, r.key())
		r.look(x, r.key())
		x.End()
	case n < 990:
		r.sweeper.Step(r.now)
	case n < 991:
		r.s.Flush(context.Background(), 300)
		for i := range r.m {
			if i.db == 300 {
				delete(r.m, i)
			}
		}
	case n < 992:
		r.now += 3 * sec
	}
}

func (r *payloadRun) tx() {
	keys := []store.Key{r.key(), r.key()}
	tx := r.s.Begin(r.now, keys)
	defer tx.Rollback()
	if r.rng.IntN(2) == 0 {
		tx.Release()
	}
	for _, k := range keys {
		r.set(tx, k)
		r.look(tx, k)
	}
	if !tx.Commit() {
		r.Fatal("not committed")
	}
}

// follow compares the reported changes with the store.
func (r *payloadRun) follow() {
	r.Helper()
	complete := store.Round(r.s, r.now, func(c store.Change) {
		if c.Flushed {
			clear(r.reported)
			return
		}
		c.State.Payload = bytes.Clone(c.State.Payload)
		r.reported.set(r.now, c.Key, c.State)
	})
	all := states{}
	r.s.States(context.Background(), r.now, func(c store.Change) {
		c.State.Payload = bytes.Clone(c.State.Payload)
		all.set(r.now, c.Key, c.State)
	}, nil)
	if !complete {
		clear(r.reported)
		for i, s := range all {
			r.reported[i] = s
		}
	}
	for i, s := range all {
		r.check(key(i.db, i.name), s, true)
		if got := r.reported[i]; !same(got, s) {
			r.Fatalf("%.30q was told to be of kind %d, %d bytes, and is of kind %d, %d bytes", i.name, got.Kind, len(got.Payload), s.Kind, len(s.Payload))
		}
	}
	if r.bounded {
		return // evicted keys may be reported in an old state
	}
	for i, s := range r.reported {
		if _, ok := all[i]; !ok && s.ExpiresNs > r.now {
			r.Fatalf("%.30q is gone, and that was not told", i.name)
		}
	}
	for i, s := range r.m {
		if _, ok := all[i]; !ok && s.ExpiresNs > r.now {
			r.Fatalf("%.30q is missing", i.name)
		}
	}
}

// forgetEvicted forgets what no change reports: evicted keys that were not set again, or have expired since.
func (r *payloadRun) forgetEvicted() {
	for i := range r.m {
		r.look(r.s, key(i.db, i.name))
	}
	for i := range r.reported {
		if _, live := r.m.live(r.now, key(i.db, i.name)); !live {
			delete(r.reported, i)
		}
	}
}

// TestPayloadsAgainstPlainMap: payloads survive splits, merges and squeezes, and a follower has the same,
// alternately with a bound.
func TestPayloadsAgainstPlainMap(t *testing.T) {
	racetest.SkipAlone(t)
	for seed := range uint64(4) {
		if racetest.IsQuick() && seed != 3 { // which is bounded in every way
			continue
		}
		r := newPayloadRun(t, seed)
		for i := range 25_000 {
			r.now += r.rng.Int64N(sec / 1000)
			r.step()
			switch {
			case i%100 == 0:
				checkListed(t, r.s)
			case i%1000 == 1:
				checkBudget(t, r.s)
				r.follow()
			case i%8000 == 2 && seed%2 == 1:
				r.forgetEvicted()
				r.bounded = i/8000%2 == 0
				r.s.SetMaxBytes([]int64{2 << 20, 0}[i/8000%2], store.VolatileTTL)
			case i%8000 == 4002 && seed%4 == 3:
				r.s.SetMaxBytes(1<<20, store.NoEviction)
			}
		}
		r.s.SetMaxBytes(0, store.VolatileTTL)
		r.bounded = true
		r.follow()
		for i := range r.m {
			r.remove(r.s, key(i.db, i.name))
		}
		r.now = limiter.NeverNs - 1
		sweepOnce(r.s, r.now)
		for range 10 {
			sweepOnce(r.s, r.now)
		}
		if st := statsOf(r.s); st.Keys != 0 || st.Bytes != 0 {
			t.Errorf("%d keys and %d bytes are left", st.Keys, st.Bytes)
		}
	}
}

// TestPayloadEntriesAreReadBack checks all properties of an entry at the lengths that change its storage.
func TestPayloadEntriesAreReadBack(t *testing.T) {
	for _, db := range []uint16{0, 700} {
		for _, nameBytes := range []int{0, 1, 13, 14, 15, 16, 17, 128, 129, 300, 499, 500, 4096, 4097, 1 << 16} {
			for _, payloadBytes := range []int{0, 1, 8, 300, 371, 372, 373, 484, 485, 499, 500, 501, 70_000} {
				tb := &table{seed: maphash.MakeSeed(), long: true}
				k := key(db, strings.Repeat("\xff", nameBytes))
				it := item{ref: refOf(&k, hashKey(tb.seed, db, k.Name)), key: &k, kind: limiter.Named, expiresNs: t0}
				it.payload = bytes.Repeat([]byte{7}, payloadBytes)
				b, slot := insertAndFind(t, tb, &it)
				if large := b.place(slot) == placeLarge; large != (it.recordBytes() > arenaStateBytes) {
					t.Errorf("%d, %d: large: %t", nameBytes, payloadBytes, large)
				}
				if short := nameBytes <= 14 || nameBytes <= 16 && db == 0; tb.shorts == 1 != short {
					t.Errorf("%d: that it is short is %t", nameBytes, !short)
				}
			}
		}
	}
}

// TestVersionsAreNew: a payload's version never repeats.
func TestVersionsAreNew(t *testing.T) {
	s, k, seen := newStore(1), key(0, "k"), map[uint64]bool{}
	sh := s.shardOf(ref(s, k).hash)
	for i := range 300 {
		switch i % 4 {
		case 1:
			remove(s, t0, k)
		case 2:
			s.FlushAll()
		}
		n := []int{8, 8, 40, 700}[i%4]
		if _, _, err := store.SetIf(s, t0, k, limiter.State{Kind: limiter.Bucket, ExpiresNs: t0 + sec, Payload: make([]byte, n)}, store.Always); err != nil {
			t.Fatal(err)
		}
		v := sh.identityLocked(t0, s.ref(&k), &k).version
		if v == 0 || seen[v] {
			t.Fatalf("version %d of change %d was there before", v, i)
		}
		seen[v] = true
	}
}

// TestGatheredInParts: copies stay near their bound, however large a segment's payloads.
func TestGatheredInParts(t *testing.T) {
	const keys, payload = 300, 20 << 10
	s := newStore(1)
	s.Track(func() {})
	for i := range keys {
		state := limiter.State{Kind: limiter.Concurrency, ExpiresNs: t0 + sec, Payload: bytes.Repeat([]byte{byte(i)}, payload)}
		if _, _, err := store.SetIf(s, t0, key(0, fmt.Sprint(i)), state, store.Always); err != nil {
			t.Fatal(err)
		}
	}
	g := gather{store: s, nowNs: t0}
	check := func(seen map[string]int) {
		t.Helper()
		if len(g.bytes) > segmentGatherBytes+2*payload {
			t.Fatalf("%d bytes at a time", len(g.bytes))
		}
		g.visit = func(c store.Change) {
			if seen[string(c.Key.Name)]++; len(c.State.Payload) != payload {
				t.Fatalf("%d bytes of payload", len(c.State.Payload))
			}
		}
		g.report()
	}
	seen, changed := map[string]int{}, map[string]int{}
	for i := range s.shards {
		sh := &s.shards[i]
		for at, more := uint64(0), true; more; {
			at, more = g.statesAt(sh, &sh.long, at)
			check(seen)
		}
		for more := true; more; {
			more, _ = g.some(sh)
			check(changed)
		}
	}
	if len(seen) != keys || len(changed) != keys {
		t.Fatalf("%d states and %d changes, want %d", len(seen), len(changed), keys)
	}
	for name := range seen {
		if seen[name] != 1 || changed[name] != 1 {
			t.Fatalf("%s was told %d times, and %d times as changed", name, seen[name], changed[name])
		}
	}
}

// TestLooksCopyNothing: looks at a payload of 160 KiB, of which a transaction may have many, are as fast as
// others.
func TestLooksCopyNothing(t *testing.T) {
	s, key := newStore(1), store.Key{Name: []byte("k")}
	l := limit(t, 1<<20, 1, 3600)
	for id := range uint64(4096) {
		o := limiter.Operation{Verb: limiter.Reserve, Funnel: l, ID: id, Quantity: 1, TTLNs: 3600 * sec}
		if err := s.Apply(t0, key, &o); err != nil {
			t.Fatal(err)
		}
	}
	tx := s.Begin(t0, []store.Key{key})
	_ = tx.Apply(t0, key, &limiter.Operation{Verb: limiter.Look}) // which reads it
	tx.Save()
	look := limiter.Operation{Verb: limiter.Look}
	if n := testing.AllocsPerRun(10, func() { _ = tx.Apply(t0, key, &look) }); n > 0 || look.Count != 1 {
		t.Errorf("in a transaction: %g allocations, and it finds %d", n, look.Count)
	}
	tx.Rollback()
	if n := testing.AllocsPerRun(10, func() { _ = s.Apply(t0, key, &look) }); n > 0 || look.Count != 1 {
		t.Errorf("%g allocations, and it finds %d", n, look.Count)
	}
}
