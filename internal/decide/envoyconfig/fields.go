package envoyconfig

import (
	"strconv"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/yamlfile"
)

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
	r.Fail(n, name+" must be true or false, got "+yamlfile.QuoteWord(n.Value))
	return false
}

// plain reports whether a word is not quoted: quoted ones are texts.
func plain(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
}
