package metrics

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func TestLimitsOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.yml")
	if err := os.WriteFile(file, []byte("limits: {login: {windows: [{max_burst: 4, count: 5, period: 60}], shadow: true}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := limitsfile.New(limitsfile.Config{File: file, Log: slog.New(slog.DiscardHandler)})
	if err := named.Reload(); err != nil {
		t.Fatal(err)
	}
	h := newHarness(func(c *Config) { c.Limits = named })
	h.expect(t, figure{"limits", nil, 1}, figure{"limits_file_reload_failed", nil, 0}, figure{"limit_decisions_total", []string{"login", "limited"}, 0})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := named.Reload(); err == nil {
		t.Error("a reload without the file succeeds")
	}
	h.expect(t, figure{"limits_file_reload_failed", nil, 1})
}

// TestLimits checks that the outcomes sum up to all decisions, and which of them count as near, overridden
// and charged beyond the limit, for the limit and for each of its rules.
func TestLimits(t *testing.T) {
	h := newHarness()
	h.say(t, "CL.LIMIT SET api FUNNEL 4 1 3600 FIXEDWINDOW 2 86400\r\nCL.LIMIT SET shadow 0 1 3600 SHADOW\r\n")
	h.say(t, strings.Repeat("CL.CHECK api k\r\n", 4)+strings.Repeat("CL.CHECK shadow k\r\n", 3))
	h.say(t, "CL.CHECK api debtor 9 DEBIT\r\nCL.LIMIT OVERRIDE api vip UNLIMITED\r\nCL.CHECK api vip\r\nCL.LIMIT OVERRIDE api out DENY\r\nCL.CHECK api out\r\n")
	outcomes := func(limit string, allowed, limited, shadowed float64) []figure {
		return []figure{
			{"limit_decisions_total", []string{limit, "allowed"}, allowed},
			{"limit_decisions_total", []string{limit, "limited"}, limited},
			{"limit_decisions_total", []string{limit, "shadow_limited"}, shadowed},
		}
	}
	h.expect(t, append(outcomes("api", 3, 4, 0), outcomes("shadow", 1, 0, 2)...)...)
	h.expect(t,
		figure{"limits", nil, 2},
		figure{"limit_near_total", []string{"api"}, 1}, figure{"limit_near_total", []string{"shadow"}, 1},
		figure{"limit_overridden_total", []string{"api"}, 2}, figure{"limit_overridden_total", []string{"shadow"}, 0},
		figure{"limit_charged_beyond_total", []string{"api"}, 1}, figure{"limit_charged_beyond_total", []string{"shadow"}, 0},
		figure{"limit_overrides", []string{"api", "key"}, 2}, figure{"limit_overrides", []string{"api", "pattern"}, 0},
		figure{"limit_rule_near_total", []string{"api", "fixed_window 86400"}, 1},
		figure{"limit_rule_near_total", []string{"api", "funnel 3600"}, 0},
		figure{"limit_rule_decisions_total", []string{"api", "limited", "fixed_window 86400"}, 3},
		figure{"limit_rule_decisions_total", []string{"api", "limited", "funnel 3600"}, 1},
		figure{"limit_rule_decisions_total", []string{"api", "shadow_limited", "funnel 3600"}, 0},
		figure{"limit_rules_left_out", nil, 0})
	all := h.gather(t)
	for _, name := range []string{"limit_rule_decisions_total", "limit_rule_near_total", "limit_overrides"} {
		for _, m := range all["cellserver_"+name].GetMetric() {
			if got := m.GetLabel()[0].GetValue(); got != "api" {
				t.Errorf("%s has a series of %s", name, got)
			}
		}
	}
}

func TestDebitsCut(t *testing.T) {
	h := newHarness()
	h.expect(t, figure{"debits_cut_total", nil, 0})
	h.say(t, "CL.DEBIT k 0 1 3600 9000000000000000000\r\nCL.DEBIT k 0 1 3600 1\r\n")
	h.expect(t, figure{"debits_cut_total", nil, 2})
}

// TestLimitSeriesAreBounded checks that each limit has three series, until it is deleted.
func TestLimitSeriesAreBounded(t *testing.T) {
	h := newHarness()
	series := func() int { return strings.Count(h.scrape(t), "\ncellserver_limit_decisions_total{") }
	for i := range namedlimit.MaxNames + 10 {
		h.say(t, fmt.Sprintf("CL.LIMIT SET l%d 1 1 1\r\n", i))
	}
	if n := series(); n != 3*namedlimit.MaxNames {
		t.Errorf("%d series", n)
	}
	h.say(t, "CL.LIMIT DEL l0\r\n")
	if n := series(); n != 3*(namedlimit.MaxNames-1) {
		t.Errorf("%d series without one limit", n)
	}
}

// TestRuleSeriesAreBounded checks that the limits that come first by name have series of their rules, and
// that the others are counted.
func TestRuleSeriesAreBounded(t *testing.T) {
	h := newHarness()
	rules := ""
	for i := range limiter.MaxRules {
		rules += fmt.Sprintf(" FUNNEL 1 1 %d", i+1)
	}
	const limits = 70 // of 16 rules each
	for i := range limits {
		h.say(t, fmt.Sprintf("CL.LIMIT SET l%02d%s\r\n", i, rules))
	}
	text := h.scrape(t)
	if n := strings.Count(text, "\ncellserver_limit_rule_near_total{"); n != maxRuleSeries {
		t.Errorf("%d rules have series, want %d", n, maxRuleSeries)
	}
	if n := strings.Count(text, "\ncellserver_limit_rule_decisions_total{"); n != 3*maxRuleSeries {
		t.Errorf("%d series of outcomes, want %d", n, 3*maxRuleSeries)
	}
	if strings.Contains(text, `limit_rule_near_total{limit="l64"`) {
		t.Error("a limit after the bound has series of its rules")
	}
	h.expect(t, figure{"limit_rules_left_out", nil, limits*limiter.MaxRules - maxRuleSeries}, figure{"limit_near_total", []string{"l69"}, 0})
}

// endedHolds is a store with counts of holds that nobody has settled.
type endedHolds struct{ store.Store }

func (s endedHolds) UpdateStats(st *store.Stats) {
	s.Store.UpdateStats(st)
	st.Holds = map[string]store.HoldStats{"api": {Returned: 1, Charged: 2, Dropped: 3, Evicted: 4}, "gone": {Returned: 9}}
}

// TestHolds by limit and event, of defined limits that have had one.
func TestHolds(t *testing.T) {
	h := newHarness(func(c *Config) { c.Store = endedHolds{c.Store} })
	h.say(t, "CL.LIMIT SET api FIXEDWINDOW 10 86400\r\nCL.LIMIT SET other FUNNEL 9 1 60\r\nCL.LIMIT SET none FUNNEL 9 1 60\r\nCL.CHECK none k\r\n")
	h.say(t, "CL.MRESERVE 3 api k 4 api l 4 other k 4 TTL 1h ID x\r\nCL.MRESERVE 2 api k 7 other k 1 TTL 1h\r\nCL.MCOMMIT x 3 api k 4 api l 4 other k 4\r\n")
	all := h.gather(t)["cellserver_limit_holds_total"]
	for limit, events := range map[string]map[string]float64{
		"api":   {"held": 2, "settled": 2, "late": 0, "returned": 1, "charged": 2, "dropped": 3, "evicted": 4},
		"other": {"held": 1, "settled": 1, "late": 0, "returned": 0, "charged": 0, "dropped": 0, "evicted": 0},
	} {
		for event, want := range events {
			if got := value(t, all, event, limit); got != want {
				t.Errorf("%s of %s: %g, want %g", event, limit, got, want)
			}
		}
	}
	if n := len(all.GetMetric()); n != 14 {
		t.Errorf("%d series", n)
	}
}
