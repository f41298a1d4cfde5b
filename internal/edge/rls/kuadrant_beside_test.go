package rls

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/randtest"
)

// TestKuadrantBesideCommands: commands about a key find what is held on it.
func TestKuadrantBesideCommands(t *testing.T) {
	t.Parallel()
	const key = "rls:day:1:d3:day1:1"
	for _, tt := range []struct{ command, want, left string }{
		{"CL.QUOTA " + key + " 1000 day 50 EPOCH", "*5\r\n:0\r\n:1000\r\n:650\r\n", "true 940"},
		{"CL.QUOTA " + key + " 1000 day -100 EPOCH", "*5\r\n:0\r\n:1000\r\n:800\r\n", "true 1000"},
		{"CL.QUOTA " + key + " 1000 day 900 EPOCH DEBIT", "*5\r\n:1\r\n:1000\r\n:0\r\n", "true 90"},
		{"CL.RESET " + key, ":1\r\n", "false 990"},
		{"DEL " + key, ":1\r\n", "false 990"},
		{"FLUSHALL", "+OK\r\n", "false 990"},
		{"RENAME " + key + " other", "+OK\r\n", "false 990"},
		{"CL.CHECK rls minute:x 0", "-ERR", "true 990"},
		{"GET " + key, "-WRONGTYPE", "true 990"},
		{"CL.FIXEDWINDOW " + key + " 10 60", "-WRONGTYPE", "true 990"},
		{"EXPIRE " + key + " 100", "", ""},
		{"OBJECT ENCODING " + key, "$", "true 990"},
		{"DUMP " + key, "$", "true 990"},
	} {
		r := newReserver(t, tokens)
		r.do(t, "reserve a 300 60s d day=1")
		if got := commandstest.Say(t, r.Session(), tt.command+"\r\n"); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.command, got, tt.want)
		}
		if tt.left == "" {
			continue
		}
		got := r.do(t, "commit a 10 d day=1")
		if got += " " + strings.TrimPrefix(r.do(t, "should d day=1#0"), "OK: OK "); !strings.HasPrefix(got, tt.left+"/") {
			t.Errorf("%s: got %s, want %s", tt.command, got, tt.left)
		}
	}
}

// TestKuadrantBesideOthers: while gateways reserve and commit, others charge the same key by Envoy, by
// commands and in EXEC, and the rules are read again. At the end the count is the sum of what all of them
// used.
func TestKuadrantBesideOthers(t *testing.T) {
	t.Parallel()
	const yaml = "domain: d\ndescriptors:\n- {key: day, rate_limit: {unit: day, requests_per_unit: 4000000000}}\n" +
		"- {key: %s, rate_limit: {unit: day, requests_per_unit: 4000000000, algorithm: fixed_window}}\n"
	r := newReserver(t, fmt.Sprintf(yaml, "fixed"))
	seed := randtest.Seed(t, rand.Uint64())
	var used, unreleased atomic.Int64
	var wg sync.WaitGroup
	each := func(n int, do func(rng *rand.Rand) int64) {
		for i := range n {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				for range 100 {
					used.Add(do(rng))
				}
			})
		}
	}
	of := requestOf(t, "d day=1 fixed=1")
	each(4, func(rng *rand.Rand) int64 {
		out, err := r.reserve(of, uint64(rng.IntN(50)), time.Minute)
		if err != nil {
			t.Error(err)
			return 0
		}
		actual := rng.Int64N(60)
		released, err := r.commit(of, out.ReservationId, uint64(actual))
		if err != nil {
			t.Error(err)
		} else if !released {
			unreleased.Add(1) // of 0 units
		}
		return actual
	})
	each(1, func(*rand.Rand) int64 { r.do(t, "should d day=1 fixed=1 +2"); return 2 })
	each(1, func(*rand.Rand) int64 { r.do(t, "report d day=1 fixed=1 +3"); return 3 })
	each(1, func(*rand.Rand) int64 { r.configure(t, fmt.Sprintf(yaml, "fixed")); return 0 })
	each(2, func(*rand.Rand) int64 {
		c := r.Session()
		got := commandstest.Say(t, c, "MULTI\r\nCL.QUOTA rls:day:1:d3:day1:1 4000000000 day 5 EPOCH\r\n"+
			"CL.QUOTA rls:day:1:d3:day1:1 4000000000 day -1 EPOCH\r\nCL.FIXEDWINDOW rls:fixed_window-86400:1:d5:fixed1:1 4000000000 86400 4\r\nEXEC\r\n")
		if strings.Contains(got, "-") && !strings.Contains(got, ":-1") {
			t.Errorf("EXEC: %q", got)
		}
		return 4
	})
	wg.Wait()
	left := 4_000_000_000 - used.Load()
	if got, want := r.do(t, "should d day=1#0 fixed=1#0"), fmt.Sprintf("OK: OK %d/4000000000 DAY 6400, OK %d/4000000000 DAY 86400", left, left); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if unreleased.Load() > 40 {
		t.Errorf("%d were not released", unreleased.Load())
	}
}

// TestTokensAtTheEnd: what docs/ENVOY.md says of deploy/envoy/tokens.yaml: 0 hits before a call, and all of
// them at the end of its stream.
func TestTokensAtTheEnd(t *testing.T) {
	t.Parallel()
	r := newReserver(t, "domain: site\ndescriptors:\n"+
		"- {key: tokens, rate_limit: {unit: day, requests_per_unit: 1000}}\n"+
		"- {key: bucket, rate_limit: {unit: day, requests_per_unit: 1000, algorithm: token_bucket}}\n")
	for _, s := range []step{
		{"should site tokens=u#0 bucket=u#0", "OK: OK 1000/1000 DAY 6400, OK 1000/1000 DAY 0"},
		{"should site tokens=u#700 bucket=u#700", "OK: OK 300/1000 DAY 6400, OK 300/1000 DAY 60480"},
		{"should site tokens=u#0 bucket=u#0", "OK: OK 300/1000 DAY 6400, OK 300/1000 DAY 60480"},
		{"should site tokens=u#700 bucket=u#700", "OVER_LIMIT: OVER_LIMIT 0/1000 DAY 6400, OVER_LIMIT 0/1000 DAY 34560"},
		{"should site tokens=u#0 bucket=u#0", "OVER_LIMIT: OVER_LIMIT 0/1000 DAY 6400, OK 300/1000 DAY 60480"},
		{"should site tokens=other#0", "OK: OK 1000/1000 DAY 6400"},
	} {
		if got := r.do(t, s.request); got != s.want {
			t.Errorf("%s: got %q, want %q", s.request, got, s.want)
		}
	}
}
