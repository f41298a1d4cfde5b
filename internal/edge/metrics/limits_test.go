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
	r := newRig(func(c *Config) { c.Limits = named })
	login := named.Lookup([]byte("login"))
	for _, shadowed := range []bool{false, true, true, true} {
		login.Named().Counter(1, &funnel.Result{Shadowed: shadowed}).Add(1)
	}
	for _, want := range []string{
		"\ncellserver_limits 1\n",
		"\ncellserver_limits_file_reload_failed 0\n",
		"\ncellserver_limit_decisions_total{limit=\"login\",outcome=\"allowed\"} 1\n",
		"\ncellserver_limit_decisions_total{limit=\"login\",outcome=\"limited\"} 0\n",
		"\ncellserver_limit_decisions_total{limit=\"login\",outcome=\"shadow_limited\"} 3\n",
	} {
		if got := r.scrape(t); !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := named.Reload(); err == nil || !strings.Contains(r.scrape(t), "\ncellserver_limits_file_reload_failed 1\n") {
		t.Errorf("a reload that failed (%v) is not told", err)
	}
}

// TestLimitSeriesAreBounded: there are three for each limit, and none is left of those that are deleted.
func TestLimitSeriesAreBounded(t *testing.T) {
	r := newRig()
	series := func() int { return strings.Count(r.scrape(t), "\ncellserver_limit_decisions_total{") }
	for i := range namedlimit.MaxNames + 10 {
		r.say(fmt.Sprintf("CL.LIMIT SET l%d 1 1 1\r\n", i))
	}
	if n := series(); n != 3*namedlimit.MaxNames {
		t.Errorf("%d series", n)
	}
	r.say("CL.LIMIT DEL l0\r\n")
	if n := series(); n != 3*(namedlimit.MaxNames-1) {
		t.Errorf("%d series without one limit", n)
	}
}
