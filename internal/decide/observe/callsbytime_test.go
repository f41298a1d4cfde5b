package observe

import (
	"fmt"
	"testing"
)

func TestCallsByTime(t *testing.T) {
	var h CallsByTime
	for _, ns := range []int64{-5, 0, 1, 999, 1000, 1001, 2000, 2001, 4000, 1e15} {
		h.add(ns, 1)
	}
	calls, buckets := h.Cumulative()
	if got, want := fmt.Sprint(calls, buckets), "10 [{1 5} {2 7} {4 9} {8388608 10}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
