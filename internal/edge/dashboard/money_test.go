package dashboard

import (
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/actions"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

// spendSource is a server with limits in dollars, and one in units beside them.
func spendSource(t *testing.T) (Source, *namedlimit.Registry) {
	t.Helper()
	month := namedlimit.Rule{Algorithm: namedlimit.Quota, Capacity: 50_000_000, Calendar: calendar.Spec{Every: calendar.Month}}
	spend, two := definition("api", month), definition("two", month, namedlimit.Rule{Algorithm: namedlimit.TokenBucket, Capacity: 2_000_000_000, Count: 2_500, PeriodSec: 60})
	spend.Unit, two.Unit = namedlimit.USD, namedlimit.USD
	r := limitsOf(t, spend, two, definition("units", month))
	override(t, r, "big", namedlimit.Policy{Rules: []namedlimit.Rule{{Algorithm: namedlimit.FixedWindow, Capacity: 80_000_000, PeriodSec: 3600}}})
	s := testSource(nil)
	s.Limits, s.Calendars = r.All, r.Calendars()
	s.Overrides = func(limit string) ([]namedlimit.KeyOverride, []namedlimit.Override) {
		_, all := r.Overrides(limit, 0)
		return all, nil
	}
	s.State = statesOf(map[string]limiter.State{
		"api:some":   stateOf(t, r, "api", "some", 12_345_678),
		"api:little": stateOf(t, r, "api", "little", 49_997_500),
		"api:all":    stateOf(t, r, "api", "all", 50_000_000),
		"two:k":      stateOf(t, r, "two", "k", 1_500_000),
		"units:k":    stateOf(t, r, "units", "k", 12_345_678),
	})
	return s, r
}

// TestMoney: amounts of a limit in dollars are told in dollars, in the rows and in the drawer.
func TestMoney(t *testing.T) {
	s, r := spendSource(t)
	p := named(t, s, r)
	wantText(t, body(t, p, "lang=en"), `<td class="words minor">$50.00 a month (UTC)</td>`, `<td class="words minor">50,000,000 a month (UTC)</td>`)
	wantText(t, body(t, p, "lang=zh"), `<td class="words minor">每个自然月 $50.00（UTC）</td>`, `<td class="words minor">每个自然月 50,000,000 个（UTC）</td>`)
	for _, tt := range []struct {
		query string
		want  []string
	}{
		{"limit=api", []string{`<th scope="row">$50.00 a month (UTC)</th>`, "<td>$80.00 per hour, fixed</td>"}},
		{"limit=two", []string{`<th scope="row">$50.00 a month (UTC)</th>`, `<th scope="row">$2,000.00 at once, $0.0025 per minute</th>`}},
		{"limit=api&key=some", []string{"✓ Allowed: $37.65 at once", "<dt>Used</dt><dd>$12.34 of $50.00</dd>", "<dt>Available</dt><dd>$37.65</dd>", "is used: $12.34 of $50.00.",
			"<code>0 50000000 37654321 -1 "}},
		{"limit=api&key=little", []string{"✓ Allowed: $0.0025 at once", "<dt>Used</dt><dd>$49.99 of $50.00</dd>", "<dt>Available</dt><dd>$0.0025</dd>"}},
		{"limit=api&key=all", []string{"✕ Limited", "<dt>Used</dt><dd>$50.00 of $50.00</dd>", "<dt>Available</dt><dd>$0.00</dd>"}},
		{"limit=api&key=big", []string{"✓ Allowed: $80.00 at once", "<p>$80.00 per hour, fixed</p>", "$0.00 of $80.00"}},
		{"limit=two&key=k", []string{"✓ Allowed: $48.50 at once", "<h3>✓ $2,000.00 at once, $0.0025 per minute</h3>", "<dt>Level</dt><dd>$1.50 of $2,000.00</dd>",
			"<dt>Available</dt><dd>$1,998.50</dd>", "<dt>Leak rate</dt><dd>$0.0025 every 60 s</dd>"}},
		{"limit=units&key=k", []string{"✓ Allowed: 37,654,322 at once", "of 50,000,000 units", "<dt>Available</dt><dd>37,654,322</dd>"}},
	} {
		_, drawer, _ := strings.Cut(body(t, p, "lang=en&"+tt.query), `id="drawer"`)
		wantText(t, drawer, tt.want...)
	}
	_, drawer, _ := strings.Cut(body(t, p, "lang=zh&limit=two&key=k"), `id="drawer"`)
	wantText(t, drawer, "放行：一次最多 $48.50", "$1.50 / $2,000.00", "$0.0025 / 60 秒")
	lacksText(t, drawer, "$48.50 个", "$2,000.00 单位")
}

// TestMoneyToRefund: the form says what its integers are.
func TestMoneyToRefund(t *testing.T) {
	s, r := spendSource(t)
	v := actingPage(t, func(to *Source) { to.Limits = s.Limits }).view(newRequest("/?key=api:some&lang=en"))
	v.acting = actions.State{User: "ann", IsTrusted: true}
	for name, tt := range map[string]struct{ has, lacks string }{
		"api": {"Millionths of a dollar", ">Units"}, "units": {"Units", "Millionths of a dollar"},
	} {
		html, err := render(v.keyActions(keyOf(name+":some", 0, limiter.Named, r.Lookup([]byte(name)))))
		if err != nil {
			t.Fatal(err)
		}
		wantText(t, html, tt.has)
		lacksText(t, html, tt.lacks)
	}
}
