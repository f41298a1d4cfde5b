package remote

import (
	"strings"
	"testing"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestPolicyHoldsNothing: whatever the policy, a request that holds its units fails where no server answers,
// by itself and in a transaction, beside others that are decided.
func TestPolicyHoldsNothing(t *testing.T) {
	limit := limiter.NewNamedLimit([]limiter.NamedRule{limiter.PlainRule(mustLimit(t, 9, 1, 60), 60*sec)}, 0)
	holding := limit.Holding(&limiter.Hold{ID: limiter.HoldIDOf([]byte("id")), TTLNs: sec})
	for _, policy := range []store.Fallback{store.FallbackAllow, store.FallbackDeny} {
		s := opened(t, Config{OnError: policy, Pool: &fake{send: fails(servers.Failed{Reason: servers.Refused, Text: "away"})}})
		batch := []store.Request{{Key: named("k"), Rule: limiter.OfNamed(holding), Quantity: 1}, {Key: named("k"), Rule: limiter.OfNamed(limit), Quantity: 1}}
		inTransaction := append([]store.Request(nil), batch...)
		s.DecideByPolicy(inTransaction, store.Failure{Line: "STOREDOWN away"})
		for what, got := range map[string][]store.Request{"by itself": decide(s, t0, batch...), "in a transaction": inTransaction} {
			if err := got[0].Err; err == nil || !strings.HasPrefix(err.Error(), "STOREDOWN ") || got[1].Err != nil {
				t.Errorf("%v, %s: %v, %v", policy, what, err, got[1].Err)
			}
		}
		if st := s.Stats().Policy; st[store.FallbackError].Failed != 2 || st[policy].Total() != 2 {
			t.Errorf("%v: counted %+v", policy, st)
		}
	}
}
