package limitsfile_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/zones"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
)

const root = "../../../.."

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	s, err := c.Compile(filepath.Join(root, "deploy", "limits.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate validates YAML as an editor does.
func validate(s *jsonschema.Schema, text string) error {
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return err
	}
	return s.Validate(plain(v))
}

// plain turns dates and names of fields into the text that they are in JSON.
func plain(v any) any {
	switch v := v.(type) {
	case map[any]any:
		named := map[string]any{}
		for name, value := range v {
			named[fmt.Sprint(name)] = plain(value)
		}
		return named
	case map[string]any:
		for name, value := range v {
			v[name] = plain(value)
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case time.Time:
		return v.Format(time.DateOnly)
	}
	return v
}

// read reads a file of limits as the server does.
func read(t *testing.T, text string) (namedlimit.Definitions, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limits.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return limitsfile.ReadFile(path, funnel.Burst, calendar.NewSet(&calendar.Wall{}, zones.Load))
}

// TestExamplesOfDocuments: files of limits in the documents and in deploy/ are right.
func TestExamplesOfDocuments(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	for name, text := range examples(t) {
		if err := validate(schema, text); err != nil {
			t.Errorf("%s: %v, of\n%s", name, err, text)
		}
		if _, err := read(t, text); err != nil {
			t.Errorf("%s: %v, of\n%s", name, err, text)
		}
	}
}

// examples returns files of limits by the place where they are.
func examples(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	visit := func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch filepath.Ext(path) {
		case ".md":
			for i, block := range blocks(content(t, path)) {
				if isLimits(block) {
					found[fmt.Sprintf("%s, block %d of YAML", path, i+1)] = block
				}
			}
		case ".yaml", ".yml":
			if text := content(t, path); isLimits(text) {
				found[path] = text
			}
		}
		return nil
	}
	documents, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(documents, filepath.Join(root, "docs"), filepath.Join(root, "deploy")) {
		if err := filepath.WalkDir(path, visit); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// blocks returns the fenced blocks of YAML, which may be indented as part of a list.
func blocks(text string) (all []string) {
	var block strings.Builder
	indent, within := "", false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case !within && (trimmed == "```yaml" || trimmed == "```yml"):
			within = true
			indent, _, _ = strings.Cut(line, "`")
			block.Reset()
		case within && trimmed == "```":
			within = false
			all = append(all, block.String())
		case within:
			block.WriteString(strings.TrimPrefix(line, indent))
		}
	}
	return all
}

// isLimits reports whether YAML is a whole file of limits, not a chart's values with some.
func isLimits(text string) bool {
	var fields map[string]yaml.Node
	if yaml.Unmarshal([]byte(text), &fields) != nil {
		return false
	}
	maps.DeleteFunc(fields, func(name string, _ yaml.Node) bool { return strings.HasPrefix(name, "x-") })
	_, limits := fields["limits"]
	_, plans := fields["plans"]
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			isFirst := strings.HasPrefix(line, "limits:") || strings.HasPrefix(line, "plans:") || strings.HasPrefix(line, "x-")
			return isFirst && limits && (len(fields) == 1 || plans && len(fields) == 2)
		}
	}
	return false
}

