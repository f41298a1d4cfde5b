package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/randtest"
	"cellserver/internal/test/resptest"
)

// atMostCalls are calls for at most some of eight units, in front of the quantity and behind it.
var atMostCalls = map[string][2]string{
	"a funnel": {"CL.THROTTLE k 7 3 2 ", ""}, "a funnel in milliseconds": {"CL.PTHROTTLE k 7 3 2000 ", ""}, "a token bucket": {"CL.TOKENBUCKET k 8 3 2 ", ""},
	"a fixed window": {"CL.FIXEDWINDOW k 8 2 ", ""}, "an exact window": {"CL.SLIDINGWINDOW k 8 2 ", ""}, "an approximate window": {"CL.SLIDINGWINDOW k 8 2 ", " APPROX"},
	"a quota": {"CL.QUOTA k 8 MINUTE ", ""}, "a named limit": {"CL.CHECK three k ", ""},
}

// TestAtMostIsTheMost: beside it another server, which is asked for all at once, for each number that is less
// until it gives some, gives as many. Times step over what ends.
func TestAtMostIsTheMost(t *testing.T) {
	t.Parallel()
	seed := randtest.Seed(t, 49)
	for name, call := range atMostCalls {
		r := rand.New(rand.NewPCG(seed, uint64(len(name))))
		most, plain := commandstest.New(), commandstest.New()
		a, b := most.Session(), plain.Session()
		for _, s := range []*commandstest.Client{a, b} {
			commandstest.Say(t, s, "CL.LIMIT SET three FUNNEL 7 3 2 FIXEDWINDOW 9 3 SLIDINGWINDOW 8 2\r\n")
		}
		for range 300 {
			if r.IntN(2) == 0 {
				ns := []int64{1, commandstest.Sec, 2*commandstest.Sec - 1, r.Int64N(commandstest.Sec), r.Int64N(commandstest.Sec / 10)}[r.IntN(5)]
				most.Clock.Advance(ns)
				plain.Clock.Advance(ns)
			}
			asked := 1 + r.IntN(10)
			got := commandstest.Say(t, a, fmt.Sprint(call[0], asked, call[1], " ATMOST\r\n"))
			want, taken := "", 0
			for units := asked; units > 0; units-- {
				want = commandstest.Say(t, b, fmt.Sprint(call[0], units, call[1], "\r\n"))
				if strings.HasPrefix(want, "*5\r\n:0\r\n") {
					taken = units
					break
				}
			}
			if want = strings.Replace(want, "*5", "*6", 1) + fmt.Sprintf(":%d\r\n", taken); got != want {
				t.Fatalf("%s: at most %d: got %q, want %q", name, asked, got, want)
			}
		}
	}
}

// TestAtMostCounts what was taken, and a denial of one unit.
func TestAtMostCounts(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	commandstest.Say(t, s, strings.Repeat("CL.THROTTLE k 4 1 60 3 ATMOST\r\n", 4)+"CL.LIMIT SET l 4 1 60\r\n"+strings.Repeat("CL.CHECK l k 3 ATMOST\r\n", 3))
	st := r.Stats()
	if got, want := fmt.Sprint(st.Allowed, st.Limited, st.Requested, st.Granted), "4 3 13 10"; got != want {
		t.Errorf("allowed, limited, requested and granted are %s, want %s", got, want)
	}
	got := commandstest.Say(t, s, "INFO limits\r\n")
	for _, want := range []string{"checks_allowed:2", "checks_limited:1", "checks_near:1"} {
		if !strings.Contains(got, want+"\r\n") {
			t.Errorf("INFO lacks %s: %q", want, got)
		}
	}
}

// TestAtMostWithoutRoom: where nothing may be changed, a call that would take some is refused, and one that
// is limited answers.
func TestAtMostWithoutRoom(t *testing.T) {
	for _, tt := range []struct {
		name, code, full string
		refuse           func(s *shard.Store)
	}{
		{"full", "-OOM ", resptest.Ints(0, 5, 0, -1, 5, 2), func(s *shard.Store) { s.SetMaxBytes(1, store.NoEviction) }},
		{"frozen", "-MISCONF ", "-MISCONF ", func(s *shard.Store) { s.Track(func() {}); s.Freeze(0, store.ErrFrozen) }},
	} {
		s := shard.New()
		r := commandstest.New(func(c *commands.Config) { c.Store = s })
		c := r.Session()
		commandstest.Say(t, c, "CL.THROTTLE some 4 1 1 3\r\nCL.THROTTLE none 4 1 1 5\r\nCL.LIMIT SET l 4 1 1\r\n")
		tt.refuse(s)
		for i := range 20 { // one has no space, wherever it is
			commandstest.Say(t, c, fmt.Sprintf("CL.THROTTLE new%d 4 1 60 1\r\n", i))
		}
		refused := 0
		for i := range 20 {
			if got := commandstest.Say(t, c, fmt.Sprintf("CL.THROTTLE other%d 4 1 60 9 ATMOST\r\nCL.CHECK l other%d 9 ATMOST\r\n", i, i)); strings.Contains(got, tt.code) {
				refused++
			}
		}
		if refused == 0 {
			t.Errorf("%s: no new key was refused", tt.name)
		}
		commandstest.ExpectLike(t, c, "CL.THROTTLE some 4 1 1 9 ATMOST\r\n", tt.full+"…")
		commandstest.Expect(t, c, "CL.THROTTLE none 4 1 1 9 ATMOST\r\n", resptest.Ints(1, 5, 0, 1, 5, 0))
	}
}

// TestAtMostMakesFewKeys: also a call for more than fits creates its key.
func TestAtMostMakesFewKeys(t *testing.T) {
	const refused = "-ERR more than 1 new keys per second from this address, the limit of --max-new-keys-per-second; existing keys still answer\r\n"
	r := commandstest.New()
	r.Engine.NewKeys.Limit(1)
	s := r.Session()
	commandstest.Expect(t, s, "CL.THROTTLE a 4 1 1 99 ATMOST\r\nCL.THROTTLE b 4 1 1 99 ATMOST\r\nEXISTS b\r\nCL.THROTTLE a 4 1 1 99 ATMOST\r\n",
		resptest.Ints(0, 5, 0, -1, 5, 5)+refused+":0\r\n"+resptest.Ints(1, 5, 0, 1, 5, 0))
}

// TestAtMostAllocatesNothing on an existing key.
func TestAtMostAllocatesNothing(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates")
	}
	for name, call := range atMostCalls {
		r := commandstest.New()
		s := r.Session()
		commandstest.Say(t, s, "CL.LIMIT SET three FUNNEL 7 3 2 FIXEDWINDOW 9 3 SLIDINGWINDOW 8 2\r\n")
		in, out := []byte(resptest.Encode(strings.Fields(call[0]+"3"+call[1]+" ATMOST")...)), make([]byte, 0, 1<<12)
		if n := testing.AllocsPerRun(200, func() {
			s.Feed(in, out[:0])
			r.Clock.Advance(commandstest.Sec / 10)
		}); n > 0 {
			t.Errorf("%s: %g allocations", name, n)
		}
	}
}
