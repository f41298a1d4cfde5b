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

// TestLimits checks that the limits with the most decisions come first, and that there is no table without
// limits.
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
	page := body(t, New(s), "lang=en")
	rows := []string{
		"<tr data-k=\"login\"><th scope=\"row\">login</th><td>0 1 1</td><td>yes</td><td>3</td><td>1</td><td>25\u00a0%</td></tr>",
		"<tr data-k=\"api\"><th scope=\"row\">api</th><td>4 10 60 · 99 100 86400</td><td>–</td><td>1</td><td>0</td><td>0\u00a0%</td></tr>",
		"<tr data-k=\"unused\"><th scope=\"row\">unused</th><td>0 1 1</td><td>–</td><td>0</td><td>0</td><td>–</td></tr>",
	}
	wantText(t, page, append(rows, ">Named limits</h2>", strings.Join(rows, ""))...)
	s.Reading = funnel.Capacity
	wantText(t, body(t, New(s), "lang=zh"), "<td>5 10 60 · 100 100 86400</td>", ">命名限额</h2>", "<td>是</td>")

	s.Limits = limitsOf(t).All
	for _, source := range []Source{s, testSource(nil)} {
		page := body(t, New(source), "")
		lacksText(t, page, "limits-heading")
		wantText(t, page, "<div id=\"limits\" data-live></div>")
	}
}

func TestMostLimits(t *testing.T) {
	var all []namedlimit.Definition
	for i := range maxLimitRows + 7 {
		all = append(all, namedlimit.Definition{Name: fmt.Sprintf("limit-%02d", i), Windows: []namedlimit.Window{{Capacity: 1, Count: 1, PeriodSec: 1}}})
	}
	s := testSource(nil)
	s.Limits = limitsOf(t, all...).All
	page := body(t, New(s), "lang=en")
	wantText(t, page, "And 7 more with fewer decisions", "limit-49<")
	lacksText(t, page, "limit-50<")
}
