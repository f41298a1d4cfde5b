package dashboard

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
)

func limitsOf(t *testing.T, definitions ...namedlimit.Definition) *namedlimit.Registry {
	t.Helper()
	r := namedlimit.New(namedlimit.Config{Log: slog.New(slog.DiscardHandler)})
	for _, d := range definitions {
		if err := r.Set(d); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func decided(r *namedlimit.Registry, name string, limited bool, times int) {
	for range times {
		r.Lookup([]byte(name)).Named().Counter(1, &funnel.Result{Limited: limited}).Add(1)
	}
}

// TestLimits: the limits with the most decisions first, and nothing at all where there are none.
func TestLimits(t *testing.T) {
	r := limitsOf(t,
		namedlimit.Definition{Name: "api", Windows: []namedlimit.Window{{Capacity: 5, Count: 10, PeriodSec: 60}, {Capacity: 100, Count: 100, PeriodSec: 86400}}},
		namedlimit.Definition{Name: "login", Windows: []namedlimit.Window{{Capacity: 1, Count: 1, PeriodSec: 1}}, Shadow: true},
		namedlimit.Definition{Name: "unused", Windows: []namedlimit.Window{{Capacity: 1, Count: 1, PeriodSec: 1}}},
	)
	decided(r, "api", false, 1)
	decided(r, "login", false, 3)
	decided(r, "login", true, 1)
	s := testSource(nil)
	s.Limits = r.All
	body := get(t, New(s), "/?lang=en").Body.String()
	rows := []string{
		"<tr data-k=\"login\"><th scope=\"row\">login</th><td>0 1 1</td><td>yes</td><td>3</td><td>1</td><td>25\u00a0%</td></tr>",
		"<tr data-k=\"api\"><th scope=\"row\">api</th><td>4 10 60 · 99 100 86400</td><td>–</td><td>1</td><td>0</td><td>0\u00a0%</td></tr>",
		"<tr data-k=\"unused\"><th scope=\"row\">unused</th><td>0 1 1</td><td>–</td><td>0</td><td>0</td><td>–</td></tr>",
	}
	wantText(t, body, append(rows, ">Named limits</h2>", strings.Join(rows, ""))...)
	s.Reading = funnel.Capacity
	wantText(t, get(t, New(s), "/?lang=zh").Body.String(), "<td>5 10 60 · 100 100 86400</td>", ">命名限额</h2>", "<td>是</td>")

	s.Limits = limitsOf(t).All
	for _, source := range []Source{s, testSource(nil)} {
		if body := get(t, New(source), "/").Body.String(); strings.Contains(body, "limits-heading") || !strings.Contains(body, "<div id=\"limits\" data-live></div>") {
			t.Error("a table of no limits")
		}
	}
}

func TestMostLimits(t *testing.T) {
	var all []namedlimit.Definition
	for i := range maxLimitRows + 7 {
		all = append(all, namedlimit.Definition{Name: fmt.Sprintf("limit-%02d", i), Windows: []namedlimit.Window{{Capacity: 1, Count: 1, PeriodSec: 1}}})
	}
	s := testSource(nil)
	s.Limits = limitsOf(t, all...).All
	body := get(t, New(s), "/?lang=en").Body.String()
	wantText(t, body, "And 7 more with fewer decisions", "limit-49<")
	if strings.Contains(body, "limit-50<") {
		t.Error("more rows than there may be")
	}
}