// TestSchema: what the schema allows is read. It cannot see all errors, which the tests of the reader try.
func TestSchema(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	const quota = "{algorithm: quota, max_count: 1, every: "
	rule := func(text string) string { return "limits: {a: {rules: [" + text + "]}}\n" }
	override := func(text string) string { return "limits: {a: {deny: true, overrides: [" + text + "]}}\n" }
	for _, right := range []string{
		"limits: {}\n", "limits: {}\nplans: {}\n", "limits: {1: {unlimited: true, near: 1}}\n",
		"limits: {a: {windows: [{max_burst: 0, count: 1, period: 1h30m}, {capacity: 1, count: 1, period: 60}], shadow: false, near: 0.5, overrides: []}}\n",
		"plans: {p: {rules: [{algorithm: sliding_window, max_count: 4096, period: 1m}]}}\nlimits: {a: {plan: p, overrides: [{keys: [b], plan: p}]}}\n",
		rule("{algorithm: funnel, max_burst: 0, count: 1, period: '60', name: x}, {algorithm: funnel, capacity: 1, count: 1, period: 60s}"),
		rule("{algorithm: token_bucket, capacity: 1, refill: 1, period: 1m}, {algorithm: fixed_window, max_count: 1, period: 1}"),
		rule("{algorithm: approximate_window, max_count: 1000000, period: 24h, name: 1}"),
		rule("{algorithm: fixed_window, max_count: 1, period: 1d}, {algorithm: fixed_window, max_count: 1, period: 2w3d12h}"),
		rule("{algorithm: funnel, capacity: 5, count: 5, period: 1m, block: 15m}, {algorithm: fixed_window, max_count: 9, period: 1, block: 1, block_on: each, name: b}"),
		rule(quota + "day, block: 1w, block_on: first}, {algorithm: sliding_window, max_count: 1, period: 1m, block: '60'}, {algorithm: token_bucket, capacity: 1, refill: 1, period: 1, block: 1d}"),
		"x-rule: &r {algorithm: fixed_window, max_count: 1, period: 1w}\nlimits: {a: {rules: [*r]}, b: {rules: [{<<: *r, max_count: 2}]}}\n",
		rule(quota + "second}, " + quota + "day, start: 06:00}, " + quota + "week, start: 7}, " + quota + "month, start: '31'}"),
		rule(quota + "year, start: 02-29, time_zone: Europe/Berlin}, " + quota + "hour, epoch: true}, " + quota + "minute, time_zone: UTC, epoch: false}"),
		"limits: {a: {rules: [" + quota + "month}], unit: usd, max_reservation: 0.5}, b: {deny: true, max_reservation: 1}}\n",
		override("{keys: [a, 1, 1.5, true, '', 2024-01-01], deny: true}, {pattern: 42, unlimited: true}"),
	} {
		if err := validate(schema, right); err != nil {
			t.Errorf("%s: %v", right, err)
		}
		d, err := read(t, right)
		if err != nil {
			t.Errorf("%s: %v", right, err)
		}
		if written := string(limitsfile.Text(d, funnel.Burst)); validate(schema, written) != nil {
			t.Errorf("the schema refuses what is written: %s", written)
		}
	}
	for _, wrong := range []string{
		"{}\n", "limits:\n", "limits: []\n", "limit: {}\n", "limits: {}\nplans: {a: {}}\n", "limits: {}\nplans: {a: {rules: []}}\n", "limits: {}\nother: {}\n",
		"limits: {a b: {deny: true}}\n", "limits: {a: {}}\n", "limits: {a: {deny: false}}\n", "limits: {a: {deny: true, unlimited: true}}\n",
		"limits: {a: {deny: true, near: 0}}\n", "limits: {a: {deny: true, near: 1.5}}\n", "limits: {a: {deny: true, shadow: maybe}}\n", "limits: {a: {deny: true, window: []}}\n",
		"limits: {a: {deny: true, unit: eur}}\n", "limits: {a: {deny: true, unit: USD}}\n", "limits: {a: {deny: true, unit: ''}}\n", override("{keys: [a], deny: true, unit: usd}"),
		"limits: {a: {deny: true, max_reservation: 0}}\n", "limits: {a: {deny: true, max_reservation: 1.5}}\n", "limits: {a: {deny: true, max_reservation: half}}\n",
		"limits: {a: {windows: [{max_burst: 1, capacity: 1, count: 1, period: 1}]}}\n", "limits: {a: {windows: [{count: 1, period: 1}]}}\n",
		"limits: {a: {windows: [{algorithm: funnel, max_burst: 1, count: 1, period: 1}]}}\n", "limits: {a: {windows: []}}\n", "limits: {a: {rules: 1}}\n",
		rule("1"), rule("{max_count: 1, period: 1}"), rule("{algorithm: gcra, max_count: 1, period: 1}"), rule("{algorithm: funnel, max_burst: -1, count: 1, period: 1}"),
		rule("{algorithm: funnel, max_burst: 1, count: 1, period: a day}"), rule("{algorithm: funnel, max_burst: 1, count: 1, period: ''}"), rule("{algorithm: funnel, max_burst: 1, count: 1.5, period: 1}"),
		rule("{algorithm: funnel, max_burst: 1, count: 1, period: 0}"), rule("{algorithm: funnel, max_burst: 1, refill: 1, period: 1}"),
		rule("{algorithm: token_bucket, capacity: 1, count: 1, period: 1}"), rule("{algorithm: token_bucket, max_burst: 1, refill: 1, period: 1}"),
		rule("{algorithm: sliding_window, max_count: 4097, period: 1}"), rule("{algorithm: sliding_window, max_count: 1, period: 1, every: day}"),
		rule("{algorithm: fixed_window, max_count: 0, period: 1}"), rule("{algorithm: fixed_window, max_count: 1, period: 1, name: a b}"),
		rule("{algorithm: quota, max_count: 1}"), rule(quota + "fortnight}"), rule(quota + "day, period: 1}"), rule(quota + "day, start: 24:00}"),
		rule(quota + "week, start: 8}"), rule(quota + "month, start: 32}"), rule(quota + "year, start: 13-01}"), rule(quota + "hour, start: 1}"),
		rule(quota + "day, block: 0}"), rule(quota + "day, block_on: each}"), rule(quota + "day, block: 1h, block_on: all}"), rule(quota + "day, block: soon}"),
		"limits: {a: {windows: [{max_burst: 1, count: 1, period: 1, block: 1}]}}\n", "limits: {a: {deny: true, block: 1}}\n",
		rule(quota + "hour, time_zone: Europe/Berlin}"), rule(quota + "day, epoch: true, start: '06:00'}"), rule(quota + "day, epoch: 1}"),
		override("{deny: true}"), override("{keys: [a], pattern: b, deny: true}"), override("{keys: [], deny: true}"), override("{keys: a, deny: true}"),
		override("{keys: [a, a], deny: true}"), override("{keys: [~], deny: true}"), override("{keys: [a]}"), override("{keys: [a], deny: true, plan: p}"),
		override("{pattern: '', deny: true}"), override("{pattern: " + strings.Repeat("a", 1025) + ", deny: true}"), override("{keys: [a], windows: []}"),
	} {
		if err := validate(schema, wrong); err == nil {
			t.Errorf("the schema allows %s", wrong)
		}
		if _, err := read(t, wrong); err == nil {
			t.Errorf("the server reads %s", wrong)
		}
	}
}
