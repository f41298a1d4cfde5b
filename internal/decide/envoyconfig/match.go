package envoyconfig

import (
	"strings"
)

// Entry is a part of a request's descriptor.
type Entry interface {
	GetKey() string
	GetValue() string
}

// Match is the configuration of a request's descriptor. The zero Match has none.
type Match struct {
	*Descriptor // with a Rate, or nil
	shared      []shared
	dynamic     bool // metrics have values of the request
}

// shared is a wildcard that replaces the value of an entry.
type shared struct {
	entry   int
	pattern string
}

// matchKind tells how an entry was found.
type matchKind uint8

const (
	byValue matchKind = iota
	byWildcard
	byKey
)

func Find[E Entry](d *Domain, entries []E) (m Match) {
	level := &d.Top
	for i, e := range entries {
		found, kind := level.find(e.GetKey(), e.GetValue())
		if found == nil {
			return Match{}
		}
		if kind == byWildcard && found.Shared {
			m.shared = append(m.shared, shared{i, found.wildcard(e.GetKey())})
		}
		m.dynamic = m.dynamic || found.isDynamic(kind, e.GetKey(), e.GetValue())
		m.Descriptor, level = found, &found.Below
	}
	if m.Descriptor == nil || m.Rate == nil {
		return Match{}
	}
	m.dynamic = m.dynamic || m.Detailed
	return m
}

// find returns the descriptor for a key and a value, or nil.
func (l *Level) find(key, value string) (*Descriptor, matchKind) {
	if len(l.All) == 0 {
		return nil, byKey
	}
	var scratch [128]byte
	composite := append(scratch[:0], key...)
	composite = append(append(composite, '_'), value...)
	if d := l.byComposite[string(composite)]; d != nil {
		return d, byValue
	}
	for _, d := range l.wild {
		if d.pattern.Matches(composite) {
			return d, byWildcard
		}
	}
	return l.byComposite[key], byKey
}

// wildcard returns the descriptor's value; a wildcard in its key may stand for the value.
func (d *Descriptor) wildcard(key string) string {
	return strings.TrimPrefix(d.Composite(), key+"_")
}

// isDynamic reports whether metrics have something else than Path for an entry: its value, or its key where a
// wildcard has matched that, or no value for a descriptor "key_".
func (d *Descriptor) isDynamic(kind matchKind, key, value string) bool {
	switch kind {
	case byKey:
		return d.ValueToMetric
	case byValue:
		return value == ""
	case byWildcard:
	}
	begins := d.Value != "" && d.Key == key || strings.HasPrefix(d.Composite(), key+"_")
	return !begins || d.ValueToMetric && !d.Shared
}

// Value returns the value by which an entry is counted: a wildcard whose values share a count, or its own.
func (m *Match) Value(entry int, value string) string {
	for _, s := range m.shared {
		if s.entry == entry {
			return s.pattern
		}
	}
	return value
}

// IsDynamic reports whether metrics have values of the request, so that there may be any number.
func (m *Match) IsDynamic() bool { return m.dynamic }

// Metric returns the Path of an IsDynamic match, with values of the request.
func Metric[E Entry](d *Domain, m *Match, entries []E) string {
	var path strings.Builder
	level := &d.Top
	for i, e := range entries {
		found, kind := level.find(e.GetKey(), e.GetValue())
		value := m.Value(i, e.GetValue())
		switch {
		case m.Detailed:
		case kind == byWildcard && !found.Shared && !found.ValueToMetric:
			value = found.wildcard(e.GetKey())
		case kind == byKey && !found.ValueToMetric:
			value = ""
		}
		if i > 0 {
			path.WriteByte('.')
		}
		path.WriteString(e.GetKey())
		if value != "" || m.Detailed && len(m.shared) == 0 {
			path.WriteString("_" + value)
		}
		level = &found.Below
	}
	return path.String()
}

// Glob returns the glob pattern in which only stars are special.
func Glob(s string) string { return strings.NewReplacer(`\`, `\\`, "?", `\?`, "[", `\[`).Replace(s) }
