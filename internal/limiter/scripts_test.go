package limiter

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/window"
	"cellserver/internal/test/redistest"
)

const us = int64(1_000)

type asked struct{ nowNs, quantity int64 }

// TestScriptsOfArticles compares decisions with the scripts that articles teach, on a real redis-server and
// random traces. The scripts take the time as an argument. Exceptions:
//   - EXPIRE takes no time, so scripts with a fixed window keep its end in a second key.
//   - Scripts calculate in binary fractions: the funnels' times and rates are exact in them (see
//     TestFractionsOfScripts).
//   - A funnel that frees whole units only is late by less than a unit: its times are multiples of a unit's.
//   - A sorted set of times counts simultaneous requests once: its trace has none.
//   - A script that adds first counts denied looks, too: its traces have no looks.
func TestScriptsOfArticles(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t)
	for _, tt := range []struct {
		script       string
		kind         Kind
		flags        Flags
		gridNs       int64 // times are multiples of it
		least, most  int64 // of the quantity
		wholeUnits   bool  // times are multiples of the time of a unit
		neverAtATime bool
	}{
		{script: "fixed_check", kind: FixedWindow, gridNs: us, most: 4},
		{script: "fixed_add", kind: FixedWindow, flags: CountDenied, gridNs: us, least: 1, most: 4},
		{script: "sliding_check", kind: SlidingWindow, gridNs: us, most: 4},
		{script: "sliding_add", kind: SlidingWindow, flags: CountDenied, gridNs: us, least: 1, most: 4},
		{script: "sliding_time", kind: SlidingWindow, gridNs: us, least: 1, most: 1, neverAtATime: true},
		{script: "funnel", kind: Funnel, gridNs: sec / 512, most: 4},
		{script: "funnel_whole_units", kind: Funnel, wholeUnits: true, most: 4},
	} {
		for seed := range uint64(8) {
			rng := rand.New(rand.NewPCG(seed, 10))
			capacity, periodSec := 1+rng.Int64N(20), 1+rng.Int64N(5)
			unitNs := sec >> rng.IntN(5) << rng.IntN(3)
			rule := Rule{Kind: tt.kind, Flags: tt.flags, Funnel: mustFunnel(t, capacity, sec, unitNs)}
			lastsNs := periodSec * sec
			if tt.kind == Funnel {
				lastsNs = unitNs
			} else {
				w, _ := window.NewExactLimit(funnel.Seconds, capacity, periodSec)
				rule.Packed = w.Packed()
			}
			if tt.wholeUnits {
				tt.gridNs = unitNs
			}
			var trace []asked
			nowNs, fastNs := t0/(4*sec)*(4*sec), max(tt.gridNs, tt.most*lastsNs/capacity)
			for range 500 {
				passesNs := rng.Int64N(fastNs)
				if rng.IntN(30) == 0 {
					passesNs = rng.Int64N(3 * lastsNs)
				}
				nowNs += passesNs / tt.gridNs * tt.gridNs
				if tt.neverAtATime || rng.IntN(4) == 0 {
					nowNs += tt.gridNs
				}
				trace = append(trace, asked{nowNs, tt.least + rng.Int64N(tt.most-tt.least+1)})
			}
			var s State
			answers := evaluate(t, client, tt.script, strconv.FormatInt(capacity, 10), strconv.FormatInt(lastsNs/us, 10), trace)
			allowed := 0
			for i, a := range trace {
				r := mustDecide(t, &rule, &s, a.nowNs, a.quantity)
				if got := !r.Limited; got != answers[i] {
					t.Fatalf("%s, seed %d, request %d of %d units at %d: allowed is %v, by the script %v", tt.script, seed, i, a.quantity, a.nowNs-t0, got, answers[i])
				} else if got {
					allowed++
				}
			}
			if allowed < 20 || allowed > 480 {
				t.Errorf("%s, seed %d: %d of 500 allowed, want 20 to 480", tt.script, seed, allowed)
			}
		}
	}
}

