package reserve

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestEndOfDated(t *testing.T) {
	for _, tt := range []struct{ nowNs, ttlNs, want int64 }{
		{t0, sec, t0 + sec},
		{t0, 0, t0},
		{t0, -sec, t0},
		{t0 + 1, sec, t0 + sec + nsPerUs},
		{t0 + 999, sec, t0 + sec + nsPerUs},
		{t0 + 999, sec + 1, t0 + sec + nsPerUs},
		{t0 + 1000, sec, t0 + sec + nsPerUs},
		{t0, 1, t0 + nsPerUs},
		{0, 0, 0},
		{t0, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64, 1, math.MaxInt64},
	} {
		if got := EndNs(tt.nowNs, tt.ttlNs); got != tt.want {
			t.Errorf("%d ns after %d: got %d, want %d", tt.ttlNs, tt.nowNs, got, tt.want)
		}
	}
}

func TestDatedIDs(t *testing.T) {
	last := int64(mostEnds * nsPerUs)
	if at := time.Unix(0, last).UTC(); at.Year() != 2112 {
		t.Errorf("the last end is %s", at)
	}
	for _, tt := range []struct {
		endNs  int64
		number uint64
		want   uint64
		dueNs  int64
	}{
		{t0, 0, 1_700_000_000_000_000 << 12, t0},
		{t0, 4095, 1_700_000_000_000_000<<12 | 4095, t0},
		{t0, 4096 + 7, 1_700_000_000_000_000<<12 | 7, t0},
		{t0 + 1000, 1, 1_700_000_000_000_001<<12 | 1, t0 + 1000},
		{math.MinInt64, 3, 1<<12 | 3, 1000},
		{0, 3, 1<<12 | 3, 1000},
		{last - 1000, 5, (mostEnds-1)<<12 | 5, last - 1000},
		{last, 5, mostEnds<<12 | 5, last},
		{last + 1000, 5, mostEnds<<12 | 5, last},
		{math.MaxInt64, math.MaxUint64, math.MaxUint64, last},
	} {
		id := DatedID(tt.endNs, tt.number)
		if id != tt.want || !IsDated(id) {
			t.Errorf("%d at %d: got %d, want %d", tt.number, tt.endNs, id, tt.want)
		}
		for nowNs, want := range map[int64]bool{math.MinInt64: false, tt.dueNs - 1: false, tt.dueNs: true, math.MaxInt64: true} {
			if got := Due(id, nowNs); got != want {
				t.Errorf("%d at %d: due is %t at %d", tt.number, tt.endNs, got, nowNs)
			}
		}
	}
	for _, id := range []uint64{0, 1, MaxUndated} {
		if IsDated(id) || Due(id, math.MaxInt64) {
			t.Errorf("%d is dated", id)
		}
	}
}

// TestDatedIDsKeepOrder: an ID of a later microsecond is greater, whatever the numbers.
func TestDatedIDsKeepOrder(t *testing.T) {
	var ids []uint64
	for _, endNs := range []int64{1000, 2000, sec, t0, t0 + 1000, t0 + sec, mostEnds*nsPerUs - 1000, mostEnds * nsPerUs} {
		ids = append(ids, DatedID(endNs, 0), DatedID(endNs, 1), DatedID(endNs, MaxUndated))
	}
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != 24 {
		t.Errorf("got %d", ids)
	}
}

// TestFreeID: as many reservations as a key may have can end at once.
func TestFreeID(t *testing.T) {
	for _, endNs := range []int64{t0 + 1000, math.MaxInt64} {
		l, seen := New(nil, t0), map[uint64]bool{}
		for range MaxOpen {
			id := l.FreeID(DatedID(endNs, 4000))
			if seen[id] || id>>idBits != DatedID(endNs, 0)>>idBits {
				t.Fatalf("%d is taken, or of another end", id)
			}
			seen[id] = true
			l.Reserve(t0, l.tatNs+1, id, endNs-t0, 1, 1)
		}
	}
}
