package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard"
	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/store"
)

// Keys of a fake:
const (
	binary  = "\xff\x00\u202e\"><script>alert(2)</script>" // in database 2, limited for an hour
	braces  = "{{alert(3)}}'\"`--></style>"                // without a state
	exports = "exports"                                    // a window, all of it used
	cards   = "cards"                                      // a bucket, two of five left
	pages   = "pages"                                      // a value
	twice   = "twice"                                      // a funnel in databases 0 and 3
)

// funnelTerms is the limit of the hot funnels.
var funnelTerms = limiter.Terms{Kind: limiter.Funnel, Unit: funnel.Seconds, Numbers: limiter.Numbers{16, 30, 60}}

// top returns hot keys. Their order changes with every sample; a click on one needs steady.
func (f *fake) top(ranking topkeys.Ranking, n int) []topkeys.Entry {
	calls := f.calls.Load()
	if ranking == topkeys.Limited {
		return []topkeys.Entry{
			{Name: "scraper", Recent: 60, IsRecent: true, Share: 0.6, Terms: funnelTerms},
			{Name: binary, DB: 2, Recent: 40, IsRecent: true, Share: 0.4, Terms: funnelTerms},
		}
	}
	keys := []topkeys.Entry{
		{Name: hostile, Recent: 100, IsRecent: true, Share: 0.5, Terms: funnelTerms},
		{Name: binary, DB: 2, Recent: 50, IsRecent: true, Share: 0.25, Terms: funnelTerms},
		{Name: braces, Recent: 10, IsRecent: true, Share: 0.05, Terms: funnelTerms},
		{Name: "api:user:" + hostile, Recent: 20, IsRecent: true, Share: 0.1, Terms: limiter.Terms{Kind: limiter.Named}},
		{Name: strings.Repeat("long", 32), Cut: true, Recent: float64(calls), IsRecent: true},
	}
	if calls%2 == 0 && !f.steady.Load() {
		slices.Reverse(keys)
	}
	return keys[:min(n, len(keys))]
}

// statesOf returns the states of a fake's keys.
func statesOf(began time.Time) func(int64, store.Key) (limiter.State, bool, error) {
	return func(nowNs int64, key store.Key) (s limiter.State, ok bool, err error) {
		switch name := string(key.Name); {
		case key.DB == 0 && (name == hostile || name == "a" || name == twice), key.DB == 3 && name == twice:
			return limiter.State{ExpiresNs: nowNs + 1e9}, true, nil
		case key.DB == 2 && name == binary:
			return limiter.State{ExpiresNs: began.Add(time.Hour).UnixNano()}, true, nil
		case key.DB == 0 && name == exports:
			return stateBy(limiter.Spec{Kind: limiter.FixedWindow, Numbers: limiter.Numbers{5, 3600}}, nowNs, 5)
		case key.DB == 0 && name == cards:
			return stateBy(limiter.Spec{Kind: limiter.Bucket, Numbers: limiter.Numbers{5}}, nowNs, -2)
		case key.DB == 0 && name == pages:
			return limiter.State{Kind: limiter.Value, Payload: []byte("text")}, true, nil
		}
		return limiter.State{}, false, nil
	}
}

// stateBy returns the state of a key after a call.
func stateBy(spec limiter.Spec, nowNs, quantity int64) (s limiter.State, ok bool, err error) {
	var rule limiter.Rule
	if err = spec.Build(&rule); err == nil {
		_, _, err = rule.Decide(&s, nowNs, quantity)
	}
	return s, err == nil, err
}

func newRegistry(t *testing.T, definitions ...namedlimit.Definition) *namedlimit.Registry {
	t.Helper()
	r := namedlimit.New(namedlimit.Config{Log: slog.New(slog.DiscardHandler)})
	for _, d := range definitions {
		d.Near = namedlimit.DefaultNear
		if err := r.Set(d); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// apiLimit is the limit api, of a funnel, a window and a quota.
var apiLimit = namedlimit.Definition{Name: "api", Policy: namedlimit.Policy{Rules: []namedlimit.Rule{
	{Capacity: 6, Count: 1, PeriodSec: 3600},
	{Algorithm: namedlimit.FixedWindow, Capacity: 10, PeriodSec: 3600},
	{Algorithm: namedlimit.Quota, Capacity: 1_000_000, Calendar: calendar.Spec{Every: calendar.Month, Zone: "Europe/Berlin"}},
}}}

// useLimits adds the limits of a registry, with an override of the key out of api, of whose other keys each
// has used three units.
func useLimits(t *testing.T, source *dashboard.Source, r *namedlimit.Registry) {
	t.Helper()
	if _, err := r.Override(namedlimit.KeyOverride{Limit: "api", Key: "out", Policy: namedlimit.Policy{Constant: limiter.Deny}}); err != nil {
		t.Fatal(err)
	}
	others := source.State
	source.Limits = r.All
	source.Overrides = func(limit string) ([]namedlimit.KeyOverride, []namedlimit.Override) {
		_, all := r.Overrides(limit, 0)
		return all, nil
	}
	source.State = func(nowNs int64, key store.Key) (s limiter.State, ok bool, err error) {
		if !strings.HasPrefix(string(key.Name), "api:") || key.DB != 0 {
			return others(nowNs, key)
		}
		named, _ := r.Lookup([]byte("api")).Named(nil, namedlimit.At(r.Now()))
		rule := limiter.OfNamed(named)
		_, _, err = rule.Decide(&s, nowNs, 3)
		return s, true, err
	}
}

const manyLimits = 50

// crowdedServer is a fake with 50 limits, tenant-00 to tenant-48 and api. Of the calls of tenant-07 most are
// limited; tenant-09 is a shadow.
func crowdedServer(t *testing.T) *fake {
	t.Helper()
	all := []namedlimit.Definition{apiLimit}
	for i := range manyLimits - 1 {
		all = append(all, namedlimit.Definition{Name: fmt.Sprintf("tenant-%02d", i), Shadow: i == 9,
			Policy: namedlimit.Policy{Rules: []namedlimit.Rule{{Capacity: 100, Count: 100, PeriodSec: 60}}}})
	}
	r := newRegistry(t, all...)
	f := &fake{}
	source := f.source()
	useLimits(t, &source, r)
	sample := source.Sample
	source.Sample = func() history.Sample {
		for i, l := range r.All() {
			callLimit(r, l.Name, 1, 10*i)
		}
		callLimit(r, "tenant-07", 1000, 1000)
		return sample()
	}
	f.listen(t, withHistory(f.run(t, source)))
	return f
}

// callLimit counts calls of absent keys.
func callLimit(r *namedlimit.Registry, name string, quantity int64, times int) {
	named, _ := r.Lookup([]byte(name)).Named(nil, namedlimit.At(r.Now()))
	rule := limiter.OfNamed(named)
	var tally limiter.Tally
	for range times {
		var s limiter.State
		result, _, _ := rule.Decide(&s, time.Now().UnixNano(), quantity) // valid
		tally.Add(&rule, quantity, &result, adder{})
	}
	tally.Flush(adder{})
}

type adder struct{}

func (adder) Count(into *atomic.Uint64, n uint64) { into.Add(n) }
