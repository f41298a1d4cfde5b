package funnel

import "testing"

// TestOutlookAgreesWithThrottle: at each step the outlook agrees with the results of Throttle.
func TestOutlookAgreesWithThrottle(t *testing.T) {
	const ms = 1_000_000
	for _, tt := range []struct {
		name                    string
		maxBurst, count, period int64
		debtNs                  int64
		want                    Outlook
	}{
		{"empty", 15, 30, 60, 0, Outlook{}},
		{"one unit", 15, 30, 60, 2000 * ms, Outlook{Level: 1, EmptyNs: 2000 * ms}},
		{"between units", 15, 30, 60, 3000 * ms, Outlook{Level: 1.5, EmptyNs: 3000 * ms}},
		{"room for exactly one", 15, 30, 60, 30_000 * ms, Outlook{Level: 15, EmptyNs: 30_000 * ms}},
		{"full", 15, 30, 60, 32_000 * ms, Outlook{Level: 16, FreeNs: 2000 * ms, EmptyNs: 32_000 * ms}},
		{"beyond its capacity", 0, 1, 1, 3500 * ms, Outlook{Level: 3.5, FreeNs: 3500 * ms, EmptyNs: 3500 * ms}},
		{"milliseconds", 9, 1000, 1, 10 * ms, Outlook{Level: 10, FreeNs: ms, EmptyNs: 10 * ms}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const nowNs = 1_700_000_000_000_000_000
			limit := mustLimit(t, Burst, tt.maxBurst, tt.count, tt.period)
			got := limit.Outlook(nowNs+tt.debtNs, nowNs)
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			_, r := limit.Throttle(nowNs+tt.debtNs, nowNs, 1)
			if r.Limited != (got.FreeNs > 0) || r.Limited && r.RetryAfter != seconds(got.FreeNs) {
				t.Errorf("%+v, but Throttle says %+v", got, r)
			}
			if _, r = limit.Throttle(nowNs+tt.debtNs, nowNs, 0); r.ResetAfter != seconds(got.EmptyNs) {
				t.Errorf("%+v, but Throttle says %+v", got, r)
			}
		})
	}
}
