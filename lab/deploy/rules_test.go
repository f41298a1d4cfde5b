package deploytest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
)

// ruleFile is the part of a Prometheus rule file that the tests read.
type ruleFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Record      string            `json:"record,omitempty"`
	Alert       string            `json:"alert,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func readRules(t *testing.T) []rule {
	t.Helper()
	f := parsed[ruleFile](t, []byte(read(t, "deploy/prometheus/cellserver.rules.yml")))
	var rules []rule
	for _, g := range f.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules
}

func TestPromtool(t *testing.T) {
	processtest.Need(t, "promtool")
	dir := filepath.Join(root, "deploy/prometheus")
	for _, args := range [][]string{
		{"check", "config", "prometheus.yml"},
		{"check", "rules", "--lint=all", "--lint-fatal", "cellserver.rules.yml"},
		{"test", "rules", "rules_test.yml"},
	} {
		run(t, dir, "promtool", args...)
	}
}

// TestAlertsAreExplained checks that each alert has a section on what to do, and tests that it fires and
// clears.
func TestAlertsAreExplained(t *testing.T) {
	operations, shown := read(t, "docs/OPERATIONS.md"), read(t, "deploy/prometheus/rules_test.yml")
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)\n\n.+`).FindAllStringSubmatch(operations, -1) {
		sections["docs/OPERATIONS.md#"+strings.ToLower(m[1])] = true
	}
	for _, r := range readRules(t) {
		if r.Alert == "" {
			continue
		}
		if !sections[r.Annotations["runbook_url"]] || !strings.HasSuffix(r.Annotations["runbook_url"], "#"+strings.ToLower(r.Alert)) {
			t.Errorf("%s: no section %q", r.Alert, r.Annotations["runbook_url"])
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
			t.Errorf("%s has no summary, description or severity", r.Alert)
		}
		fires := regexp.MustCompile(`alertname: ` + r.Alert + `\n +eval_time: \w+\n +exp_alerts:\n +- exp_labels`).MatchString(shown)
		clears := regexp.MustCompile(`alertname: ` + r.Alert + `\n +eval_time: \w+\n( +- alertname|\n|$)`).MatchString(shown)
		if !fires || !clears {
			t.Errorf("%s: rules_test.yml tests that it fires: %t, and clears: %t", r.Alert, fires, clears)
		}
	}
}
