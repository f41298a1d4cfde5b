package memory

import (
	"testing"
	"time"
)

// TestShortage: a minute after the last evicted or refused key the shortage ends.
func TestShortage(t *testing.T) {
	t.Parallel()
	var s Shortage
	for _, step := range []struct {
		atSec            int64
		evicted, refused uint64 // so far
		more             [2]uint64
		recent           [2]bool
	}{
		{1000, 0, 0, [2]uint64{}, [2]bool{}},
		{1001, 5, 0, [2]uint64{5, 0}, [2]bool{true, false}},
		{1030, 5, 2, [2]uint64{0, 2}, [2]bool{true, true}},
		{1060, 5, 2, [2]uint64{}, [2]bool{true, true}},
		{1061, 5, 2, [2]uint64{}, [2]bool{false, true}},
		{1089, 6, 2, [2]uint64{1, 0}, [2]bool{true, true}},
		{1090, 6, 2, [2]uint64{}, [2]bool{true, false}},
		{1149, 6, 2, [2]uint64{}, [2]bool{}},
	} {
		nowNs := step.atSec * int64(time.Second)
		evicted, refused := s.Note(nowNs, step.evicted, step.refused)
		recentlyEvicted, recentlyRefused := s.Recent(nowNs)
		if got := [2]uint64{evicted, refused}; got != step.more {
			t.Errorf("at %d s: %d more", step.atSec, got)
		}
		if got := [2]bool{recentlyEvicted, recentlyRefused}; got != step.recent {
			t.Errorf("at %d s: recent %t", step.atSec, got)
		}
	}
}
