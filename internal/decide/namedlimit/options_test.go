package namedlimit

import (
	"math"
	"slices"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

func TestCheckOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		change func(d *Definition)
		want   string
	}{
		{func(*Definition) {}, ""},
		{func(d *Definition) { d.Unit, d.MaxReservation = USD, 1 }, ""},
		{func(d *Definition) { d.Unit = "eur" }, "unit must be usd, of which integers are millionths, or be left out, got 'eur'"},
		{func(d *Definition) { d.MaxReservation = -0.5 }, "max_reservation must be above 0 and at most 1, got -0.5"},
		{func(d *Definition) { d.MaxReservation = 1.5 }, "max_reservation must be above 0 and at most 1, got 1.5"},
		{func(d *Definition) { d.MaxReservation = math.NaN() }, "max_reservation must be above 0 and at most 1, got NaN"},
	} {
		d := definition("a", 5)
		tt.change(&d)
		got := ""
		if err := newRegistry().Set(d); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestSetShadowKeepsOptions: only SHADOW changes, whether the options are given or left out.
func TestSetShadowKeepsOptions(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	spend := definition("a", 5)
	spend.Unit, spend.MaxReservation = USD, 0.5
	mustSet(t, r, spend)
	shadow := spend
	shadow.Shadow = true
	plain := definition("a", 5)
	if err := r.SetShadow(shadow); err != nil || !has(r, shadow) {
		t.Errorf("as it is: %v, %+v", err, r.Lookup([]byte("a")))
	}
	if err := r.SetShadow(plain); err != nil || !has(r, spend) {
		t.Errorf("without options: %v, %+v", err, r.Lookup([]byte("a")))
	}
	shadow.MaxReservation = 0.25
	if err := r.SetShadow(shadow); err == nil || err.Error() != "the limit 'a' has another unit or max_reservation; nothing was changed" || !has(r, spend) {
		t.Errorf("with another share: %v, %+v", err, r.Lookup([]byte("a")))
	}
	mustSet(t, r, plain)
	if !has(r, plain) {
		t.Errorf("Set does not remove them: %+v", r.Lookup([]byte("a")))
	}
}

// TestExplainedAmounts: the texts of a limit in dollars have what is left before the look, and what comes
// back.
func TestExplainedAmounts(t *testing.T) {
	t.Parallel()
	const nowNs = 1_700_000_000_000_000_000
	d := of(Rule{Algorithm: Quota, Name: "m", Capacity: 50_000_000, Calendar: calendar.Spec{Every: calendar.Month}},
		Rule{Algorithm: TokenBucket, Capacity: 20_000_000, Count: 1_000_000, PeriodSec: 3600}, Rule{Algorithm: FixedWindow, Capacity: 12_340_500, PeriodSec: 60})
	d.Unit = USD
	r := newRegistry()
	mustSet(t, r, d)
	overrides := []KeyOverride{
		{Limit: "a", Key: "out", Policy: Policy{Constant: limiter.Deny}},
		{Limit: "a", Key: "more", Policy: Policy{Rules: []Rule{{Algorithm: FixedWindow, Capacity: 99_000_000, PeriodSec: 60}}}},
	}
	for _, o := range overrides {
		if _, err := r.Override(o); err != nil {
			t.Fatal(err)
		}
	}
	spent := func(key string, units int64) (s limiter.State) {
		n, _ := r.Lookup([]byte("a")).Named([]byte(key), At(nowNs))
		rule := limiter.OfNamed(n)
		rule.Flags = limiter.Debit
		if _, _, err := rule.Decide(&s, nowNs, units); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, tt := range []struct {
		key   string
		units int64
		want  []string
	}{
		{"k", 0, []string{"m: QUOTA 50000000 MONTH ($50.00 of $50.00 left)",
			"TOKENBUCKET 20000000 1000000 3600 ($20.00 of $20.00 left, $1.00 every 3600 s)", "FIXEDWINDOW 12340500 60 ($12.34 of $12.34 left)"}},
		{"k", 12_340_000, []string{"m: QUOTA 50000000 MONTH ($37.66 of $50.00 left)",
			"TOKENBUCKET 20000000 1000000 3600 ($7.66 of $20.00 left, $1.00 every 3600 s)", "FIXEDWINDOW 12340500 60 ($0.0005 of $12.34 left)"}},
		{"k", 60_000_000, []string{"m: QUOTA 50000000 MONTH ($0.00 of $50.00 left)",
			"TOKENBUCKET 20000000 1000000 3600 ($0.00 of $20.00 left, $1.00 every 3600 s)", "FIXEDWINDOW 12340500 60 ($0.00 of $12.34 left)"}},
		{"more", 1, []string{"FIXEDWINDOW 99000000 60 ($98.99 of $99.00 left)"}},
		{"out", 1, []string{"DENY"}},
	} {
		s := spent(tt.key, tt.units)
		e := r.Lookup([]byte("a")).Explained([]byte(tt.key), At(nowNs), funnel.Burst)
		step, take := e.Copy()
		if _, err := step.Do(&s, nowNs); err != nil {
			t.Fatal(err)
		}
		take()
		var got []string
		for i := range e.Rules {
			got = append(got, e.Text(i))
			if words := CutAmounts(got[i]); words != e.Rules[i].Rule {
				t.Errorf("cut to %q", words)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s after %d: got %q, want %q", tt.key, tt.units, got, tt.want)
		}
	}
}
