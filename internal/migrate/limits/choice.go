package limits

import (
	"slices"
	"strings"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/wire/glob"
)

type (
	at         = envoyconfig.Line
	level      = envoyconfig.Level
	descriptor = envoyconfig.Descriptor
)

func isExact(d *descriptor) bool { return d.Value != "" && !strings.Contains(d.Value, "*") }

// index has the descriptors of levels by key.
type index map[*level]map[string][]*descriptor

// add adds a level and those below it.
func (x index) add(l *level) {
	byKey := map[string][]*descriptor{}
	for _, d := range l.All {
		byKey[d.Key] = append(byKey[d.Key], d)
		x.add(&d.Below)
	}
	x[l] = byKey
}

// candidates returns a key's descriptors in the order in which they are tried.
func (x index) candidates(l *level, key string) (tried []*descriptor) {
	var wild, general []*descriptor
	for _, d := range x[l][key] {
		switch {
		case isExact(d):
			tried = append(tried, d)
		case d.Value != "":
			wild = append(wild, d)
		default:
			general = append(general, d)
		}
	}
	return append(append(tried, wild...), general...)
}

// confusions notes keys of a level that differ by an underscore and more, which the composite does not tell
// apart.
func (t *translator) confusions(l *level) {
	noted := map[string]bool{}
	for _, d := range l.All {
		for i := 1; i < len(d.Key) && !noted[d.Key]; i++ {
			if d.Key[i] != '_' || t.index[l][d.Key[:i]] == nil {
				continue
			}
			key, value := yamlfile.Quote(d.Key[:i]), d.Key[i+1:]
			t.note(d.At, "key "+key+" with the value "+yamlfile.Quote(value)+" or "+yamlfile.Quote(value+"_...")+
				" is not told apart from key "+yamlfile.Quote(d.Key)+" there, but is here; "+
				"add an override if such values are sent")
		}
		noted[d.Key] = true
	}
	for _, d := range l.All {
		t.confusions(&d.Below)
	}
}

// choice is a combination of values and the descriptor for them, nil for none.
type choice struct {
	values []string // with wildcards
	exact  bool     // all values
	of     *descriptor
}

// choices appends a sequence's choices in the order in which they are tried. The first value that matches is
// final, even if no descriptor of it has the further keys: where others follow, a choice without a descriptor
// keeps such requests from them.
func (t *translator) choices(l *level, keys, values []string, others bool, to []choice) []choice {
	candidates := t.index.candidates(l, keys[0])
	rivals := t.rivalsOf(candidates, keys)
	for i, d := range candidates {
		behind := others || slices.ContainsFunc(rivals, func(r rival) bool { return r.position > i && r.shares(d) })
		values := append(slices.Clip(values), starred(d.Value))
		exact := !slices.ContainsFunc(values, func(value string) bool { return strings.Contains(value, "*") })
		switch {
		case len(keys) > 1:
			to = t.choices(&d.Below, keys[1:], values, behind, to)
		case d.Rate != nil || behind || len(d.Below.All) == 0:
			to = append(to, choice{values, exact, d})
		}
		if t.overrides+len(to) > maxOverrides {
			return to
		}
	}
	general := len(candidates) > 0 && starred(candidates[len(candidates)-1].Value) == "*"
	if others && !general {
		rest := slices.Repeat([]string{"*"}, len(keys))
		to = append(to, choice{values: append(slices.Clip(values), rest...)})
	}
	return to
}

// starred returns a wildcard for a descriptor's value, without repeated stars.
func starred(value string) string {
	if value == "" {
		return "*"
	}
	for strings.Contains(value, "**") {
		value = strings.ReplaceAll(value, "**", "*")
	}
	return value
}

// rival is a candidate that may be chosen for values of earlier ones, and leads to a rate limit.
type rival struct {
	position int
	values   *glob.Pattern
}

func (t *translator) rivalsOf(candidates []*descriptor, keys []string) (rivals []rival) {
	for i, d := range candidates {
		if !isExact(d) && t.leadsToLimit(d, keys[1:]) {
			rivals = append(rivals, rival{i, glob.Compile([]byte(envoyconfig.Glob(starred(d.Value))))})
		}
	}
	return rivals
}

// shares reports whether the rival and a descriptor may have a value in common.
func (r *rival) shares(d *descriptor) bool { return !isExact(d) || r.values.Matches([]byte(d.Value)) }

// leadsToLimit reports whether a rate limit is below a descriptor, at the end of further keys.
func (t *translator) leadsToLimit(d *descriptor, keys []string) bool {
	if len(keys) == 0 {
		return d.Rate != nil
	}
	further := func(d *descriptor) bool { return t.leadsToLimit(d, keys[1:]) }
	return slices.ContainsFunc(t.index[&d.Below][keys[0]], further)
}
