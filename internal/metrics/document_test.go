package metrics

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const documentHead = `# Metrics

What ` + "`/metrics`" + ` of ` + "`--metrics-addr`" + ` shows, in Prometheus's text or, to who asks for it, in OpenMetrics; beside these, Go's own
(` + "`go_*`, `process_*`" + `). Those of a store, of a data directory and of the most requested keys (` + "`--top-keys-metric`" + `) are there if
these are. Durations are native histograms and classic ones at once. [deploy/](../deploy/README.md) has rules and a
dashboard for them, [OPERATIONS.md](OPERATIONS.md) what to do about each alert.

| metric | type | labels | what it is |
| --- | --- | --- | --- |
`

// TestDocument: docs/METRICS.md has all series. With UPDATE_DOCS set, it writes them.
func TestDocument(t *testing.T) {
	all := everything(t).gather(t)
	text := documentHead
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasPrefix(name, "cellserver_") {
			continue
		}
		f := all[name]
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		text += fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
	}
	const path = "../../docs/METRICS.md"
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("%s is not up to date (%v); UPDATE_DOCS=1 renews it", path, err)
	}
}
