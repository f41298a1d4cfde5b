package metrics

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const tableHead = "| metric | type | labels | what it is |\n| --- | --- | --- | --- |\n"

// TestDocument compares docs/METRICS.md with our series: their names, types and labels, on which dashboards
// and alerts rely, and their help. UPDATE_DOCS=1 rewrites it.
func TestDocument(t *testing.T) {
	const path = "../../../docs/METRICS.md"
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	introduction, _, ok := strings.Cut(string(document), tableHead)
	if !ok {
		t.Fatalf("%s has no table", path)
	}
	all := families(t)
	text := introduction + tableHead
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasPrefix(name, "cellserver_") && !strings.HasPrefix(name, "ratelimit_service_config_") {
			continue
		}
		f := all[name]
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		text += fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
	}
	if text == string(document) {
		return
	}
	if os.Getenv("UPDATE_DOCS") == "" {
		t.Errorf("%s is not up to date; UPDATE_DOCS=1 renews it", path)
	} else if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
