package shard

import (
	"reflect"
	"strings"
	"testing"

	"cellserver/internal/store"
)

func TestSizesAreCounted(t *testing.T) {
	s := New()
	var empty, full, swept store.Stats
	if s.UpdateStats(&empty); !reflect.DeepEqual(empty, store.Stats{}) {
		t.Errorf("an empty store: %+v", empty)
	}
	fill(t, s, t0, 5000, "short:", 1)
	fill(t, s, t0, 1000, strings.Repeat("long:", 20), 1)
	s.UpdateStats(&full)
	n, directory := segments(s)
	want := 0
	for i := range s.shards {
		want += s.shards[i].inline.made*155 + s.shards[i].packed.made*93 + s.shards[i].long.made*217
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
