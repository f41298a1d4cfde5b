package envoyconfig

import (
	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/yamlfile"
)

// fields visits a mapping's entries but for empty ones, with those of merged mappings.
func (r *reader) fields(n *yaml.Node, what string, visit func(key, value *yaml.Node)) {
	r.Fields(n, what, func(key, value *yaml.Node) {
		if value.Tag != "!!null" {
			visit(key, value)
		}
	})
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
