package store

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"cellserver/internal/limiter"
)

// TestHoldCounts: a limit is the key's name before its first colon, and counts add up over stores.
func TestHoldCounts(t *testing.T) {
	var a, b HoldCounts
	long := strings.Repeat("x", mostHoldNameBytes)
	a.Ended([]byte("team:a"), &limiter.Ended{Returned: 1, Charged: 2})
	a.Ended([]byte("team:b:c"), &limiter.Ended{Returned: 10, Dropped: 3})
	a.Ended([]byte("none:a"), &limiter.Ended{})
	a.Evicted([]byte("team"), 4)
	a.Evicted([]byte("none"), 0)
	a.Evicted([]byte(long+":a"), 5)
	a.Evicted([]byte(long+"y:a"), 6)
	b.Evicted([]byte("team:z"), 100)
	var st Stats
	a.AddTo(&st)
	b.AddTo(&st)
	want := map[string]HoldStats{
		"team": {Returned: 11, Charged: 2, Dropped: 3, Evicted: 104},
		long:   {Evicted: 5},
		"":     {Evicted: 6},
	}
	if !reflect.DeepEqual(st.Holds, want) {
		t.Errorf("got %+v, want %+v", st.Holds, want)
	}
	st = Stats{}
	if (&HoldCounts{}).AddTo(&st); st.Holds != nil {
		t.Errorf("got %v of nothing", st.Holds)
	}
}

// TestHoldCountsAreBounded: names beyond the most count together, and none is forgotten.
func TestHoldCountsAreBounded(t *testing.T) {
	var c HoldCounts
	for range 2 {
		for i := range mostHoldNames + 100 {
			c.Evicted(fmt.Appendf(nil, "limit%d:a", i), 1)
		}
	}
	var st Stats
	c.AddTo(&st)
	if n := len(st.Holds); n > mostHoldNames+1 || st.Holds[""].Evicted != 200 || st.Holds["limit0"].Evicted != 2 {
		t.Errorf("%d names, %+v without one", n, st.Holds[""])
	}
	if n := testing.AllocsPerRun(100, func() { c.Evicted([]byte("limit7:a"), 1) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
