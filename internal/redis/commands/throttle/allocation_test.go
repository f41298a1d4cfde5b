package throttle_test

import (
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
)

// TestCallsAllocateLittle: only the store keeps memory after a call.
func TestCallsAllocateLittle(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates")
	}
	many := make([]want, 128)
	for i := range many {
		many[i] = want{string(rune('a'+i%16)) + string(rune('a'+i/16)), 1000, 1000, 1, 1}
	}
	for _, tt := range []struct {
		name string
		most float64
		in   string
	}{
		{"a commit", 1, resptest.Encode("CL.COMMIT", "k", "1", "1")},
		{"a place that is taken and freed", 4, resptest.Encode("CL.CONCURRENCY", "ACQUIRE", "c", "9", "1000", "me") + resptest.Encode("CL.CONCURRENCY", "RELEASE", "c", "me")},
		{"one limit", 7, resptest.Encode(together(many[:1]...)...)},
		{"two limits", 7, resptest.Encode(together(many[:2]...)...)},
		{"two limits that are limited", 7, resptest.Encode(together(want{"l", 1, 1, 1, 9}, many[0])...)},
		{"as many as there may be", 20, resptest.Encode(together(many...)...)},
	} {
		s := commandstest.New().Session()
		in, out := []byte(tt.in), make([]byte, 0, 1<<16)
		if n := testing.AllocsPerRun(100, func() { s.Feed(in, out[:0]) }); n > tt.most {
			t.Errorf("%s: %g allocations, want at most %g", tt.name, n, tt.most)
		}
	}
}
