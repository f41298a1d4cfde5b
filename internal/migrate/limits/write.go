package limits

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
)

// maxColumns bounds lines that can be split.
const maxColumns = 110

// file returns the output.
func (t *translator) file(files []envoyconfig.File) []byte {
	b := &bytes.Buffer{}
	b.WriteString("# Translated from the configuration of envoyproxy/ratelimit:\n")
	several := false
	for _, f := range files {
		b.WriteString("#   " + commented(f.Path) + "\n")
	}
	for _, l := range t.limits {
		several = several || len(l.keys) > 1
	}
	b.WriteString("# The call for a limit is above it; a quantity may follow the key.\n" +
		"# Other descriptors have no limit: send nothing for them.\n" +
		"# A denied call is not charged; by envoyproxy/ratelimit it is, so units that were too few for it are gone there, and left here.\n")
	if several {
		b.WriteString("# A key of several values has | between them; in these, write %25 for % and %7C for |.\n")
	}
	if len(t.limits) == 0 {
		b.WriteString("limits: {}\n")
		return b.Bytes()
	}
	b.WriteString("limits:")
	for _, l := range t.limits {
		b.WriteString("\n")
		l.write(b)
	}
	return b.Bytes()
}

func (l *limit) write(b *bytes.Buffer) {
	l.comment(b)
	b.WriteString("  " + scalar(l.name) + ":\n")
	if list, found := strings.CutPrefix(string(l.base), "rules: ["); found {
		b.WriteString("    rules:\n      - " + strings.TrimSuffix(list, "]") + "\n")
	} else {
		b.WriteString("    " + string(l.base) + "\n")
	}
	if len(l.overrides) > 0 {
		b.WriteString("    overrides:\n")
	}
	for _, o := range l.overrides {
		o.write(b)
	}
	if l.shadow {
		b.WriteString("    shadow: true\n")
	}
}

// comment writes a limit's call.
func (l *limit) comment(b *bytes.Buffer) {
	keys, sent := make([]string, len(l.keys)), make([]string, len(l.keys))
	for i, key := range l.keys {
		keys[i], sent[i] = commented(key), "<"+commented(key)+">"
	}
	key := strings.Join(sent, separator)
	if len(sent) > 1 {
		key = `"` + key + `"`
	}
	of := "  # domain " + commented(l.domain) + ", descriptor " + strings.Join(keys, ", ") + ":"
	call, between := "CL.CHECK "+l.name+" "+key, " "
	if len(of)+len(call) >= maxColumns {
		between = "\n  #   "
	}
	b.WriteString(of + between + call + "\n")
}

func (o *override) write(b *bytes.Buffer) {
	selector := "pattern: " + strconv.Quote(o.pattern)
	words := make([]string, len(o.keys))
	for i, key := range o.keys {
		words[i] = scalar(key)
	}
	if len(words) > 0 {
		selector = "keys: [" + strings.Join(words, ", ") + "]"
	}
	line := "      - {" + selector + ", " + string(o.do) + "}"
	switch {
	case len(line) <= maxColumns:
		b.WriteString(line + "\n")
	case len(words) > 1:
		b.WriteString("      - keys:\n")
		for _, word := range words {
			b.WriteString("          - " + word + "\n")
		}
		b.WriteString("        " + string(o.do) + "\n")
	default:
		b.WriteString("      - " + selector + "\n        " + string(o.do) + "\n")
	}
}

// scalar returns a text for YAML, quoted where it may be read as something else. YAML's escapes include Go's.
func scalar(s string) string {
	switch strings.ToLower(s) {
	case "", "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return strconv.Quote(s)
	}
	for i, c := range s {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789.-/", c)) {
			return strconv.Quote(s)
		}
	}
	return s
}

// commented returns a text for a comment.
func commented(s string) string {
	if s == "" || strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) || c == '"' }) {
		return strconv.Quote(s)
	}
	return s
}

const hashDigits = 8

// name returns a limit's name: the domain and the keys joined by dots, with _ for each character that a name
// may not have. A name of more than 64 bytes, or taken by an earlier limit, is cut and ends in - and eight
// digits of a hash of domain and keys.
func (t *translator) name(domain string, keys []string) string {
	full := strings.Map(permitted, domain+"."+strings.Join(keys, "."))
	name, hashed := full, joined(append([]string{domain}, keys...))
	for ; len(name) > namedlimit.MaxNameBytes || t.names[name]; hashed += "+" {
		sum := sha256.Sum256([]byte(hashed))
		name = full[:min(len(full), namedlimit.MaxNameBytes-hashDigits-1)] + "-" + hex.EncodeToString(sum[:])[:hashDigits]
	}
	t.names[name] = true
	return name
}

// permitted returns a name's character, or _ for one that it may not have.
func permitted(c rune) rune {
	if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-' {
		return c
	}
	return '_'
}

// separator joins the values of a key.
const separator = "|"

// key returns the key for exact values. In a single value nothing is escaped.
func (l *limit) key(values []string) string {
	escaped := make([]string, len(values))
	for i, value := range values {
		escaped[i] = l.escape(value)
	}
	return strings.Join(escaped, separator)
}

// escape keeps the separator unambiguous.
func (l *limit) escape(value string) string {
	if len(l.keys) == 1 {
		return value
	}
	return strings.ReplaceAll(strings.ReplaceAll(value, "%", "%25"), separator, "%7C")
}

// pattern returns the glob pattern for keys. It has all of the separators, so that a star matches none.
func (l *limit) pattern(values []string) string { return envoyconfig.Glob(l.key(values)) }

// all returns the pattern for all keys.
func (l *limit) all() string {
	return strings.TrimSuffix(strings.Repeat("*"+separator, len(l.keys)), separator)
}
