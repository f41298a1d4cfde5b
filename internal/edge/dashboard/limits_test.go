package dashboard

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/store"
)

func limitsOf(t testing.TB, definitions ...namedlimit.Definition) *namedlimit.Registry {
	t.Helper()
	r := namedlimit.New(namedlimit.Config{Now: func() int64 { return testNowNs }, Log: slog.New(slog.DiscardHandler)})
	for _, d := range definitions {
		if err := r.Set(d); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func definition(name string, rules ...namedlimit.Rule) namedlimit.Definition {
	return namedlimit.Definition{Name: name, Policy: namedlimit.Policy{Rules: rules}, Near: namedlimit.DefaultNear}
}

func perPeriod(capacity, count, periodSec int64) namedlimit.Rule {
	return namedlimit.Rule{Capacity: capacity, Count: count, PeriodSec: periodSec}
}

type adder struct{}

func (adder) Count(into *atomic.Uint64, n uint64) { into.Add(n) }

// request counts requests of absent keys for a quantity.
func request(r *namedlimit.Registry, name string, flags limiter.Flags, quantity int64, times int) {
	by, _ := r.Lookup([]byte(name)).Named(nil, namedlimit.At(r.Now()))
	rule := limiter.OfNamed(by)
	rule.Flags = flags
	var tally limiter.Tally
	for range times {
		var s limiter.State
		result, _, _ := rule.Decide(&s, testNowNs, quantity)
		tally.Add(&rule, quantity, &result, adder{})
	}
	tally.Flush(adder{})
}

const tooMany = 1 << 40 // units for any limit of the tests

func decided(r *namedlimit.Registry, name string, limited bool, times int) {
	quantity := int64(1)
	if limited {
		quantity = tooMany
	}
	request(r, name, 0, quantity, times)
}

// override sets an override of a key of the limit api.
func override(t *testing.T, r *namedlimit.Registry, key string, p namedlimit.Policy) {
	t.Helper()
	if _, err := r.Override(namedlimit.KeyOverride{Limit: "api", Key: key, Policy: p}); err != nil {
		t.Fatal(err)
	}
}

// named is a page whose named limits have a course of points.
func named(t *testing.T, s Source, r *namedlimit.Registry, points ...func()) *Page {
	t.Helper()
	s.Limits = r.All
	p := New(s)
	p.record()
	for _, decide := range points {
		decide()
		p.record()
	}
	return p
}

// TestLimits checks the table: rates and shares of the last minutes, those with the most calls first.
func TestLimits(t *testing.T) {
	r := limitsOf(t, definition("api", perPeriod(6, 8, 60), namedlimit.Rule{Algorithm: namedlimit.FixedWindow, Capacity: 2, PeriodSec: 86400}),
		definition("unused", perPeriod(1, 1, 1)))
	login := definition("login", perPeriod(5000, 1, 1))
	login.Shadow = true
	if err := r.Set(login); err != nil {
		t.Fatal(err)
	}
	override(t, r, "vip", namedlimit.Policy{Constant: limiter.Unlimited})
	p := named(t, testSource(nil), r, func() {
		request(r, "api", 0, 2, 20)
		decided(r, "login", false, 300)
	}, func() {
		decided(r, "login", false, 150)
		decided(r, "login", true, 150)
	})
	page := body(t, p, "lang=en")
	wantText(t, page, ">Named limits</h2>",
		`<tr data-k="login"><th scope="row"><a class="in" href="/?lang=en&amp;limit=login">login</a><span class="badge">shadow</span></th><td class="words minor">5,000 at once, 1 per second</td><td>30</td><td class="minor"><svg`,
		"</svg></td><td>25\u00a0%</td><td>0\u00a0%</td><td class=\"minor\">–</td></tr>",
		`<td class="words minor">all of 2 rules</td><td>0</td>`, "</svg></td><td>0\u00a0%</td><td>100\u00a0%</td><td class=\"minor\">1</td></tr>",
		`<td class="words minor">1 at once, 1 per second</td><td>0</td>`, `<td>–</td><td>–</td><td class="minor">–</td></tr>`)
	if got := limitNames(page); got != "login api unused" {
		t.Errorf("the order is %s", got)
	}
	wantText(t, body(t, p, "lang=zh"), `<td class="words minor">同时满足 2 条规则</td>`, ">命名限额</h2>", `<span class="badge">影子</span>`)
	wantText(t, body(t, p, "lang=en&limit=login"), "In 20\u00a0s about 600 calls, of which 150 limited")

	s := testSource(nil)
	s.Limits = limitsOf(t).All
	for _, source := range []Source{s, testSource(nil)} {
		page := body(t, New(source), "")
		lacksText(t, page, "limits-heading")
		wantText(t, page, "<div id=\"limits\" data-live></div>")
	}
}

// limitNames returns the limits of the table in their order.
func limitNames(page string) string {
	var names []string
	_, table, _ := strings.Cut(page, `id="limits"`)
	table, _, _ = strings.Cut(table, `id="history-heading"`)
	for _, row := range strings.Split(table, `<tr data-k="`)[1:] {
		name, _, _ := strings.Cut(row, `"`)
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// TestLimitsDefinedAnew: counters that begin again make no absurd rate.
func TestLimitsDefinedAnew(t *testing.T) {
	r := limitsOf(t, definition("api", perPeriod(1, 1, 1)))
	p := named(t, testSource(nil), r, func() { decided(r, "api", true, 500) }, func() {
		if _, err := r.Delete("api"); err != nil {
			t.Fatal(err)
		}
		if err := r.Set(definition("api", perPeriod(1, 1, 1))); err != nil {
			t.Fatal(err)
		}
		decided(r, "api", true, 20)
	})
	if calls, limited, _ := p.traces.OfLimit("api", history.TracePoints).Sums(); calls != 520 || limited != 520 {
		t.Errorf("%g calls, %g limited", calls, limited)
	}
}

// TestManyLimits: beyond ten they are folded, filtered and sorted as the address says.
func TestManyLimits(t *testing.T) {
	var all []namedlimit.Definition
	for i := range 50 {
		all = append(all, definition(fmt.Sprintf("limit-%02d", i), perPeriod(1, 1, 1)))
	}
	r := limitsOf(t, all...)
	p := named(t, testSource(nil), r, func() {
		decided(r, "limit-07", false, 5)
		decided(r, "limit-07", true, 4) // more than of limit-33, but a smaller share
		decided(r, "limit-33", true, 3)
	})
	page := body(t, p, "lang=en")
	if got := strings.Fields(limitNames(page)); len(got) != 10 || got[0] != "limit-07" || got[1] != "limit-33" || got[2] != "limit-00" {
		t.Errorf("at first: %q", got)
	}
	wantText(t, page, `<form id="filter"`, `<a class="in" href="/?lang=en&amp;unfold=1">Show 40 more</a>`)
	for _, tt := range []struct{ query, first, last string }{
		{"unfold=1", "limit-07", "limit-49"}, {"sort=limited", "limit-33", "limit-08"}, {"sort=name", "limit-00", "limit-09"},
		{"filter=-4", "limit-40", "limit-49"}, {"filter=LIMIT-41", "limit-41", "limit-41"}, {"filter=+33+", "limit-33", "limit-33"},
	} {
		got := strings.Fields(limitNames(body(t, p, "lang=en&"+tt.query)))
		if len(got) == 0 || got[0] != tt.first || got[len(got)-1] != tt.last {
			t.Errorf("%s: %q", tt.query, got)
		}
	}
	wantText(t, body(t, p, "lang=en&filter="+strings.ReplaceAll(hostile, " ", "+")), "No limit has this in its name.", `value="&lt;img src=x`)
	wantText(t, body(t, p, "lang=en&unfold=1"), `<a class="in" href="/?lang=en">Show only ten</a>`)
}

// TestRuleTexts checks how people read each algorithm, in both languages.
func TestRuleTexts(t *testing.T) {
	quota := func(every calendar.Every, zone, start string) namedlimit.Rule {
		r := namedlimit.Rule{Algorithm: namedlimit.Quota, Capacity: 1_000_000, Calendar: calendar.Spec{Every: every, Zone: zone}}
		if start != "" {
			var err error
			if r.Calendar.Start, err = calendar.ParseStart(every, []byte(start)); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
	named := perPeriod(100, 10, 1)
	named.Name = "burst"
	epoch := quota(calendar.Week, "", "")
	epoch.Calendar.Epoch = true
	for _, tt := range []struct {
		rule   namedlimit.Rule
		en, zh string
	}{
		{perPeriod(6, 8, 60), "6 at once, 8 per minute", "一次最多 6 个，每分钟 8 个"},
		{named, "burst: 100 at once, 10 per second", "burst：一次最多 100 个，每秒 10 个"},
		{perPeriod(6, 8, 3600), "6 at once, 8 per hour", "一次最多 6 个，每小时 8 个"},
		{perPeriod(6, 8, 300), "6 at once, 8 per 5 min", "一次最多 6 个，8 个 / 5 分钟"},
		{perPeriod(6, 8, 7*86400), "6 at once, 8 per 7 days", "一次最多 6 个，8 个 / 7 天"},
		{namedlimit.Rule{Algorithm: namedlimit.TokenBucket, Capacity: 5000, Count: 5, PeriodSec: 90}, "5,000 at once, 5 per 90 s", "一次最多 5,000 个，5 个 / 90 秒"},
		{namedlimit.Rule{Algorithm: namedlimit.FixedWindow, Capacity: 10, PeriodSec: 60}, "10 per minute, fixed", "每分钟 10 个，固定窗口"},
		{namedlimit.Rule{Algorithm: namedlimit.SlidingWindow, Capacity: 10, PeriodSec: 86400}, "10 per day, sliding", "每天 10 个，滑动窗口"},
		{namedlimit.Rule{Algorithm: namedlimit.ApproximateWindow, Capacity: 10, PeriodSec: 1}, "10 per second, approximate", "每秒 10 个，近似滑动窗口"},
		{quota(calendar.Month, "Europe/Berlin", ""), "1,000,000 a month (Europe/Berlin)", "每个自然月 1,000,000 个（Europe/Berlin）"},
		{quota(calendar.Month, "Europe/Berlin", "15"), "1,000,000 a month (Europe/Berlin), from day 15", "每个自然月 1,000,000 个（Europe/Berlin），15 日起"},
		{quota(calendar.Day, "", "06:00"), "1,000,000 a day (UTC), from 06:00", "每个自然日 1,000,000 个（UTC），06:00起"},
		{quota(calendar.Week, "", "3"), "1,000,000 a week (UTC), from Wednesday", "每个自然周 1,000,000 个（UTC），周三起"},
		{quota(calendar.Year, "", "04-01"), "1,000,000 a year (UTC), from 04-01", "每个自然年 1,000,000 个（UTC），04-01起"},
		{quota(calendar.Hour, "", ""), "1,000,000 an hour", "每个自然小时 1,000,000 个"},
		{epoch, "1,000,000 a week (since 1970)", "每个自然周 1,000,000 个（自 1970 年起）"},
	} {
		p := namedlimit.Policy{Rules: []namedlimit.Rule{tt.rule}}
		if got := in(words.English(), nil).policyText(&p); got != tt.en {
			t.Errorf("got %q, want %q", got, tt.en)
		}
		if got := in(words.Chinese(), nil).policyText(&p); got != tt.zh {
			t.Errorf("got %q, want %q", got, tt.zh)
		}
	}
	for constant, want := range map[limiter.Constant]string{limiter.Deny: "denied", limiter.Unlimited: "unlimited"} {
		if got := in(words.English(), nil).policyText(&namedlimit.Policy{Constant: constant}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// stateOf returns the state of a key after requests by a limit.
func stateOf(t *testing.T, r *namedlimit.Registry, limit, key string, requests ...int64) limiter.State {
	t.Helper()
	by, _ := r.Lookup([]byte(limit)).Named([]byte(key), namedlimit.At(r.Now()))
	rule, s := limiter.OfNamed(by), limiter.State{}
	for _, quantity := range requests {
		if _, _, err := rule.Decide(&s, testNowNs, quantity); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// statesOf is a Source's State.
func statesOf(states map[string]limiter.State) func(nowNs int64, key store.Key) (limiter.State, bool, error) {
	return func(nowNs int64, key store.Key) (limiter.State, bool, error) {
		s := states[string(key.Name)]
		return s, key.DB == 0 && s.ExpiresNs > nowNs, nil
	}
}
