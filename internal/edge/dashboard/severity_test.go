package dashboard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"cellserver/docs"
	"cellserver/internal/decide/histogram"
	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

// rule is an alert of deploy/prometheus.
type rule struct {
	Alert, Expr string
	Labels      struct{ Severity string }
}

func readAlerts(t *testing.T) map[string]rule {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/prometheus/cellserver.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	all := map[string]rule{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				all[strings.TrimPrefix(r.Alert, "Cellserver")] = r
			}
		}
	}
	return all
}

// TestAlarmsAreAlerts compares thresholds, times and urgencies with the alerts of deploy/prometheus, in both
// directions.
func TestAlarmsAreAlerts(t *testing.T) {
	alerts := readAlerts(t)
	for i, r := range severityRows() {
		if before := severityRows()[max(0, i-1)]; r.urgent > before.urgent {
			t.Errorf("%s is more urgent than %s and comes after it", r.alert, before.alert)
		}
		if r.section != "" {
			continue
		}
		alert, ok := alerts[r.alert]
		delete(alerts, r.alert)
		if !ok || alert.Labels.Severity != r.urgent.String() {
			t.Errorf("%s is %s on the page, and %q as an alert", r.alert, r.urgent, alert.Labels.Severity)
		}
		if above := strconv.FormatFloat(r.above, 'f', -1, 64); !bounds(alert.Expr, above) {
			t.Errorf("%s: the page's threshold is %s, and the alert says %s", r.alert, above, alert.Expr)
		}
		if r.within > 0 && !strings.Contains(alert.Expr, fmt.Sprintf("[%dm]", int(r.within.Minutes()))) {
			t.Errorf("%s: the page looks at %s, and the alert says %s", r.alert, r.within, alert.Expr)
		}
	}
	for name, why := range map[string]string{
		"DenialSpike":      "limits at work, compared with an hour that the page does not have",
		"BudgetNearEnd":    "limits at work; the table of limits has the share of calls that were near",
		"HoldsOverdue":     "about each limit; a key's drawer has its overdue holds",
		"HoldsSettledLate": "about each limit and its gateways",
		"Restarted":        "the charts mark it",
		"RestartLoop":      "the page begins with each start",
		"Leaders":          "about several servers",
		"ReplicaResyncs":   "counted over half an hour",
		"DoorRefusals":     "the page shows each door's refused requests",
		"Down":             "the page says that the server does not answer",
		"NotScraped":       "about Prometheus",
	} {
		if _, ok := alerts[name]; !ok {
			t.Errorf("%s is no alert, or it is on the page (%s)", name, why)
		}
		delete(alerts, name)
	}
	for name := range alerts {
		t.Errorf("the page does not know the alert %s: give it a row in severity.go, or a reason here", name)
	}
	if !bounds(alertsOf(t, "LatencyHigh"), strconv.Itoa(leastCallsPerSec)) {
		t.Errorf("the page's least rate is not the alert's")
	}
}

func alertsOf(t *testing.T, name string) string { return readAlerts(t)[name].Expr }

// bounds reports whether an expression compares with a number; 0 stands for what is either so or not.
func bounds(expr, number string) bool {
	if number == "0" {
		return regexp.MustCompile(`> 0\b|== [01]\b| < cell`).MatchString(expr)
	}
	return regexp.MustCompile(`> ` + regexp.QuoteMeta(number) + `(\s|$)`).MatchString(expr)
}

// TestRunbookHasAlarms checks that each fault's link leads to a section.
func TestRunbookHasAlarms(t *testing.T) {
	s := testSource(nil)
	s.Runbook = docs.Runbook()
	page := get(t, New(s), "/runbook").Body.String()
	for _, r := range severityRows() {
		wantText(t, page, `<h2 id="`+anchorOf(r.runbook())+`">`+r.runbook()+"</h2>\n<p>")
	}
	for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		wantText(t, page, ` id="`+m[1]+`">`)
	}
}

