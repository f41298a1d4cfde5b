package limits

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
)

// Translate returns the limits file for configurations of envoyproxy/ratelimit, and notes in the order of
// files and lines. The error has one line and names all invalid lines, as FILE:LINE.
//
// Each sequence of descriptor keys in a domain becomes a limit; a request sends the descriptor's values as
// the key, joined by |. Values choose overrides as they choose descriptors there: an exact value first, then
// wildcards in the file's order, then the key alone, on each level, without going back. What has no
// equivalent, or only in part, becomes a Note with what to do.
//
// The model is src/config/config_impl.go and src/limiter/cache_key.go of envoyproxy/ratelimit at f2fb157. It
// compares "key_value" as a whole, so that its key a with the value b_c is also its key a_b with the value c;
// here keys are separate, and a Note names keys of a level that it may confuse.
func Translate(files []envoyconfig.File, options envoyconfig.Options) (out []byte, notes []envoyconfig.Note, err error) {
	if len(files) == 0 {
		return nil, nil, errors.New("no configuration to translate")
	}
	config, err := envoyconfig.Parse(files, options)
	if err != nil {
		return nil, nil, err
	}
	t := &translator{names: map[string]bool{}, index: index{}, notes: config.Notes}
	for _, d := range config.Domains {
		if len(t.problems) == 0 {
			t.translate(d)
		}
	}
	t.checkBounds()
	if len(t.problems) > 0 {
		return nil, nil, t.problems
	}
	return t.file(files), t.sorted(), nil
}

// maxOverrides bounds the overrides of all limits, which aliases in a file may exceed with few bytes.
const maxOverrides = 1_000_000

type translator struct {
	limits   []*limit
	names    map[string]bool // of limits
	index    index
	notes    []envoyconfig.Note
	problems yamlfile.Problems

	overrides int // so far
}

func (t *translator) note(a at, text string) {
	t.notes = append(t.notes, envoyconfig.Note{At: a, Text: text})
}

func (t *translator) fail(a at, problem string) {
	t.problems = append(t.problems, a.String()+": "+problem)
}

// sorted returns the notes in order, once each: aliases may repeat one.
func (t *translator) sorted() []envoyconfig.Note {
	slices.SortStableFunc(t.notes, func(a, b envoyconfig.Note) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line))
	})
	seen := map[envoyconfig.Note]bool{}
	return slices.DeleteFunc(t.notes, func(n envoyconfig.Note) bool {
		again := seen[n]
		seen[n] = true
		return again
	})
}

// maxPatternBytes bounds a pattern of a file of limits.
const maxPatternBytes = 1024

// checkBounds refuses what a file of limits has no room for. Its overrides of exact keys are at most as many
// as descriptors.
func (t *translator) checkBounds() {
	for i, l := range t.limits {
		if i == namedlimit.MaxNames {
			t.fail(l.at, fmt.Sprintf("with this descriptor there are more than %d limits, the most of a file; translate fewer domains at once", i))
			return
		}
		patterns := 0
		for _, o := range l.overrides {
			if len(o.keys) == 0 {
				patterns++
			}
			if len(o.pattern) > maxPatternBytes {
				t.fail(l.at, fmt.Sprintf("a value below this descriptor needs a pattern of %d bytes, and a limit has at most %d; shorten it", len(o.pattern), maxPatternBytes))
			}
		}
		if patterns > namedlimit.MaxPatterns {
			t.fail(l.at, fmt.Sprintf("values with * below this descriptor need %d patterns, and a limit has at most %d; list fewer", patterns, namedlimit.MaxPatterns))
		}
	}
}

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
