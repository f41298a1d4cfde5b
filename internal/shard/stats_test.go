package shard

import (
	"math"
	"strings"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func TestUnitsAreCounted(t *testing.T) {
	l, err := funnel.NewLimit(funnel.Burst, 9, 1, 60)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name                                 string
		quantities                           []int64
		allowed, limited, requested, granted uint64
	}{
		{"one by one", []int64{1, 2, 3}, 3, 0, 6, 6},
		{"some limited", []int64{8, 3, 2}, 2, 1, 13, 10},
		{"a probe requests nothing", []int64{0, 0}, 2, 0, 0, 0},
		{"nor does giving back", []int64{4, -2}, 2, 0, 4, 4},
		{"more than there can be", []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64}, 0, 3, 3 << 32, 0},
	} {
		want := store.Stats{Allowed: tt.allowed, Limited: tt.limited, Requested: tt.requested, Granted: tt.granted}
		batch, each, tx := New(), New(), New()
		var requests []store.Request
		for _, q := range tt.quantities {
			requests = append(requests, store.Request{Key: key(0, "k"), Rule: limiter.OfFunnel(l), Quantity: q})
			one(each, t0, key(0, "k"), l, q)
		}
		batch.Throttle(t0, requests)
		steps := tx.Begin(t0, []store.Key{key(0, "k")})
		for _, q := range tt.quantities {
			one(steps, t0, key(0, "k"), l, q)
		}
		steps.Commit()
		for how, s := range map[string]*Store{"as a batch": batch, "one by one": each, "in a transaction": tx} {
			var st store.Stats
			s.UpdateStats(&st)
			if got := (store.Stats{Allowed: st.Allowed, Limited: st.Limited, Requested: st.Requested, Granted: st.Granted}); got != want {
				t.Errorf("%s, %s: got %+v, want %+v", tt.name, how, got, want)
			}
		}
	}
}

func TestSizesAreCounted(t *testing.T) {
	s := New()
	var empty, full, swept store.Stats
	if s.UpdateStats(&empty); empty != (store.Stats{}) {
		t.Errorf("an empty store: %+v", empty)
	}
	fill(t, s, t0, 5000, "short:", 1)
	fill(t, s, t0, 1000, strings.Repeat("long:", 20), 1)
	s.UpdateStats(&full)
	n, directory := segments(s)
	want := 0
	for i := range s.shards {
		want += s.shards[i].inline.made*155 + s.shards[i].long.made*217
	}
	if full.Slots != want || full.Keys != 6000 {
		t.Errorf("%d slots and %d keys, want %d and 6000", full.Slots, full.Keys, want)
	}
	least := n*segmentBytes + directory*pointerBytes + arenaBytes(s)
	if full.Bytes < least || full.Bytes > least+least/4 {
		t.Errorf("%d bytes, want %d and a little more", full.Bytes, least)
	}
	steps := s.segments()
	sweepOnce(s, t0+2*sec)
	if s.UpdateStats(&swept); swept.Bytes != 0 || swept.Slots != 0 || swept.Expired != 6000 || swept.Swept == 0 || swept.Swept > uint64(steps) {
		t.Errorf("after a sweep of %d steps: %+v", steps, swept)
	}
	fill(t, s, t0, 1000, "k", 60)
	x := s.BeginAll(t0)
	x.Flush(t.Context(), 0)
	x.End()
	if st := statsOf(s); st.Bytes != 0 || st.Slots != 0 {
		t.Errorf("after an exclusive's Flush: %+v", st)
	}
}
