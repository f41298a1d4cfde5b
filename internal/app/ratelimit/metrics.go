package ratelimit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"cellserver/internal/base/flagvalue"
)

func (t *translation) metrics() {
	o := &t.options
	if t.truth("USE_PROMETHEUS") && !t.truth("DISABLE_STATS") {
		o.MetricsAddr, o.MetricsPath = cmp.Or(t.text("PROMETHEUS_ADDR"), ":9090"), cmp.Or(t.text("PROMETHEUS_PATH"), "/metrics")
		if !flagvalue.IsAddress(o.MetricsAddr) {
			t.fail(mistake("PROMETHEUS_ADDR", "host:port, such as :9090", o.MetricsAddr))
		}
		if !strings.HasPrefix(o.MetricsPath, "/") {
			t.fail(mistake("PROMETHEUS_PATH", "a path, such as /metrics", o.MetricsPath))
		}
	}
	o.ExtraTags = t.tags()
}

// tags returns EXTRA_TAGS as labels. As there, what a name cannot have is replaced by _.
func (t *translation) tags() map[string]string {
	given, tags := t.pairs("EXTRA_TAGS"), map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		label := labelOf(name)
		if label == "" || label == "domain" || label == "descriptor" {
			t.fail(mistake("EXTRA_TAGS", "names of labels other than domain and descriptor, which the series have", name))
			continue
		}
		tags[label] = strings.ToValidUTF8(given[name], "_")
	}
	return tags
}

// labelOf returns a label that Prometheus takes, or "": those that begin with __ are its own.
func labelOf(name string) string {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	label = strings.TrimLeft(label, "_")
	if label != "" && label[0] <= '9' {
		label = "_" + label
	}
	return label
}
