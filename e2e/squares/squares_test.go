package squares

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"cellserver/internal/keep/remote"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/randtest"
	"cellserver/internal/test/redistest"
)

// runsEnv is the environment variable with the number of runs of each test, in place of those that make a
// package's tests short.
const runsEnv = "CELLSERVER_TEST_SQUARES"

func runsOf(t *testing.T, full, short int) int {
	t.Helper()
	racetest.SkipAlone(t)
	if text := os.Getenv(runsEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", runsEnv, err)
		}
		return n
	}
	if racetest.IsQuick() {
		return short
	}
	return full
}

// squares runs random calls of servers whose clock the test sets.
func squares(t *testing.T, runs int, column string, kinds []string, open func(t *testing.T, r *run, i int) store.Store) *table {
	t.Helper()
	seed := randtest.Seed(t, 1)
	b := &table{of: map[[2]string]int{}}
	for i := range runs {
		if !t.Run(strconv.Itoa(i), func(t *testing.T) {
			a := artist{rand.New(rand.NewPCG(seed, uint64(i))), quick}
			r := newRun(t, a, func(r *run, text string) system { return openHouse(t, text, open(t, r, i)) }, b, column)
			r.kinds = kinds
			for range 300 {
				r.step()
			}
			r.compareCounts()
			r.compareSpent()
		}) {
			break
		}
	}
	b.log(t)
	return b
}

// TestSquares: random calls in memory are decided as the model says, to the nanosecond.
func TestSquares(t *testing.T) {
	b := squares(t, runsOf(t, 50, 12), "memory", allKinds, func(*testing.T, *run, int) store.Store { return nil })
	if b.spent == 0 {
		t.Error("nothing is spent")
	}
}

// TestSquaresOnRedis: it is the same over a store on a Redis server, which decides at the callers' time.
func TestSquaresOnRedis(t *testing.T) {
	on := redistest.Server(t)
	pool, err := servers.Open(servers.Config{URL: "redis://" + on.Addr, Timeout: patience.Forever})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	squares(t, runsOf(t, 15, 3), "store", allKinds, func(t *testing.T, _ *run, i int) store.Store {
		t.Helper()
		s, err := remote.Open(remote.Config{
			Pool: pool, KeyPrefix: fmt.Sprintf("%d:", i), Timeout: patience.Forever, CallersTime: true,
			Now: func() int64 { return 0 },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	})
}

// TestSquaresWithoutStore: while the store is away, --local-share of each limit is decided in memory.
func TestSquaresWithoutStore(t *testing.T) {
	pool, err := servers.Open(servers.Config{URL: "redis://" + processtest.FreeAddr(t), Timeout: patience.Forever})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	squares(t, runsOf(t, 15, 3), "local share", []string{"check"}, func(t *testing.T, r *run, _ int) store.Store {
		t.Helper()
		r.share = one(r.Rand, []float64{1, 0.5, 0.25})
		s, err := remote.Open(remote.Config{
			Pool: pool, Timeout: patience.Forever, OnError: store.FallbackLocal, Local: shard.New(), LocalShare: r.share, CallersTime: true,
			Now: func() int64 {
				if r.system == nil {
					return commandstest.T0
				}
				return r.now()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	})
}

// TestSquaresEvicted: at the maximum of memory a key that is evicted begins empty, and others continue. Other
// keys that expire later come with each call.
func TestSquaresEvicted(t *testing.T) {
	evicted, kept := 0, 0
	squares(t, runsOf(t, 15, 3), "eviction", []string{"check", "check", "check", "explain", "page", "reserve", "reserve", "commit"}, func(t *testing.T, r *run, _ int) store.Store {
		t.Helper()
		s, others := shard.New(), 0
		s.SetMaxBytes(64<<10, store.VolatileTTL)
		r.before = func() {
			admin := r.admins()[0]
			n := 8
			if others == 0 {
				n = 2000
			}
			var flood [][]string
			for range n {
				others++
				key := "other:" + strconv.Itoa(others)
				flood = append(flood, [][]string{ // of each table
					{"CL.FIXEDWINDOW", key, "9", "1000000000"}, {"CL.SLIDINGWINDOW", key, "9", "1000000000"}, {"CL.THROTTLE", key, "9", "1", "1000000000"},
				}[others%3])
			}
			admin.say(flood...)
			for p := range r.keys {
				if r.untilNs(p, r.now()) == 0 {
					continue
				}
				if admin.one("EXISTS", p.name+":"+p.key).Number == 1 {
					kept++
					continue
				}
				r.note("%v is evicted", p)
				r.loses(p)
				evicted++
			}
		}
		return s
	})
	if t.Logf("%d keys were evicted, %d were there", evicted, kept); evicted == 0 || kept == 0 {
		t.Error("nothing is tried")
	}
}
