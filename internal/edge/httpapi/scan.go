package httpapi

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of any body. What exceeds them is refused where it begins, and the rest is not read.
const (
	maxDepth  = 4
	maxValues = 1024 // in all; an array has at most maxChecks, and an object each field once
)

// scanner reads a JSON text from its front.
type scanner struct {
	in     []byte
	at     int
	values int // read so far
}

// parse reads strictly: only fields that a call has and none twice, nothing behind the object, and text as it
// was meant.
func parse(body []byte) (*object, error) {
	s := scanner{in: body}
	return s.body()
}

func (s *scanner) body() (*object, error) {
	if c := s.next(); c == '[' || c == '"' {
		return nil, errNoObject
	}
	v, err := s.value("", 0)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*object)
	if !ok {
		return nil, errNoObject
	}
	if s.next(); s.at < len(s.in) {
		return nil, s.invalid()
	}
	return o, nil
}

const noObject = "the body must be a JSON object"

var errNoObject = bad(noObject)

// isField reports whether any call has a field of that name.
func isField(name string) bool {
	switch name {
	case "limit", "key", "quantity", "checks", "each", "algorithm", "max_burst", "capacity", "count", "period", "refill", "max_count",
		"every", "time_zone", "start", "epoch", "ttl_ms", "id", "late", "max", "lease_ms", "token":
		return true
	}
	return false
}

// next skips white space and returns the byte behind it, or 0.
func (s *scanner) next() byte {
	for ; s.at < len(s.in); s.at++ {
		switch c := s.in[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// passes skips a byte behind white space if it is there.
func (s *scanner) passes(c byte) bool {
	if s.next() != c {
		return false
	}
	s.at++
	return true
}

// invalid returns the fault in encoding/json's words. It reads from the front, and no further than the fault.
func (s *scanner) invalid() error {
	var valid json.RawMessage
	if err := json.Unmarshal(s.in, &valid); err != nil {
		return bad(noObject + ": " + err.Error())
	}
	return errNoObject
}

// value reads the value of what at names.
func (s *scanner) value(at string, depth int) (v any, err error) {
	c := s.next()
	switch s.values++; {
	case depth > maxDepth:
		return nil, bad("the body is nested too deeply at " + quote(at))
	case s.values > maxValues:
		return nil, bad("the body has more than " + strconv.Itoa(maxValues) + " values")
	case c == '{':
		return s.object(at, depth)
	case c == '[':
		return s.array(at, depth)
	case c == '"':
		return s.text()
	}
	from := s.at
	for s.at < len(s.in) && strings.IndexByte("+-.0123456789abcdefghijklmnopqrstuvwxyzE", s.in[s.at]) >= 0 {
		s.at++
	}
	switch word := s.in[from:s.at]; string(word) {
	case "true", "false":
		return word[0] == 't', nil
	case "null":
		return nil, nil
	default:
		if !json.Valid(word) {
			return nil, s.invalid()
		}
		return json.Number(word), nil
	}
}

func (s *scanner) object(at string, depth int) (*object, error) {
	o := &object{at: at, fields: map[string]any{}}
	if at != "" {
		o.at += "."
	}
	return o, s.elements('}', func() error {
		if s.next() != '"' {
			return s.invalid()
		}
		name, err := s.text()
		switch {
		case err != nil:
			return err
		case !isField(name):
			return unknownField(o.at + name)
		case o.has(name):
			return bad("the field " + quote(o.at+name) + " is there twice")
		case !s.passes(':'):
			return s.invalid()
		}
		o.fields[name], err = s.value(o.at+name, depth+1)
		return err
	})
}

func (s *scanner) array(at string, depth int) (all []any, err error) {
	all = []any{}
	err = s.elements(']', func() error {
		if len(all) == maxChecks {
			return tooMany(at)
		}
		v, err := s.value(at+"["+strconv.Itoa(len(all))+"]", depth+1)
		all = append(all, v)
		return err
	})
	return all, err
}

// elements reads those of an object or array that begins here, with commas between them.
func (s *scanner) elements(end byte, read func() error) error {
	s.at++
	if s.passes(end) {
		return nil
	}
	for {
		if err := read(); err != nil {
			return err
		}
		if s.passes(end) {
			return nil
		}
		if !s.passes(',') {
			return s.invalid()
		}
	}
}

// tooMany refuses the array of what at names. Only checks is one.
func tooMany(at string) error {
	if at == "checks" {
		return errChecks
	}
	return bad(at + " has more than " + strconv.Itoa(maxChecks) + " elements")
}

var errChecks = bad("checks must be an array of 1 to " + strconv.Itoa(maxChecks) + " objects")

// text reads a string that begins here.
func (s *scanner) text() (text string, err error) {
	from, escaped := s.at, false
	for s.at++; s.at < len(s.in) && s.in[s.at] != '"'; s.at++ {
		switch c := s.in[s.at]; {
		case c == '\\':
			escaped = true
			s.at++
		case c < ' ':
			return "", s.invalid()
		}
	}
	if s.at >= len(s.in) {
		return "", s.invalid()
	}
	s.at++
	quoted := s.in[from:s.at]
	if escaped && json.Unmarshal(quoted, &text) != nil {
		return "", s.invalid()
	}
	if !utf8.Valid(quoted) || escaped && hasLoneSurrogate(quoted) {
		return "", bad("the body has text that is not Unicode")
	}
	if !escaped {
		text = string(quoted[1 : len(quoted)-1])
	}
	return text, nil
}

// hasLoneSurrogate reports half of a pair of \u escapes in valid JSON, which would be read as another text.
func hasLoneSurrogate(body []byte) bool {
	unit := func(at int) rune {
		if at+6 > len(body) || body[at] != '\\' || body[at+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(string(body[at+2:at+6]), 16, 16)
		return rune(n)
	}
	for at := 0; at < len(body); at++ {
		if body[at] != '\\' {
			continue
		}
		if r := unit(at); utf16.IsSurrogate(r) {
			if utf16.DecodeRune(r, unit(at+6)) == utf8.RuneError {
				return true
			}
			at += 6
		}
		at++
	}
	return false
}
