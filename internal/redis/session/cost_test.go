package session_test

import (
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// throttles returns a pipeline of n calls on different keys.
func throttles(n int, args ...string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(resptest.Encode(append([]string{"CL.THROTTLE", fmt.Sprint("user", i)}, args...)...))
	}
	return b.String()
}

// TestThrottleDoesNotAllocate on an existing key.
func TestThrottleDoesNotAllocate(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, tt := range []struct {
		name string
		n    int
		args []string
	}{
		{"alone", 1, []string{"1000000", "1000000", "1"}},
		{"128 in a pipeline", 128, []string{"1000000", "1000000", "1"}},
		{"more than a batch", 300, []string{"1000000", "1000000", "1"}},
		{"limited", 128, []string{"0", "1", "60"}},
		{"with a quantity", 128, []string{"1000000", "1000000", "1", "2"}},
		{"probes", 128, []string{"15", "30", "60", "0"}},
	} {
		s := commandstest.New().Session()
		in, out := []byte(throttles(tt.n, tt.args...)), make([]byte, 0, 64<<10)
		allocs := testing.AllocsPerRun(100, func() {
			n, replies, status := s.Feed(in, out)
			if n != len(in) || status != peer.NeedInput || replies[0] != '*' {
				t.Fatalf("%s: consumed %d of %d bytes, status %d", tt.name, n, len(in), status)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", tt.name, allocs)
		}
	}
}

// TestCountersDoNotAllocate on an existing key, from bytes in to bytes out.
func TestCountersDoNotAllocate(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, call := range []string{
		"INCR k", "INCRBY k 5", "INCREX k", "INCREX k UBOUND 1000000 EX 60 ENX", "INCREX k BYINT -1 LBOUND -1000000 PX 60000",
		"INCREX k UBOUND 1 EX 60", "INCREX k BYINT 5 UBOUND 1 SATURATE EXAT 1900000000", "INCREX k PERSIST", "INCREX k XX PXAT 1900000000000", "INCREX k NX",
	} {
		for _, n := range []int{1, 128, 300} {
			s := commandstest.New().Session()
			in, out := []byte(strings.Repeat(resptest.Encode(strings.Fields(call)...), n)), make([]byte, 0, 64<<10)
			allocs := testing.AllocsPerRun(100, func() {
				if consumed, replies, status := s.Feed(in, out); consumed != len(in) || status != peer.NeedInput || replies[0] == '-' {
					t.Fatalf("%s: consumed %d of %d bytes, status %d, replied %.80q", call, consumed, len(in), status, replies)
				}
			})
			if allocs != 0 {
				t.Errorf("%d of %s: %v allocations", n, call, allocs)
			}
		}
	}
}

// TestRulesAndScriptsAllocateLittle: ACL rules and a known native script cost no allocation.
func TestRulesAndScriptsAllocateLittle(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates")
	}
	r := commandstest.NewUserHarness(t, openDefault, "user app on >pw ~user* ~a* -@all +cl.throttle +auth")
	for _, tt := range []struct {
		name string
		s    *commandstest.Client
		in   string
	}{
		{"a restricted user", r.Login("app"), throttles(128, "1000000", "1000000", "1")},
		{"EVAL", r.Session(), resptest.Encode("EVAL", native, "1", "user0", "1000000", "1000000", "1")},
		{"EVAL of one number", r.Session(), resptest.Encode("EVAL", native+"[1]", "1", "user0", "1000000", "1000000", "1")},
		{"EVALSHA", r.Session(), resptest.Encode("EVALSHA", commandstest.SHAOf(native), "1", "user0", "1000000", "1000000", "1")},
	} {
		commandstest.Say(t, tt.s, tt.in) // compiles it
		in, out := []byte(tt.in), make([]byte, 0, 64<<10)
		allocs := testing.AllocsPerRun(100, func() {
			if n, replies, status := tt.s.Feed(in, out); n != len(in) || status != peer.NeedInput || replies[0] == '-' {
				t.Fatalf("%s: consumed %d of %d bytes, status %d, replied %.80q", tt.name, n, len(in), status, replies)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", tt.name, allocs)
		}
	}
}

func BenchmarkThrottle(b *testing.B) {
	for _, n := range []int{1, 128} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := commandstest.New().Session()
			in, out := []byte(throttles(n, "1000000", "1000000", "1")), make([]byte, 0, 64<<10)
			b.ReportAllocs()
			for b.Loop() {
				s.Feed(in, out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/command")
		})
	}
}
