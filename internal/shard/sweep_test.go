package shard

import (
	"fmt"
	"testing"
	"time"

	"cellserver/internal/store"
)

// TestTick: a tick sweeps a part of the store, and more while much expires and time remains.
func TestTick(t *testing.T) {
	// spread puts keys into each of 16 one-segment shards; some expire after a second.
	spread := func(each, expire int) *Store {
		s, n := newStore(4), make([]int, 16)
		for i, missing := 0, 16*each; missing > 0; i++ {
			k := key(0, fmt.Sprint(i))
			at := ref(s, k).hash >> s.shift
			if n[at] == each {
				continue
			}
			ttlSec := int64(60)
			if n[at] < expire {
				ttlSec = 1
			}
			put(t, s, t0, k, ttlSec)
			n[at]++
			missing--
		}
		return s
	}
	parts := func(segments int) *Store { // empty ones
		s := newStore(13)
		s.shards = s.shards[:segments]
		return s
	}
	many := func() *Store {
		s := newStore(4)
		fill(t, s, t0, 40_000, "k", 1)
		return s
	}
	const budgetNs = int64(sweepBudget)
	for _, tt := range []struct {
		name   string
		store  *Store
		tickNs int64 // from one look at the clock to the next
		chunks int
		tookNs int64
	}{
		{"nothing to do", parts(16), 0, 1, 0},
		{"a hundredth is a chunk", parts(sweepPart * sweepChunk), 0, 1, 0},
		{"and a step less", parts(sweepPart*sweepChunk - 1), 0, 1, 0},
		{"and a step more", parts(sweepPart * (sweepChunk + 1)), 0, 2, 0},
		// Four rounds: 64 steps see lasting entries four times, expired ones once.
		{"one in ten expired", spread(13, 4), 0, 1, 0},
		{"more expired, then none", spread(14, 5), 0, 2, 0},
		{"none expired", spread(14, 0), 0, 1, 0},
		{"the time is over, just so", many(), budgetNs / 2, 2, 3 * budgetNs / 2},
		{"not quite", many(), budgetNs/2 - 1, 3, 4 * (budgetNs/2 - 1)},
		{"at once", many(), 2 * budgetNs, 1, 4 * budgetNs},
	} {
		w, nowNs, looks, before := NewSweeper(tt.store), t0+sec+int64(grace), 0, 0
		w.Before = func() {
			if before++; looks > 0 {
				t.Errorf("%s: called after a look at the clock", tt.name)
			}
		}
		var tookNs []int64
		w.Took = func(ns int64) { tookNs = append(tookNs, ns) }
		w.tick(func() int64 {
			looks++
			return nowNs + int64(looks)*tt.tickNs
		})
		if before != 1 {
			t.Errorf("%s: Before was called %d times", tt.name, before)
		}
		if chunks := looks - 2; chunks != tt.chunks || len(tookNs) != 1 || tookNs[0] != tt.tookNs {
			t.Errorf("%s: %d chunks, and told of %d ns, want %d and %d", tt.name, chunks, tookNs, tt.chunks, tt.tookNs)
		}
		w.Took, w.Before = nil, nil // nobody wants to know
		w.tick(func() int64 { return nowNs })
	}
}

// TestExpiredKeysComeBackInPlace: within the grace they keep their slots, and each expiry counts once.
func TestExpiredKeysComeBackInPlace(t *testing.T) {
	const keys = 20_000
	s, l := New(), limit(t, 0, 1, 1)
	w := NewSweeper(s)
	sweep := func(nowNs int64) {
		for range 100 { // ticks
			w.tick(func() int64 { return nowNs })
		}
	}
	bytes, expired := 0, uint64(0)
	for round := range int64(3) {
		for _, prefix := range []string{"k", "a long key that has a record beside its slot:"} {
			for i := range keys {
				one(s, t0+round*(sec+int64(grace)-1), key(0, fmt.Sprint(prefix, i)), l, 1)
			}
		}
		st := statsOf(s)
		if round == 0 {
			bytes = st.Bytes
		}
		if st.Keys != 2*keys || st.Bytes != bytes || st.Expired != expired {
			t.Fatalf("round %d: %d keys, %d bytes, %d expired, want %d, %d, %d", round, st.Keys, st.Bytes, st.Expired, 2*keys, bytes, expired)
		}
		endNs := t0 + round*(sec+int64(grace)-1) + sec
		sweep(endNs + int64(grace) - 1)
		if n := length(s, endNs, 0); n != 0 {
			t.Errorf("%d expired keys are counted", n)
		}
		expired += 2 * keys
	}
	sweep(t0 + 3*(sec+int64(grace)))
	if st := statsOf(s); st.Keys != 0 || st.Expired != expired || st.Bytes != 0 {
		t.Errorf("after the grace: %+v", st)
	}
}

// TestGrace: it shrinks as the tables grow towards their bound.
func TestGrace(t *testing.T) {
	for _, tt := range []struct {
		most, used int64
		want       time.Duration
	}{{0, 1000, grace}, {1000, 0, 2 * grace}, {1000, 500, grace}, {1000, 900, grace / 5}, {1000, 1000, 0}, {1000, 1100, 0}} {
		var b budget
		b.maxBytes.Store(tt.most)
		b.usedBytes.Store(tt.used)
		if got := b.graceNs(); max(got-int64(tt.want), int64(tt.want)-got) > 1 {
			t.Errorf("%d of %d bytes: %d ns, want %v", tt.used, tt.most, got, tt.want)
		}
	}
}

// TestSteps: a step is a segment or an empty shard, and reports its findings.
func TestSteps(t *testing.T) {
	s := newStore(4)
	fill(t, s, t0, 5000, "goes:", 1)
	fill(t, s, t0, 5000, "stays:", 60)
	w := NewSweeper(s)
	for _, tt := range []struct {
		nowNs         int64
		seen, removed int
	}{
		{t0 + sec - 1, 10_000, 0},
		{t0 + sec, 10_000, 5000},
		{t0 + sec, 5000, 0},
		{t0 + 60*sec, 5000, 5000},
		{t0 + 60*sec, 0, 0},
	} {
		seen, removed := 0, 0
		for steps := 0; steps == 0 || w.shard != 0 || w.hand != (hand{}); steps++ {
			n, gone := w.Step(tt.nowNs)
			seen, removed = seen+n, removed+gone
		}
		if seen != tt.seen || removed != tt.removed {
			t.Errorf("after %d ns: saw %d and removed %d, want %d and %d", tt.nowNs-t0, seen, removed, tt.seen, tt.removed)
		}
	}
	var st store.Stats
	if s.UpdateStats(&st); st.Keys != 0 || st.Expired != 10_000 {
		t.Errorf("in the end: %+v", st)
	}
	if n := s.segments(); n != 16 {
		t.Errorf("a way around the empty store is %d steps, want 16", n)
	}
}
