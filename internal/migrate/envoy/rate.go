package envoy

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/yamlfile"
)

func (r *reader) readRate(n *yaml.Node) *rate {
	l := &rate{}
	var unit, count, list *yaml.Node
	r.fields(n, "rate_limit", func(key, value *yaml.Node) {
		switch key.Value {
		case "unit":
			unit, l.unit = key, r.text(value, "unit")
		case "requests_per_unit":
			count, l.count = key, r.number(value)
		case "unlimited":
			l.unlimited = r.yes(value, "unlimited")
		case "name":
			l.name, l.nameAt = r.text(value, "name"), r.of(value)
		case "replaces":
			list = value
		default:
			r.misplaced(key, "rate_limit")
		}
	})
	r.checkUnit(n, l, unit)
	switch {
	case l.unlimited && count != nil:
		r.note(r.of(count), "requests_per_unit has no effect beside unlimited, and is left out; remove one of them")
	case !l.unlimited && count == nil:
		r.note(r.of(n), "requests_per_unit is missing, which is 0 there: it denies all here, too; write it")
	}
	if list != nil {
		r.readReplaces(list, l)
	}
	return l
}

func (r *reader) checkUnit(n *yaml.Node, l *rate, unit *yaml.Node) {
	line := n
	if unit != nil {
		line = unit
	}
	known := knownUnit(l.unit)
	switch {
	case l.unlimited && known != "":
		r.Fail(line, "unlimited has no unit; remove one of them")
	case l.unlimited && l.unit != "":
		r.note(r.of(line), "unit has no effect beside unlimited, and is left out; remove it")
	case !l.unlimited && known == "":
		r.Fail(line, "unit must be second, minute, hour, day, week, month or year, got "+yamlfile.Quote(l.unit))
	}
	l.unit = known
}

// knownUnit returns a unit in lower case, empty for an unknown one.
func knownUnit(unit string) string {
	switch unit := strings.ToUpper(unit); unit {
	case "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR":
		return strings.ToLower(unit)
	}
	return ""
}

func (r *reader) readReplaces(n *yaml.Node, l *rate) {
	if n.Kind != yaml.SequenceNode {
		r.Fail(n, "replaces must be a list")
		return
	}
	for _, item := range n.Content {
		item = yamlfile.Resolve(item)
		before, name := r.Count(), ""
		r.fields(item, "an entry of replaces", func(key, value *yaml.Node) {
			if key.Value != "name" {
				r.misplaced(key, "an entry of replaces")
				return
			}
			name = r.text(value, "name")
		})
		switch {
		case r.Count() > before:
		case name == "":
			r.Fail(item, "an entry of replaces must have a name")
		case name == l.name:
			r.Fail(item, "replaces names its own rate limit, "+yamlfile.Quote(name)+"; remove it")
		default:
			l.replaces = append(l.replaces, replaced{r.of(item), name})
		}
	}
}

// fields visits a mapping's entries but for empty ones, with those of merged mappings.
func (r *reader) fields(n *yaml.Node, what string, visit func(key, value *yaml.Node)) {
	r.merged(n, what, map[string]bool{}, 0, visit)
}

// merged visits entries that are not seen yet. Those of the mapping itself precede those of merged ones.
func (r *reader) merged(n *yaml.Node, what string, seen map[string]bool, depth int,
	visit func(key, value *yaml.Node),
) {
	if r.merges++; depth > maxDepth || depth > 0 && r.merges > maxMerges {
		r.Fail(n, "too many merged mappings, or deeper than "+strconv.Itoa(maxDepth)+" levels; write out some")
		return
	}
	var from *yaml.Node
	r.Fields(n, what, func(key, value *yaml.Node) {
		switch {
		case key.Tag == "!!merge":
			from = value
		case !seen[key.Value]:
			seen[key.Value] = true
			if value.Tag != "!!null" {
				visit(key, value)
			}
		}
	})
	switch {
	case from == nil:
	case from.Kind == yaml.SequenceNode:
		for _, item := range from.Content {
			r.merged(yamlfile.Resolve(item), "a merged mapping", seen, depth+1, visit)
		}
	default:
		r.merged(from, "a merged mapping", seen, depth+1, visit)
	}
}

// text returns a word as it is written: 5 and true are texts, too.
func (r *reader) text(n *yaml.Node, name string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!binary" {
		r.Fail(n, name+" must be a word")
		return ""
	}
	return n.Value
}

// number reads 32 bits, in the notations of YAML 1.1.
func (r *reader) number(n *yaml.Node) uint32 {
	v, err := strconv.ParseUint(strings.ReplaceAll(strings.TrimPrefix(n.Value, "+"), "_", ""), 0, 32)
	if !plain(n) || err != nil {
		r.Fail(n, "requests_per_unit must be a number from 0 to 4294967295, got "+yamlfile.Quote(n.Value))
	}
	return uint32(v)
}

// yes reads a bool of YAML 1.1.
func (r *reader) yes(n *yaml.Node, name string) bool {
	if plain(n) {
		switch n.Value {
		case "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y":
			return true
		case "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N":
			return false
		}
	}
	r.Fail(n, name+" must be true or false, got "+yamlfile.Quote(n.Value))
	return false
}

// plain reports whether a word is not quoted: quoted ones are texts.
func plain(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
}
