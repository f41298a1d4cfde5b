package limits

import (
	"slices"
	"strings"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/envoyconfig"
)

// untranslated notes what a level's descriptors say about more than a single request.
func (t *translator) untranslated(l *envoyconfig.Level) {
	for _, d := range l.All {
		if d.Detailed {
			t.untranslatedField(d, "detailed_metric", metricsAdvice)
		}
		if d.ValueToMetric {
			t.untranslatedField(d, "value_to_metric", metricsAdvice)
		}
		if d.Quota {
			t.untranslatedField(d, "quota_mode", "there a request passes while one of its quota_mode descriptors does; "+
				"let the caller deny only if all of these checks do")
		}
		if d.Metadata != nil {
			t.untranslatedField(d, "metadata", "replies here carry none; keep it where the reply is read")
		}
		if d.Shared {
			value := yamlfile.Quote(d.Value)
			t.untranslatedField(d, "share_threshold", "here each value like "+value+
				" counts by itself; to count them together, send "+value+" instead of the value")
		}
		if isWildKey(d) {
			t.note(d.At, "the key "+yamlfile.Quote(d.Key)+" with a wildcard is not translated, nor what is below it; "+
				"list the keys it stands for")
		}
		t.untranslated(&d.Below)
	}
}

const metricsAdvice = "metrics here count per limit, not per value; remove it, or count values where they are sent"

func (t *translator) untranslatedField(d *descriptor, name, why string) {
	t.note(d.FieldAt(name), name+" is not translated: "+why)
}

func isWildKey(d *descriptor) bool { return strings.Contains(d.Key, "*") }

// byName adds a level's descriptors by the name of their rate limit.
func byName(l *envoyconfig.Level, to map[string][]*descriptor) {
	for _, d := range l.All {
		if d.Rate != nil && d.Rate.Name != "" {
			to[d.Rate.Name] = append(to[d.Rate.Name], d)
		}
		byName(&d.Below, to)
	}
}

// prune removes descriptors whose key has a wildcard.
func prune(l *envoyconfig.Level) {
	l.All = slices.DeleteFunc(l.All, isWildKey)
	for _, d := range l.All {
		prune(&d.Below)
	}
}
