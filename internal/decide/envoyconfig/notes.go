package envoyconfig

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/nearest"
	"cellserver/internal/base/yamlfile"
)

// misplaced refuses an unknown field, and notes one that belongs elsewhere, which has no effect.
func (r *reader) misplaced(key *yaml.Node, what string) {
	field := yamlfile.QuoteWord(key.Value)
	switch {
	case isOwn(key.Value):
		r.Fail(key, key.Value+" has no effect in "+what+"; move it "+placeOf(key.Value))
	case placeOf(key.Value) != "":
		r.note(r.of(key), key.Value+" has no effect in "+what+"; move it "+placeOf(key.Value))
	case key.Value == "limits":
		r.Fail(key, "unknown field "+field+" in "+what+"; a file of named limits is for --limits-file")
	default:
		text := "unknown field " + field + " in " + what
		if meant := nearest.Word(key.Value, fieldsOf(what)); meant != "" {
			text += "; did you mean " + meant + "?"
		}
		r.Fail(key, text)
	}
}

// isOwn reports whether envoyproxy/ratelimit does not have a field.
func isOwn(field string) bool { return field == "algorithm" || field == "all_or_nothing" }

func fieldsOf(what string) []string {
	switch what {
	case "the file":
		return []string{"domain", "descriptors", "all_or_nothing"}
	case "a descriptor":
		return []string{
			"key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode", "share_threshold", "detailed_metric",
			"value_to_metric", "metadata",
		}
	case "rate_limit":
		return []string{"unit", "requests_per_unit", "unlimited", "name", "replaces", "algorithm"}
	}
	return []string{"name"} // of an entry of replaces
}

// placeOf says where a field belongs, "" for an unknown one.
func placeOf(field string) string {
	switch {
	case field == "key":
		return "into an entry of descriptors"
	case slices.Contains(fieldsOf("a descriptor"), field):
		return "beside the key of its descriptor"
	case slices.Contains(fieldsOf("rate_limit"), field):
		return "into rate_limit"
	case slices.Contains(fieldsOf("the file"), field):
		return "to the top of the file"
	}
	return ""
}

// noteEmpty notes descriptors without a limit and descriptors, but for those that exempt requests from
// another one's limit.
func (r *Rules) noteEmpty() {
	noted := map[Line]bool{} // aliases repeat one
	for _, domain := range r.Domains {
		domain.Top.each(func(l *Level, d *Descriptor) {
			if d.Rate == nil && len(d.Below.All) == 0 && !noted[d.At] && !l.exempts(d) {
				noted[d.At] = true
				r.Notes = append(r.Notes, Note{d.At, "this descriptor limits nothing: it has neither rate_limit nor descriptors; write rate_limit, or remove it"})
			}
		})
	}
}

// exempts reports whether requests find a descriptor in place of another of its level.
func (l *Level) exempts(d *Descriptor) bool {
	if strings.Contains(d.Key, "*") {
		return len(l.All) > 1
	}
	composite := d.Composite()
	for i := range len(composite) {
		if composite[i] == '_' && l.byComposite[composite[:i]] != nil {
			return true
		}
	}
	return slices.ContainsFunc(l.wild, func(other *Descriptor) bool {
		return other != d && (d.isWild() || other.pattern.Matches([]byte(composite)))
	})
}

// noteReplaces notes names in replaces that no rate limit of the domain has.
func (r *Rules) noteReplaces() {
	noted := map[Line]bool{}
	for _, domain := range r.Domains {
		names := map[string]bool{}
		domain.Top.each(func(_ *Level, d *Descriptor) {
			if d.Rate != nil {
				names[d.Rate.Name] = true
			}
		})
		domain.Top.each(func(_ *Level, d *Descriptor) {
			if d.Rate == nil {
				return
			}
			for _, entry := range d.Rate.Replaces {
				if !names[entry.Name] && !noted[entry.At] {
					noted[entry.At] = true
					r.Notes = append(r.Notes, Note{entry.At, "replaces " + yamlfile.Quote(entry.Name) + ", which no rate limit of the domain has as its name; correct or remove it"})
				}
			}
		})
	}
}
