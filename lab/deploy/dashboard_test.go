package deploytest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"cellserver/internal/test/processtest"
)

// dashboard is the tested part of a Grafana dashboard.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Annotations   struct{ List []struct{ Name, Expr string } }
	Templating    struct {
		List []struct{ Name, Type, Label, Definition, AllValue string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ Type, UID string }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct{ RefID, Expr, LegendFormat string }
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "deploy/grafana/cellserver.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// query is a query of the dashboard with all values of its variables.
type query struct{ where, expr string }

func (d dashboard) queries() []query {
	fill := strings.NewReplacer("$job", "cellserver", "$instance", ".+", "$__rate_interval", "5m")
	var all []query
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, query{p.Title + " " + target.RefID, fill.Replace(target.Expr)})
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, query{"annotation " + a.Name, fill.Replace(a.Expr)})
	}
	return all
}

func TestDashboardIsWhole(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 36 {
		t.Errorf("uid %q, title %q, schema %d", d.UID, d.Title, d.SchemaVersion)
	}
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
		if v.Label == "" || v.Type == "query" && !strings.HasPrefix(v.Definition, "label_values(cellserver_") {
			t.Errorf("variable %s: label %q, definition %q", v.Name, v.Label, v.Definition)
		}
		if v.Name == "job" && v.AllValue != "" {
			t.Errorf("all jobs are %q, which may select other jobs than cellserver: every job has up and process_...", v.AllValue)
		}
	}
	if want := []string{"datasource", "job", "instance"}; !slices.Equal(variables, want) {
		t.Errorf("variables %q, want %q", variables, want)
	}
	units := []string{"none", "short", "ops", "percentunit", "s", "bytes", "Bps", "currencyUSD"} // names of Grafana
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if p.Title == "" || ids[p.ID] || p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q: without a title, a place, or an id of its own", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if !slices.Contains(units, p.FieldConfig.Defaults.Unit) || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("%s: unit %q, description %q, %d queries", p.Title, p.FieldConfig.Defaults.Unit, p.Description, len(p.Targets))
		}
		if p.Datasource.Type != "prometheus" || p.Datasource.UID != "${datasource}" {
			t.Errorf("%s queries %+v, not the selected data source", p.Title, p.Datasource)
		}
		for _, target := range p.Targets {
			selectors := strings.Count(target.Expr, `job=~"$job", instance=~"$instance"`)
			if metrics := len(metricNames(target.Expr)); selectors < metrics {
				t.Errorf("%s: %d metrics, but %d selectors of job and instance: %s", p.Title, metrics, selectors, target.Expr)
			}
		}
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	panels := readDashboard(t).Panels
	for i, a := range panels {
		for _, b := range panels[:i] {
			if p, q := a.GridPos, b.GridPos; p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H {
				t.Errorf("%q and %q overlap", a.Title, b.Title)
			}
		}
	}
}

// unshown has the reason for each series in no panel and no rule.
var unshown = map[string]string{
	"cellserver_persistence_enabled":         "a setting; the row Durability is empty without",
	"cellserver_persistence_loading":         "a server that loads is not ready",
	"cellserver_persistence_loaded_keys":     "of the start only; the log says it",
	"cellserver_persistence_snapshots_total": "the age of the last one says more",
	"cellserver_store_remote":                "a setting; the row of the store is empty without",
	"cellserver_store_pipelines_total":       "for benchmarks; how many are under way is shown",
	"cellserver_store_waiting_bytes":         "goes with the requests that wait",
	"cellserver_swept_segments_total":        "for benchmarks; what expired is shown",

	"cellserver_top_key_calls_per_second_error": "the estimates are shown without it",

	"cellserver_envoy_global_shadow_mode_total": "a switch of tests; the door's requests are shown",

	"ratelimit_service_config_load_success": "for dashboards of envoyproxy/ratelimit; versions over xDS are shown",
	"ratelimit_service_config_load_error":   "for dashboards of envoyproxy/ratelimit; the alerts are on the failed loads",
}

// TestAllSeriesAreShown checks that each series is in a panel or a rule, or in unshown.
func TestAllSeriesAreShown(t *testing.T) {
	var exprs strings.Builder
	for _, q := range readDashboard(t).queries() {
		exprs.WriteString(q.expr + "\n")
	}
	for _, r := range readRules(t) {
		exprs.WriteString(r.Expr + "\n")
	}
	all := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:cellserver|ratelimit_service_config)_\\w+)` \\|").FindAllStringSubmatch(read(t, "docs/METRICS.md"), -1) {
		name := row[1]
		all[name] = true
		shown := regexp.MustCompile(`\b` + name + `(_bucket)?\b`).MatchString(exprs.String())
		if _, left := unshown[name]; shown == left {
			t.Errorf("%s: shown: %t, and left out: %t", name, shown, left)
		}
	}
	for name := range unshown {
		if !all[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// TestDashboardQueriesParse turns queries into rules, as promtool checks nothing else.
func TestDashboardQueriesParse(t *testing.T) {
	processtest.Need(t, "promtool")
	rules := make([]rule, 0, 64)
	for i, q := range readDashboard(t).queries() {
		rules = append(rules, rule{Record: fmt.Sprintf("panel:%d", i), Expr: q.expr})
	}
	b, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	run(t, "", "promtool", "check", "rules", write(t, t.TempDir(), "rules.yml", string(b)))
}

// metricNames finds the metrics in a query: names before a selector.
func metricNames(expr string) (names []string) {
	for _, m := range regexp.MustCompile(`\b((?:cellserver|process|go)_\w+|up)\{`).FindAllStringSubmatch(expr, -1) {
		names = append(names, m[1])
	}
	return names
}
