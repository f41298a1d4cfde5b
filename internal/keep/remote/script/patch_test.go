package script

import (
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// TestPatchesOfWhatIsRounded: the end of a reservation with a dated ID, which is rounded to a microsecond,
// moves with the time of writing, also where that must be before it.
func TestPatchesOfWhatIsRounded(t *testing.T) {
	const nowNs, ttlNs, us = int64(1_700_000_000_000_123_000), int64(100_000_000), 1000
	l, err := funnel.NewLimit(funnel.Burst, 9, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	o := limiter.Operation{Verb: limiter.Reserve, Funnel: l, Quantity: 2, ID: 7, Dated: true, TTLNs: ttlNs}
	before := limiter.State{Kind: limiter.Funnel, ExpiresNs: nowNs + 999_000_000_000}
	to := limiter.Shifted(before, 0)
	if done, err := o.Do(&to, nowNs); !done || err != nil {
		t.Fatal(done, err)
	}
	c := ChangeOf(before, to, nowNs, nowNs+3_600_000_000_000, func(s *limiter.State, nowNs int64) bool {
		again, _ := o.Copy()
		done, _ := again.Do(s, nowNs)
		return done
	})
	for _, sinceNs := range []int64{0, us, 300 * us, ttlNs / 2, c.LastNs - nowNs} {
		s := limiter.Shifted(c.To, 0)
		c.Patches.Apply(&s, sinceNs)
		if err := limiter.Accept(&s); err != nil {
			t.Errorf("written %d ns later: %v", sinceNs, err)
		}
		if endNs := limiter.EndNs(&s, nowNs+sinceNs); endNs != nowNs+sinceNs+ttlNs {
			t.Errorf("written %d ns later, it ends after %d ns, want %d", sinceNs, endNs-nowNs-sinceNs, ttlNs)
		}
	}
}
