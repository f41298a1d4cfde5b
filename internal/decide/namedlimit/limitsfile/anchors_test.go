package limitsfile_test

import (
	"reflect"
	"strings"
	"testing"
)

// TestAnchorsAndPeriods: a file with anchors under x-..., merge keys, days and weeks reads as the one that
// writes all out.
func TestAnchorsAndPeriods(t *testing.T) {
	t.Parallel()
	short, err := read(t, `
x-daily: &daily {algorithm: fixed_window, period: 1d}
x-rules: &rules
  - {<<: *daily, max_count: 5}
  - &weekly {<<: *daily, period: 1w, max_count: 20}
limits:
  api: &api
    rules: *rules
    near: 0.5
  web:
    <<: *api
    near: 0.9
    overrides:
      - {keys: [acme], rules: [{<<: [*weekly, *daily], name: weekly, max_count: 7}]}
      - {keys: [b], rules: [{algorithm: funnel, max_burst: 1, count: 1, period: 1w1d}]}
---
`)
	if err != nil {
		t.Fatal(err)
	}
	long, err := read(t, `
limits:
  api:
    near: 0.5
    rules: [{algorithm: fixed_window, max_count: 5, period: 86400}, {algorithm: fixed_window, max_count: 20, period: 604800}]
  web:
    near: 0.9
    rules: [{algorithm: fixed_window, max_count: 5, period: 86400}, {algorithm: fixed_window, max_count: 20, period: 604800}]
    overrides:
      - {keys: [acme], rules: [{algorithm: fixed_window, max_count: 7, period: 604800, name: weekly}]}
      - {keys: [b], rules: [{algorithm: funnel, max_burst: 1, count: 1, period: 691200}]}
`)
	if err != nil || !reflect.DeepEqual(short, long) {
		t.Errorf("%v: got %+v, want %+v", err, short, long)
	}
}

// TestMistakesAreCounted: an error has the first twenty, in the order of the file, an anchor's once, and the
// number of the others.
func TestMistakesAreCounted(t *testing.T) {
	t.Parallel()
	_, err := read(t, "x-bad: &bad {algorithm: fixed_window, max_count: x, period: 1}\nlimits:\n"+
		strings.Repeat("  a: {rules: [*bad]}\n", 1)+"  b: {rules: [*bad]}\n"+strings.Repeat("  c d: {deny: true}\n", 1)+
		strings.Repeat("  l: {deny: no}\n", 30))
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	text := err.Error()
	if strings.Count(text, "max_count must be a decimal number") != 1 || strings.Count(text, "; ") < 20 || !strings.HasSuffix(text, "; and 12 more") ||
		strings.ContainsAny(text, "\r\n") || strings.Index(text, ":1: ") > strings.Index(text, ":5: ") {
		t.Error(text)
	}
}