// faulty is a server with every fault that one server can have at a time.
func faulty() *Page {
	s := testSource(nil)
	s.Runbook = docs.Runbook()
	s.Persistence = func() store.Durability {
		return store.Durability{Interval: time.Second, SyncedNs: testNowNs, LastSaveErr: errors.New(hostile)}
	}
	s.Replication = func() replicas.Status {
		st := replicaStatus(replicas.LinkConnected)
		st.LagNs, st.Differing = 11e9, []string{"api", "plan free"}
		return st
	}
	slow := histogram.NewScale()
	durations, sum := slow.NewDurations(), slow.NewDurations()
	s.Latency = func() histogram.Durations {
		durations.Observe(20_000_000, 100)
		next := slow.NewDurations()
		next.Add(durations)
		sum = next
		return sum
	}
	p := New(s)
	for i := range 40 {
		n := uint64(i)
		p.addSample(i, history.Sample{
			Allowed: 1000 * n, Connections: 81, MaxConnections: 100, Values: store.ValueStats{Keys: 1, Bytes: 70, MaxBytes: 100, Evicted: n},
			TableBytes: 70, MaxTableBytes: 100, Evicted: n, MemoryBytes: 101, MaxMemoryBytes: 100,
			Errors: 10 * n, OwnErrors: 10 * n, NewKeysRefused: n, ScriptsEnded: n, LogLinesLost: n, Panics: n, WrongPasswords: n,
			FilesRefused: true, HandoversTimedOut: n,
		})
	}
	return p
}

// TestFaults checks that the most urgent fault is shown and the others are one click away, and that a
// critical one comes first.
func TestFaults(t *testing.T) {
	p := faulty()
	page := body(t, p, "lang=en")
	first := announced(replicationLag, "A replica is more than 10")
	wantText(t, page, `<div id="fault" data-live><div class="alarm warning">`+first, `<div id="faults" data-live><details class="alarm warning"><summary>and 15 more</summary><ul><li data-k="ErrorReplies">`,
		`<a href="/runbook?lang=en#cellserverreplicationlag">Runbook: CellserverReplicationLag</a>`, "It is 11\u00a0s behind.",
		tileOf("errors", warning, "Errors per second", "5<"), tileOf("p99", warning, "P99 latency", ""), tileOf("connections", warning, "Connections", "81"),
		`<meter min="0" max="1" low="0.8" high="1" optimum="0" value="0.810"`, tileOf("keymemory", warning, "Memory of limiters", "70"),
		tileOf("durability", warning, "Durability", ""), "<p>The log has the stack",
		"<code>api, plan free</code>")
	noMarkup(t, page)
	var shown []string
	for _, m := range regexp.MustCompile(`data-k="what-(\w+)"`).FindAllStringSubmatch(page, -1) {
		shown = append(shown, m[1])
	}
	want := []string{
		"ReplicationLag", "ErrorReplies", "KeysEvicted", "ValuesEvicted", "LatencyHigh", "MemorySaturated", "ConnectionsSaturated", "NewKeysRefused", "ScriptsEnded",
		"SnapshotFailing", "LimitsFileRefused", "LimitsDiffer", "HandoverTimedOut", "Panicked", "AuthFailures", "LogLinesLost",
	}
	if !slices.Equal(shown, want) {
		t.Errorf("shown are %q, want %q", shown, want)
	}
	p.addSample(40, history.Sample{ConnectionsRefused: 11})
	page = body(t, p, "")
	wantText(t, page, `<div class="alarm critical">`+announced(connectionsRefused, "Clients cannot connect."), `<a href="/runbook#cellserverconnectionsrefused">`,
		`<li data-k="ReplicationLag"><p class="what" data-k="what-ReplicationLag"><span`)
	lacksText(t, page, announced(connectionsSaturated, ""))
	p.addSample(41, history.Sample{ConnectionsRefused: 3}) // a reset counter
	wantText(t, body(t, p, ""), "<p>14 within the last 5 minutes.")
}

// TestFaultStays checks that a refresh does not change a fault's first line while it lasts.
func TestFaultStays(t *testing.T) {
	p := New(testSource(nil))
	p.addSample(0, history.Sample{})
	first := regexp.MustCompile(`<p class="what".*?</p>`)
	var before string
	for i := range 5 {
		p.addSample(1+i, history.Sample{Refused: uint64(10 * (i + 1))})
		line := first.FindString(body(t, p, ""))
		if line == "" || i > 0 && line != before {
			t.Errorf("%q became %q", before, line)
		}
		before = line
	}
}

