package remote

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// randomLimit returns one of a few limits, some enormous.
func randomLimit(t *testing.T, rng *rand.Rand) funnel.Limit {
	switch rng.IntN(8) {
	case 0:
		return mustLimit(t, 1<<rng.IntN(20), 1, 1<<rng.IntN(12)) // up to years
	case 1:
		return mustLimit(t, rng.Int64N(3), 1, 1_000_000_000)
	}
	return mustLimit(t, rng.Int64N(40), 1+rng.Int64N(3), 1+rng.Int64N(60))
}

func randomQuantity(rng *rand.Rand) int64 {
	switch rng.IntN(12) {
	case 0:
		return 0
	case 1:
		return -rng.Int64N(20)
	case 2:
		return math.MinInt64
	case 3:
		return 30 + rng.Int64N(20)
	case 4:
		return math.MaxInt64
	}
	return 1 + rng.Int64N(3)
}

// TestAgreesWithModel compares random batches, with many equal neighbors, with single requests.
func TestAgreesWithModel(t *testing.T) {
	s, p := onServer(t, Config{CallersTime: true, KeyPrefix: "p:"})
	rng := rand.New(rand.NewPCG(3, 15))
	states := map[string]*limiter.State{}
	nowNs := t0
	for round := range 1500 {
		nowNs += rng.Int64N(3 * sec)
		var batch []store.Request
		for len(batch) < 1+round%300 {
			q := ask(fmt.Sprint("k", rng.IntN(8)), randomLimit(t, rng), randomQuantity(rng))
			if q.Quantity > 0 && rng.IntN(4) == 0 {
				q.Rule.Flags = limiter.AtMost
			}
			for range 1 + rng.IntN(2)*rng.IntN(50) {
				batch = append(batch, q)
			}
		}
		asked := slices.Clone(batch)
		for i, q := range decide(s, nowNs, batch...) {
			state := states[string(q.Key.Name)]
			if state == nil {
				state = &limiter.State{}
				states[string(q.Key.Name)] = state
			}
			units := q.Rule.Units(state, nowNs, asked[i].Quantity)
			want, _, err := q.Rule.Decide(state, nowNs, units)
			if q.Result != want || q.Quantity != units || q.Err != nil || err != nil {
				t.Fatalf("round %d, request %d of %d: %+v: want %+v", round, i, len(batch), q, want)
			}
		}
	}
	for name, state := range states {
		want := ""
		if state.ExpiresNs > nowNs {
			want = fmt.Sprint(state.ExpiresNs)
		}
		if got := p.Client().Get(t.Context(), "p:"+name).Val(); got != want && (want != "" || len(got) != len("1700000000000000000") || got > fmt.Sprint(nowNs)) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	s.Close() // waits for the batch to be counted
	if st := s.Stats(); st.Joined == 0 || st.Waiting != 0 || st.WaitingBytes != 0 {
		t.Errorf("got %+v", st)
	}
}

// TestClosedForm: a run of equal requests gives the same TAT as single ones.
func TestClosedForm(t *testing.T) {
	s, p := onServer(t, Config{CallersTime: true})
	rng := rand.New(rand.NewPCG(5, 15))
	for round := range 300 {
		l, quantity, n := randomLimit(t, rng), 1+rng.Int64N(2), 1+rng.IntN(600)
		nowNs, tatNs := t0+rng.Int64N(sec), t0+rng.Int64N(100*sec)
		if rng.IntN(2) == 0 {
			tatNs = t0 - rng.Int64N(100*sec)
		}
		p.Client().Set(t.Context(), "k", tatNs, 0)
		batch := make([]store.Request, n)
		for i := range batch {
			batch[i] = ask("k", l, quantity)
		}
		for i, q := range decide(s, nowNs, batch...) {
			var want funnel.Result
			if tatNs, want = l.Throttle(tatNs, nowNs, quantity); q.Result != want || q.Err != nil {
				t.Fatalf("round %d, request %d of %d: %+v: want %+v", round, i, n, q, want)
			}
		}
		if got := p.Client().Get(t.Context(), "k").Val(); got != fmt.Sprint(tatNs) {
			t.Fatalf("round %d: %d requests of %d of %+v lead to %s, want %d", round, n, quantity, l, got, tatNs)
		}
	}
}

// TestServersTime: decisions are at the server's time, and a key lives as long as its debt, rounded up to the
// millisecond.
func TestServersTime(t *testing.T) {
	s, p := onServer(t, Config{})
	before := p.Client().Time(t.Context()).Val().UnixNano()
	q := decide(s, t0, ask("k", mustLimit(t, 9, 1, 60), 4))[0]
	after := p.Client().Time(t.Context()).Val().UnixNano()
	tatNs, err := p.Client().Get(t.Context(), "k").Int64()
	if want := (funnel.Result{Limit: 10, Remaining: 6, RetryAfter: -1, ResetAfter: 240}); q.Result != want || q.Err != nil || err != nil {
		t.Fatalf("got %+v, %v", q, err)
	}
	if atNs := tatNs - 240*sec; atNs < before || atNs > after || atNs%1000 != 0 {
		t.Errorf("it was decided at %d, want between %d and %d", atNs, before, after)
	}
	expiresMs := p.Client().Do(t.Context(), "pexpiretime", "k").Val().(int64)
	if lateNs := expiresMs*1e6 - tatNs; lateNs < -1e6 || lateNs > 3600*sec {
		t.Errorf("it expires %d ns after its TAT", lateNs)
	}
	if q = decide(s, t0, ask("k", mustLimit(t, 9, 1, 60), math.MinInt64))[0]; q.Result.Remaining != 10 || q.Err != nil {
		t.Errorf("a refund: %+v", q)
	}
	if n := p.Client().Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("an empty funnel still is a key")
	}
}

// TestPastTATs: a past time counts as an absent key.
func TestPastTATs(t *testing.T) {
	s, p := onServer(t, Config{})
	for _, value := range []string{"17", "0", "1", "999999999", "1000000000", "9223372036854775807"} {
		p.Client().Set(t.Context(), "k", value, 0)
		q := decide(s, t0, ask("k", mustLimit(t, 9, 1, 60), 1))[0]
		if q.Err != nil || q.Result.Limited != (len(value) > 10) {
			t.Errorf("%q: got %+v", value, q)
		}
	}
}
