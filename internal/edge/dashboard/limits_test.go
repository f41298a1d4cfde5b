package dashboard

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"cellserver/internal/decide/namedlimit"
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

type counter struct{}

func (counter) Count(into *atomic.Uint64, n uint64) { into.Add(n) }

// request counts requests of absent keys for a quantity.
func request(r *namedlimit.Registry, name string, flags limiter.Flags, quantity int64, times int) {
	rule := limiter.OfNamed(r.Lookup([]byte(name)).Named(nil, r.Now))
	rule.Flags = flags
	var tally limiter.Tally
	for range times {
		var s limiter.State
		result, _, _ := rule.Decide(&s, testNowNs, quantity)
		tally.Add(&rule, quantity, &result, counter{})
	}
	tally.Flush(counter{})
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

// TestLimits checks that the limits with the most decisions come first, with a row for each of several rules,
// and that there is no table without limits.
func TestLimits(t *testing.T) {
	r := limitsOf(t, definition("api", perPeriod(6, 8, 60), namedlimit.Rule{Algorithm: namedlimit.FixedWindow, Capacity: 2, PeriodSec: 86400}),
		definition("unused", perPeriod(1, 1, 1)))
	login := definition("login", perPeriod(5000, 1, 1))
	login.Shadow = true
	if err := r.Set(login); err != nil {
		t.Fatal(err)
	}
	request(r, "api", 0, 2, 1)
	decided(r, "login", false, 3)
	decided(r, "login", true, 1)
	s := testSource(nil)
	s.Limits = r.All
	page := body(t, New(s), "lang=en")
	rows := []string{
		"<tr data-k=\"login\"><th scope=\"row\">login</th><td>5,000 at once, 1 per second</td><td>yes</td><td>3</td><td>1</td><td>0</td><td>25\u00a0%</td></tr>",
		"<tr data-k=\"api\"><th scope=\"row\">api</th><td>all of 2 rules:</td><td>–</td><td>1</td><td>0</td><td>1</td><td>0\u00a0%</td></tr>",
		"<tr class=\"rule\" data-k=\"api#0\"><th scope=\"row\" colspan=\"3\">6 at once, 8 per minute</th><td>1</td><td>0</td><td>0</td><td>0\u00a0%</td></tr>",
		"<tr class=\"rule\" data-k=\"api#1\"><th scope=\"row\" colspan=\"3\">2 per day, fixed</th><td>1</td><td>0</td><td>1</td><td>0\u00a0%</td></tr>",
		"<tr data-k=\"unused\"><th scope=\"row\">unused</th><td>1 at once, 1 per second</td><td>–</td><td>0</td><td>0</td><td>0</td><td>–</td></tr>",
	}
	wantText(t, page, append(rows, ">Named limits</h2>", strings.Join(rows, ""))...)
	lacksText(t, page, ">overrides</th>", ">charged beyond</th>")
	wantText(t, body(t, New(s), "lang=zh"), "<th scope=\"row\" colspan=\"3\">一次最多 6 个，每分钟 8 个</th>", ">命名限额</h2>", "<td>是</td>")

	s.Limits = limitsOf(t).All
	for _, source := range []Source{s, testSource(nil)} {
		page := body(t, New(source), "")
		lacksText(t, page, "limits-heading")
		wantText(t, page, "<div id=\"limits\" data-live></div>")
	}
}

// TestLimitColumns checks the columns that some limit has a use for.
func TestLimitColumns(t *testing.T) {
	r := limitsOf(t, definition("api", perPeriod(1, 1, 1)), definition("bulk", perPeriod(1, 1, 1)))
	request(r, "bulk", limiter.Debit, tooMany, 2)
	override(t, r, "vip", namedlimit.Policy{Constant: limiter.Unlimited})
	s := testSource(nil)
	s.Limits = r.All
	wantText(t, body(t, New(s), "lang=en"), ">overrides</th><th scope=\"col\">charged beyond</th>",
		"<th scope=\"row\">bulk</th><td>1 at once, 1 per second</td><td>–</td><td>0</td><td>2</td><td>0</td><td>100\u00a0%</td><td>–</td><td>2</td>",
		"<th scope=\"row\">api</th><td>1 at once, 1 per second</td><td>–</td><td>0</td><td>0</td><td>0</td><td>–</td><td>1</td><td>0</td>")
	row, v := limitRow{Limit: r.All()[0], keys: 1200, patterns: 3}, New(s).view(newRequest("/?lang=en"))
	if html, err := render(limitTable{overrides: true}.rows(v, &row)); err != nil || !strings.Contains(html, "<td>1,200, 3 patterns</td>") {
		t.Errorf("got %s, %v", html, err)
	}
}

func TestMostLimits(t *testing.T) {
	var all []namedlimit.Definition
	for i := range maxLimitRows + 7 {
		var rules []namedlimit.Rule
		for rule := range limiter.MaxRules {
			rules = append(rules, perPeriod(1, 1, int64(rule+1)))
		}
		all = append(all, definition(fmt.Sprintf("limit-%02d", i), rules...))
	}
	s := testSource(nil)
	s.Limits = limitsOf(t, all...).All
	page := body(t, New(s), "lang=en")
	wantText(t, page, "And 7 more with fewer decisions", "limit-49<", ">all of 16 rules:<", "<td>1 at once, 1 per second · 1 at once, 1 per 2 s · ")
	lacksText(t, page, "limit-50<")
	if n := strings.Count(page, `<tr class="rule"`); n > maxRuleRows || n < maxRuleRows-limiter.MaxRules {
		t.Errorf("%d rules have a row, want at most %d", n, maxRuleRows)
	}
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
		if got := policyText(words.English(), &p); got != tt.en {
			t.Errorf("got %q, want %q", got, tt.en)
		}
		if got := policyText(words.Chinese(), &p); got != tt.zh {
			t.Errorf("got %q, want %q", got, tt.zh)
		}
	}
	for constant, want := range map[limiter.Constant]string{limiter.Deny: "denied", limiter.Unlimited: "unlimited"} {
		if got := policyText(words.English(), &namedlimit.Policy{Constant: constant}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// stateOf returns the state of a key after requests by a limit.
func stateOf(t *testing.T, r *namedlimit.Registry, limit, key string, requests ...int64) limiter.State {
	t.Helper()
	rule, s := limiter.OfNamed(r.Lookup([]byte(limit)).Named([]byte(key), r.Now)), limiter.State{}
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
		return s, s.ExpiresNs > nowNs, nil
	}
}