// TestStoreFailing checks the share of calls that the store does not decide.
func TestStoreFailing(t *testing.T) {
	s := testSource(nil)
	s.Remote = func() store.Health { return store.Health{Asked: true, Masters: 1, Up: 1} }
	p := New(s)
	p.addSample(0, history.Sample{})
	p.addSample(1, history.Sample{StoreRequests: 1000, ByPolicy: 10})
	wantText(t, body(t, p, ""), noFault)
	p.addSample(2, history.Sample{StoreRequests: 1100, ByPolicy: 20})
	wantText(t, body(t, p, "lang=en"), announced(storeFailing, "More than 1.0\u00a0% of the calls were not decided by the store. Calls it cannot decide get an error."),
		tileOf("store", warning, "Store", "answers"))
}

// TestSlowDisk checks the alert's second condition.
func TestSlowDisk(t *testing.T) {
	s := testSource(nil)
	st := store.Durability{Interval: time.Second, SyncedNs: testNowNs - 15e9}
	s.Persistence = func() store.Durability { return st }
	wantText(t, body(t, New(s), ""), noFault)
	if want := "cellserver_persistence_lag_seconds > 10 + 5 * clamp_min(cellserver_persistence_sync_interval_seconds, 0)"; !strings.Contains(alertsOf(t, "NotDurable"), want) {
		t.Errorf("the alert is no longer %s", want)
	}
	st.SyncedNs--
	wantText(t, body(t, New(s), "lang=en"), announced(notDurable, "The disk does not keep up with the changes."))
	st.Interval = store.NoSync
	wantText(t, body(t, New(s), "lang=en"), announced(notDurable, ""))
}

// TestRunbookPage checks its policy, language and way back, and that there is none without a document.
func TestRunbookPage(t *testing.T) {
	s := testSource(nil)
	lacksText(t, get(t, New(s), "/runbook").Body.String(), `class="runbook"`)
	s.Runbook = "<h1>Operations</h1>"
	p := New(s)
	w := get(t, p, "/runbook?lang=zh")
	wantText(t, w.Body.String(), `<html lang="en">`, `<a href="/?lang=zh" lang="zh-Hans">`+words.Chinese().BackToPage+`</a>`, "<h1>Operations</h1>")
	if w.Header().Get("Content-Security-Policy") != p.policy || strings.Contains(w.Body.String(), "<script") {
		t.Error("the runbook has another policy, or a script")
	}
	wantText(t, get(t, p, "/runbook").Body.String(), `<a href="/" lang="en">Back`)
}

// TestSizesAtFault bounds the updates of a page with a full memory, error replies and refused connections,
// all of which grow.
func TestSizesAtFault(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 3))
	s := busySource(t, r)
	s.Runbook = docs.Runbook()
	p := New(s)
	add := func(at int) {
		n := func() uint64 { return uint64(1000*at + r.IntN(900)) }
		p.addSample(at, history.Sample{
			Allowed: 9 * n(), Limited: n(), Connections: 8100 + r.IntN(800), MaxConnections: 10_000, ConnectionsRefused: n(), TableBytes: 61 << 20, MaxTableBytes: 64 << 20,
			MemoryBytes: 90<<20 + n(), MaxMemoryBytes: 128 << 20, Evicted: n(), Keys: 1_000_000 + r.IntN(1000), Errors: 2 * n(), OwnErrors: n(),
		})
	}
	for at := range history.MaxPoints {
		add(at)
	}
	b, most := newBrowser(p), 0
	b.update(t)
	for at := history.MaxPoints; at < history.MaxPoints+30; at++ {
		add(at)
		most = max(most, received(t, p, "/live.json?"+b.query.Encode()))
		if u := b.update(t); u.Parts["fault"] == "" || u.Parts["faults"] != "" || !strings.Contains(b.parts["faults"], "and 2 more") {
			t.Fatalf("an update changed %q and %q", u.Parts["fault"], u.Parts["faults"])
		}
	}
	if most > 3_000 {
		t.Errorf("an update takes %d bytes, more than 3,000", most)
	}
	t.Logf("an update takes at most %d bytes", most)
}
