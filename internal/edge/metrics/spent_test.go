package metrics

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

// spentSeries returns the lines of a scrape that say what was spent.
func (h *harness) spentSeries(t *testing.T) (lines []string) {
	t.Helper()
	for line := range strings.Lines(h.scrape(t)) {
		if strings.HasPrefix(line, "cellserver_limit_spent_today_") {
			lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, "cellserver_limit_spent_today_")))
		}
	}
	return lines
}

func (h *harness) expectSpent(t *testing.T, want ...string) {
	t.Helper()
	if got := h.spentSeries(t); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// aDay is a quota whose day does not end during a test.
func aDay(units int) string {
	return fmt.Sprintf("QUOTA %d DAY TZ Etc/GMT%+d", units, time.Now().UTC().Hour()-12)
}

// noon is by a clock that stands still.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// limitsAt returns limits of a file by a clock, and a function that rewrites the file.
func limitsAt(t *testing.T, nowNs *int64, text string) (*namedlimit.Registry, func(text string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "limits.yml")
	named := limitsfile.New(limitsfile.Config{File: file, Now: func() int64 { return *nowNs }, Log: slog.New(slog.DiscardHandler)})
	rewrite := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := named.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(text)
	return named, rewrite
}

// TestSpent: what was held, settled and debited counts, and no other call; in dollars if the limit is. A
// shadow spends, too, also what it would deny.
func TestSpent(t *testing.T) {
	h := newHarness()
	h.say(t, "CL.LIMIT SET api "+aDay(100)+"\r\nCL.LIMIT SET plain "+aDay(9)+"\r\nCL.LIMIT SET trial "+aDay(9)+" SHADOW\r\n"+
		"CL.LIMIT SET spend "+aDay(50_000_000)+" UNIT usd\r\nCL.LIMIT OVERRIDE api vip UNLIMITED\r\n")
	h.expectSpent(t)
	h.say(t, "CL.CHECK plain k 5\r\nCL.CHECK api k 7\r\nCL.MRESERVE 1 api vip 9 TTL 1h\r\nCL.MRESERVE 1 api k 99 TTL 1h\r\n") // nothing, or denied
	h.expectSpent(t)
	h.say(t, "CL.MRESERVE 3 api k 20 trial k 20 spend k 1500000 TTL 1h ID x\r\n")
	h.expectSpent(t, `dollars{limit="spend"} 1.5`, `units{limit="api"} 20`, `units{limit="trial"} 20`)
	h.say(t, "CL.MCOMMIT x 3 api k 5 trial k 25 spend k 250001\r\nCL.CHECK api k 3 DEBIT\r\n")
	h.expectSpent(t, `dollars{limit="spend"} 0.250001`, `units{limit="api"} 8`, `units{limit="trial"} 25`)

	h.say(t, "CL.LIMIT DEL trial\r\n")
	h.expectSpent(t, `dollars{limit="spend"} 0.250001`, `units{limit="api"} 8`)
	h.say(t, "FLUSHALL\r\n")
	h.expectSpent(t, `dollars{limit="spend"} 0.250001`, `units{limit="api"} 8`)
}

// TestNearByHolds: an allowed hold is near its limit as a check is, which an alert counts on; a denied one is
// not.
func TestNearByHolds(t *testing.T) {
	h := newHarness()
	h.say(t, "CL.LIMIT SET api "+aDay(100)+"\r\nCL.MRESERVE 1 api k 79 TTL 1h\r\n")
	h.expect(t, figure{"limit_near_total", []string{"api"}, 0})
	h.say(t, "CL.MRESERVE 1 api k 1 TTL 1h\r\nCL.MRESERVE 1 api k 21 TTL 1h\r\n")
	h.expect(t, figure{"limit_near_total", []string{"api"}, 1}, figure{"limit_spent_today_units", []string{"api"}, 80})
}

// TestSpentToday: a day is of the zone of a limit's first quota, else of UTC, and a limit that has spent on
// another day has spent nothing today.
func TestSpentToday(t *testing.T) {
	const quota = "{rules: [{algorithm: quota, max_count: 100, every: day, time_zone: %s}]}"
	nowNs := noon.UnixNano()
	named, rewrite := limitsAt(t, &nowNs, "limits:\n  samoa: "+fmt.Sprintf(quota, "Pacific/Pago_Pago")+"\n  utc: {rules: [{algorithm: fixed_window, max_count: 100, period: 1h}]}\n  tokyo: "+
		fmt.Sprintf(quota, "Asia/Tokyo")+"\n  quiet: "+fmt.Sprintf(quota, "UTC")+"\n")
	spent := store.Book{At: named.SpentAt}
	h := newHarness(func(c *Config) { c.Limits, c.Spent = named, spent.Of })
	for _, limit := range []string{"samoa", "utc", "tokyo", "gone"} {
		at, _ := spent.At([]byte(limit), nowNs)
		spent.Add(at, 1)
		at.Day--
		spent.Add(at, 5)
	}
	for _, tt := range []struct {
		hour              int // of the same day, by UTC
		samoa, utc, tokyo int
	}{
		{12, 1, 1, 1}, // 1:00 in Samoa, 21:00 in Tokyo
		{10, 5, 1, 1}, // yesterday in Samoa
		{-1, 5, 5, 1}, // yesterday of UTC
		{16, 1, 1, 0}, // tomorrow in Tokyo
		{36, 0, 0, 0},
	} {
		nowNs = noon.Truncate(24*time.Hour).UnixNano() + int64(tt.hour)*int64(time.Hour)
		h.expectSpent(t, fmt.Sprintf(`units{limit="samoa"} %d`, tt.samoa), fmt.Sprintf(`units{limit="tokyo"} %d`, tt.tokyo), fmt.Sprintf(`units{limit="utc"} %d`, tt.utc))
	}

	// A limit that a reload takes away takes its series, and one with another unit is told by it.
	nowNs = noon.UnixNano()
	rewrite("limits:\n  utc: {unit: usd, rules: [{algorithm: fixed_window, max_count: 100, period: 1h}]}\n  samoa: " + fmt.Sprintf(quota, "Pacific/Pago_Pago") + "\n")
	h.expectSpent(t, `dollars{limit="utc"} 1e-06`, `units{limit="samoa"} 1`)
	rewrite("limits: {}\n")
	h.expectSpent(t)
}

// TestSpentOfAPair: the leader alone says what was spent, so that a sum over both servers is right.
func TestSpentOfAPair(t *testing.T) {
	status := replicaStatus()
	h := newHarness(func(c *Config) { c.Replication = func() replicas.Status { return status } })
	h.say(t, "CL.LIMIT SET api "+aDay(100)+"\r\nCL.CHECK api k 7 DEBIT\r\n")
	h.expectSpent(t)
	status = leaderStatus()
	h.expectSpent(t, `units{limit="api"} 7`)
}

// TestSpentSeriesAreBounded: spending of names that are no limits has no series.
func TestSpentSeriesAreBounded(t *testing.T) {
	h := newHarness(func(c *Config) {
		var spent store.Spends
		for i := range 2 * namedlimit.MaxNames {
			for day := range int32(store.SpentDays) {
				spent.Add(store.SpentAt{Limit: fmt.Sprintf("l%04d", i), Day: day}, 1)
			}
		}
		c.Spent = func(string) store.Spends { return spent }
	})
	for i := range namedlimit.MaxNames {
		h.say(t, fmt.Sprintf("CL.LIMIT SET l%04d 1 1 1\r\n", i+namedlimit.MaxNames/2))
	}
	if n := len(h.spentSeries(t)); n != namedlimit.MaxNames {
		t.Errorf("%d series, want %d", n, namedlimit.MaxNames)
	}
}
