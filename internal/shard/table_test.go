package shard

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/store"
)

// fill stores n keys that expire at once, ttl from now.
func fill(t testing.TB, s *Store, nowNs int64, n int, prefix string, ttlSec int64) {
	t.Helper()
	l := limit(t, 0, 1, ttlSec)
	for i := range n {
		one(s, nowNs, key(0, fmt.Sprint(prefix, i)), l, 1)
	}
}

// put stores a key that expires after ttlSec.
func put(t testing.TB, s *Store, nowNs int64, k store.Key, ttlSec int64) {
	t.Helper()
	if one(s, nowNs, k, limit(t, 99, 1, ttlSec), 1).Limited {
		t.Fatalf("%q was limited", k.Name)
	}
}

func sweepOnce(s *Store, nowNs int64) {
	w := NewSweeper(s)
	for range s.segments() {
		w.Step(nowNs)
	}
}

func segments(s *Store) (n, directory int) {
	for i := range s.shards {
		for _, t := range s.shards[i].tables() {
			n += t.made
			directory += len(t.directory)
		}
	}
	return n, directory
}

// arenaBytes is what the store has allocated for long keys.
func arenaBytes(s *Store) (n int) {
	for i := range s.shards {
		n += s.shards[i].long.chunks.bytes() + s.shards[i].long.large.bytes
	}
	return n
}

// TestTableGrowsAndShrinks: memory of expired keys is freed, and others stay.
func TestTableGrowsAndShrinks(t *testing.T) {
	const stay, n = 500, 200_000
	for _, prefix := range []string{"", strings.Repeat("long", 50)} {
		s := New()
		fill(t, s, t0, n, prefix+"short-lived:", 1)
		fill(t, s, t0, stay, prefix+"long-lived:", 3600)
		if got := length(s, t0, 0); got != n+stay {
			t.Fatalf("Count: got %d, want %d", got, n+stay)
		}
		grown, _ := segments(s)
		if slots := grown * scanSegmentSlots; slots > 3*n {
			t.Errorf("%d slots for %d keys", slots, n)
		}
		w := NewSweeper(s)
		for range 3 * grown {
			w.Step(t0 + sec)
		}
		st := statsOf(s)
		left, directory := segments(s)
		if st.Keys != stay || st.Expired != n || left > len(s.shards) || directory > len(s.shards) {
			t.Errorf("after the sweep: %+v in %d segments, %d directory entries", st, left, directory)
		}
		if bytes := arenaBytes(s); bytes > 2*stay*(len(prefix)+20)+len(s.shards)*(slabChunks+spareChunks)*chunkBytes {
			t.Errorf("%d keys in %d bytes of arenas", st.Keys, bytes)
		}
		for i := range stay {
			if _, ok := tatOf(s, t0+sec, key(0, fmt.Sprint(prefix, "long-lived:", i))); !ok {
				t.Fatalf("key %d was lost", i)
			}
		}
	}
}

func ref(s *Store, k store.Key) keyRef { return s.ref(&k) }

func nameAt(t *table, b *bucket, slot int) string { return string(t.appendName(nil, b, slot)) }

// TestHomeDoesNotChange: cursors rely on this: through splits, merges and rebuilds, a walk meets every
// lasting entry and ends.
func TestHomeDoesNotChange(t *testing.T) {
	const stays = 14_000 // so that only two segments of them may merge
	for i := range 4 {
		s, prefix := newStore(4), []string{"", "a prefix that makes keys long:"}[i%2]
		fill(t, s, t0, stays, prefix+"stays:", 3600)
		sh, met := &s.shards[i], map[string]bool{}
		tb := [...]*table{&sh.inline, &sh.long}[i%2]
		first, most, merged := tb.made, 0, 0
		for at, steps := uint64(0), 0; ; steps++ {
			seg, next := tb.segmentAfter(at)
			tb.each(seg, func(b *bucket, slot int) { met[nameAt(tb, b, slot)] = true })
			if next == 0 {
				break
			}
			if at = next; steps > 10_000 {
				t.Fatal("the walk does not end")
			}
			before := tb.made
			changeUnderWalk(t, s, sh, tb, prefix, at, steps)
			merged += max(0, before-tb.made)
			most = max(most, tb.made)
		}
		for j := range stays {
			name := fmt.Sprint(prefix, "stays:", j)
			if s.shardOf(ref(s, key(0, name)).hash) == sh && !met[name] {
				t.Fatalf("shard %d: the walk missed %s", i, name)
			}
		}
		if most < 2*first || merged == 0 {
			t.Errorf("shard %d: %d, at the most %d segments, %d merged: too little happened under the walk", i, first, most, merged)
		}
	}
}

// changeUnderWalk splits, merges and rebuilds segments.
func changeUnderWalk(t *testing.T, s *Store, sh *shard, tb *table, prefix string, at uint64, steps int) {
	t.Helper()
	switch {
	case steps == 0 || steps == 40:
		fill(t, s, t0, 30_000, fmt.Sprint(prefix, at%100, steps, ":"), 1)
	case steps%3 == 0:
		seg, _ := tb.segmentAfter(at)
		tb.rebuild(seg)
	case steps%3 == 1:
		sh.sweepLocked(hand{int(tb.number()), at}, t0+sec)
		sh.sweepLocked(hand{int(tb.number()), at ^ 1<<60}, t0+sec)
	case steps == 8: // all of them, as the hashes' luck may have left few halves to merge
		for at := (hand{}); ; {
			if _, _, at = sh.sweepLocked(at, t0+sec); at == (hand{}) {
				break
			}
		}
	}
}

// TestCountUnderMerges: Count counts no entry twice beside merges.
func TestCountUnderMerges(t *testing.T) {
	s := newStore(1)
	fill(t, s, t0, 100, "stays:", 3600)
	fill(t, s, t0, 30_000, "goes:", 1)
	sh, counted := &s.shards[0], 0
	want := 0
	for i := range 100 {
		if s.shardOf(ref(s, key(0, fmt.Sprint("stays:", i))).hash) == sh {
			want++
		}
	}
	for at, more := uint64(0), true; more; {
		counts := make([]store.KeyCount, 1)
		at, more = sh.someSegments(at, false, counter(t0+sec, counts))
		counted += counts[0].Keys
		for before, n := (hand{}), 0; sh.count() > 0 && n < 1000; n++ {
			if _, _, before = sh.sweepLocked(before, t0+sec); before == (hand{}) {
				break
			}
		}
	}
	if counted != want {
		t.Errorf("counted %d, want %d", counted, want)
	}
}

func TestSweeperComesAroundAndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		start := time.Now()
		now := func() int64 { return t0 + int64(time.Since(start)) }
		fill(t, s, now(), 50_000, "k", 1)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { NewSweeper(s).Run(ctx, now) })
		time.Sleep(900*time.Millisecond + grace)
		var st store.Stats
		if s.UpdateStats(&st); st.Keys != 50_000 {
			t.Errorf("before they are removed: %d entries, want 50000", st.Keys)
		}
		time.Sleep(400 * time.Millisecond)
		st = store.Stats{}
		if s.UpdateStats(&st); st.Keys != 0 {
			t.Errorf("0.3 s after that %d entries are left", st.Keys)
		}
		cancel()
		wg.Wait()
	})
}
