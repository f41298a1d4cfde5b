package limitsfile

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/limiter"
)

const (
	maxPatternBytes = 1024 // bounds the time that a pattern takes
	maxPartsBytes   = 4096 // of a key; bounds what aliases of long parts multiply
)

func (p *fileReader) readLimit(key, value *yaml.Node) {
	d := namedlimit.Definition{Name: key.Value, Near: namedlimit.DefaultNear}
	if err := namedlimit.CheckName([]byte(d.Name)); err != nil {
		p.Fail(key, yamlfile.QuoteWord(d.Name)+": "+err.Error())
		return
	}
	p.read.Limits[d.Name] = d
	before := p.Count()
	var c choice
	p.Fields(value, "the limit "+yamlfile.Word(d.Name), func(key, value *yaml.Node) {
		switch key.Value {
		case "windows":
			c.by("windows")
			c.Rules = p.readWindows(value)
		case "overrides":
			d.Overrides = p.readOverrides(value)
		case "shadow":
			d.Shadow = p.readBool(value, "shadow")
		case "near":
			d.Near = p.readNear(value)
		case "unit":
			d.Unit = p.readUnit(value)
		case "max_reservation":
			d.MaxReservation = p.readShare(value)
		default:
			if !p.readChoice(&c, key, value) {
				p.unknown(key, "rules, windows, plan, deny, unlimited, overrides, shadow, near, unit and max_reservation")
			}
		}
	})
	if p.Count() > before {
		return
	}
	p.complete(key, &c, "the limit "+yamlfile.Word(d.Name), "rules, windows, plan, deny: true or unlimited: true")
	d.Policy = c.Policy
	p.read.Limits[d.Name] = d
}

// choice is a policy being read.
type choice struct {
	namedlimit.Policy
	first, second string // fields that determine it
}

func (c *choice) by(field string) {
	if c.first == "" {
		c.first = field
	} else {
		c.second = field
	}
}

// readChoice reads a field that determines a policy.
func (p *fileReader) readChoice(c *choice, key, value *yaml.Node) (known bool) {
	switch key.Value {
	case "rules":
		c.Rules = p.readRules(value)
	case "plan":
		c.Plan, c.Rules = p.planOf(value)
	case "deny":
		c.Constant = limiter.Deny
		p.readTrue(value, "deny")
	case "unlimited":
		c.Constant = limiter.Unlimited
		p.readTrue(value, "unlimited")
	default:
		return false
	}
	c.by(key.Value)
	return true
}

// complete refuses none and several of the fields that determine a policy.
func (p *fileReader) complete(n *yaml.Node, c *choice, what, fields string) {
	switch {
	case c.first == "":
		p.Fail(n, what+" must have "+fields)
	case c.second != "":
		p.Fail(n, what+" has both "+c.first+" and "+c.second+"; keep one of them")
	}
}

type overridesReader struct {
	*fileReader
	lines    map[string]int // of exact keys
	patterns map[string]int // their lines
	read     []namedlimit.Override
	full     bool // no further ones are read
}

func (p *fileReader) readOverrides(n *yaml.Node) []namedlimit.Override {
	r := overridesReader{fileReader: p, lines: map[string]int{}, patterns: map[string]int{}}
	p.Items(n, "overrides", r.readOverride)
	return r.read
}

func (r *overridesReader) readOverride(n *yaml.Node) {
	if r.full {
		return
	}
	before := r.Count()
	var o namedlimit.Override
	var c choice
	byKeys, byPattern := false, false
	r.Fields(n, "an override", func(key, value *yaml.Node) {
		switch key.Value {
		case "keys":
			byKeys = true
			o.Keys = r.readKeys(value)
		case "pattern":
			byPattern = true
			o.Pattern = r.readPattern(value)
		default:
			if !r.readChoice(&c, key, value) {
				r.unknown(key, "keys, pattern, rules, plan, deny and unlimited")
			}
		}
	})
	if r.Count() > before {
		return
	}
	switch {
	case byKeys && byPattern:
		r.Fail(n, "an override has keys or a pattern, not both; write two overrides")
	case !byKeys && !byPattern:
		r.Fail(n, "an override must have keys or a pattern")
	}
	r.complete(n, &c, "an override", "rules, plan, deny: true or unlimited: true")
	o.Policy = c.Policy
	r.read = append(r.read, o)
}

func (r *overridesReader) readKeys(n *yaml.Node) (keys []string) {
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.Fail(n, "keys must not be empty; write at least one, such as [acme]")
	}
	if r.keys+len(n.Content) > namedlimit.MaxOverrides {
		r.full = true
		r.Fail(n, fmt.Sprintf("with these, the file has overrides for more than %d keys, the maximum", namedlimit.MaxOverrides))
		return nil
	}
	r.keys += len(n.Content)
	r.Items(n, "keys", func(item *yaml.Node) {
		key, ok := r.readKey(item)
		if !ok {
			return
		}
		if line, known := r.lines[key]; known {
			r.Fail(item, fmt.Sprintf("the key %s has an override in line %d already", yamlfile.QuoteWord(key), line))
			return
		}
		r.lines[key] = item.Line
		keys = append(keys, key)
	})
	return keys
}

// readKey reads a key, or the list of parts of which by= composes one.
func (r *overridesReader) readKey(n *yaml.Node) (key string, ok bool) {
	if n.Kind != yaml.SequenceNode {
		return r.readText(n, "a key")
	}
	if len(n.Content) == 0 || len(n.Content) > namedlimit.MaxParts {
		r.Fail(n, fmt.Sprintf("a key of parts must have 1 to %d of them, such as [acme, /v1/x], got %d", namedlimit.MaxParts, len(n.Content)))
		return "", false
	}
	before := r.Count()
	parts := make([]string, 0, len(n.Content))
	r.Items(n, "a key's parts", func(item *yaml.Node) {
		part, _ := r.readText(item, "a part of a key")
		parts = append(parts, part)
	})
	bytes := 0
	for _, part := range parts {
		bytes += len(part)
	}
	if bytes > maxPartsBytes {
		r.Fail(n, fmt.Sprintf("the parts of a key must be at most %d bytes long, got %d", maxPartsBytes, bytes))
	}
	if r.Count() > before {
		return "", false
	}
	return string(namedlimit.AppendKey(nil, parts...)), true
}

func (r *overridesReader) readPattern(n *yaml.Node) string {
	pattern, ok := r.readText(n, "pattern")
	line, known := r.patterns[pattern]
	switch {
	case !ok:
		return ""
	case pattern == "":
		r.Fail(n, "pattern must not be empty; '*' matches every key")
	case len(pattern) > maxPatternBytes:
		r.Fail(n, fmt.Sprintf("pattern must be at most %d bytes long, got %d", maxPatternBytes, len(pattern)))
	case known:
		r.Fail(n, fmt.Sprintf("the pattern %s has an override in line %d already", yamlfile.QuoteWord(pattern), line))
	case len(r.patterns) == namedlimit.MaxPatterns:
		r.full = true
		r.Fail(n, fmt.Sprintf("a limit must have at most %d patterns", namedlimit.MaxPatterns))
	}
	r.patterns[pattern] = n.Line
	return pattern
}
