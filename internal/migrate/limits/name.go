package limits

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"cellserver/internal/decide/envoyconfig"
)

// maxNameBytes bounds a limit's name.
const maxNameBytes = 64

const hashDigits = 8

// name returns a limit's name: the domain and the keys joined by dots, with _ for each character that a name
// may not have. A name of more than 64 bytes, or taken by an earlier limit, is cut and ends in - and eight
// digits of a hash of domain and keys.
func (t *translator) name(domain string, keys []string) string {
	full := strings.Map(permitted, domain+"."+strings.Join(keys, "."))
	name, hashed := full, joined(append([]string{domain}, keys...))
	for ; len(name) > maxNameBytes || t.names[name]; hashed += "+" {
		sum := sha256.Sum256([]byte(hashed))
		name = full[:min(len(full), maxNameBytes-hashDigits-1)] + "-" + hex.EncodeToString(sum[:])[:hashDigits]
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

func validName(name string) bool {
	return name != "" && len(name) <= maxNameBytes && strings.Map(permitted, name) == name
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