// TestFractionsOfScripts: at any time and rate, a script differs only if it misses a whole unit by at most a
// ten-thousandth.
func TestFractionsOfScripts(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t)
	missed := 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 12))
		capacity, unitUs := 1+rng.Int64N(20), 100_000+rng.Int64N(900_000)
		l, err := funnel.NewLimitIn(funnel.Milliseconds, funnel.Capacity, capacity, 1000, unitUs)
		if err != nil {
			t.Fatal(err)
		}
		var trace []asked
		nowNs := t0
		for range 500 {
			if rng.IntN(2) == 0 {
				nowNs += rng.Int64N(3*unitUs) * us
			} else { // a whole unit later, which the script may miss
				nowNs += unitUs * us
			}
			trace = append(trace, asked{nowNs, 1 + rng.Int64N(3)})
		}
		tatNs := int64(0)
		for i, answer := range evaluate(t, client, "funnel", strconv.FormatInt(capacity, 10), strconv.FormatInt(unitUs, 10), trace) {
			a := trace[i]
			debtNs := funnel.Since(a.nowNs, tatNs)
			newTATNs, r := l.Throttle(tatNs, a.nowNs, a.quantity)
			if tatNs = newTATNs; r.Limited == !answer {
				continue
			}
			overNs := int64(debtNs+l.DebitNs(a.quantity)) - int64(l.ToleranceNs())
			if overNs = max(overNs, -overNs); overNs > int64(l.IntervalNs())/10_000 {
				t.Fatalf("seed %d, request %d: the script allowed is %v, and the funnel misses by %d of %d ns", seed, i, answer, overNs, l.IntervalNs())
			}
			missed++
			break // they differ by a request from here on
		}
	}
	t.Logf("a script missed a whole unit in %d of 20 traces", missed)
}

func loadScript(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "scripts", name+".lua"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// evaluate runs a script for each request of a trace, on new keys, and returns which it allowed.
func evaluate(t *testing.T, client *redis.Client, script, most, lastsUs string, trace []asked) []bool {
	t.Helper()
	sha, err := client.ScriptLoad(t.Context(), loadScript(t, script)).Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	pipe := client.Pipeline()
	for _, a := range trace {
		pipe.EvalSha(t.Context(), sha, []string{"a", "b"}, most, lastsUs, a.quantity, a.nowNs/us)
	}
	replies, err := pipe.Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	allowed := make([]bool, len(replies))
	for i, reply := range replies {
		n, err := reply.(*redis.Cmd).Int()
		if err != nil {
			t.Fatal(err)
		}
		allowed[i] = n == 1
	}
	return allowed
}

// TestBucketScripts compares with buckets in lists and in counters.
func TestBucketScripts(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t)
	for _, script := range []string{"bucket_list", "bucket_counter"} {
		rng := rand.New(rand.NewPCG(1, 11))
		code := loadScript(t, script)
		var s State
		for step := range 1000 {
			capacity, n, what, got := int64(12), rng.Int64N(5), "take", int64(0)
			switch rng.IntN(10) {
			case 0:
				what = "reset"
				o := Operation{Verb: Fill, Max: capacity}
				mustDo(t, &s, t0, &o)
				got = o.Count
			case 1, 2, 3:
				what = "add"
				o := Operation{Verb: Add, Max: capacity, Quantity: n}
				mustDo(t, &s, t0, &o)
				got = o.Count
			default:
				if r := mustDecide(t, &Rule{Kind: Bucket, Packed: Packed{capacity}}, &s, t0, n); !r.Limited {
					got = 1
				}
			}
			want, err := client.Eval(t.Context(), code, []string{script}, capacity, what, n).Int64()
			if err != nil || got != want {
				t.Fatalf("%s, step %d: %s %d: got %d, the script %d, %v", script, step, what, n, got, want, err)
			}
		}
	}
}
