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
	"cellserver/internal/funnel"
)

func TestLimits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.yml")
	if err := os.WriteFile(file, []byte("limits: {login: {windows: [{max_burst: 4, count: 5, period: 60}], shadow: true}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := limitsfile.New(limitsfile.Config{File: file, Log: slog.New(slog.DiscardHandler)})
	if err := named.Reload(); err != nil {
		t.Fatal(err)
	}
	h := newHarness(func(c *Config) { c.Limits = named })
	login := named.Lookup([]byte("login"))
	for _, shadowed := range []bool{false, true, true, true} {
		login.Named().Counter(1, &funnel.Result{Shadowed: shadowed}).Add(1)
	}
	h.expect(t, figure{"limits", nil, 1}, figure{"limits_file_reload_failed", nil, 0},
		figure{"limit_decisions_total", []string{"login", "allowed"}, 1},
		figure{"limit_decisions_total", []string{"login", "limited"}, 0},
		figure{"limit_decisions_total", []string{"login", "shadow_limited"}, 3})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := named.Reload(); err == nil {
		t.Error("a reload without the file succeeds")
	}
	h.expect(t, figure{"limits_file_reload_failed", nil, 1})
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
