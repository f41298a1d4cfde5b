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

// parse reads a body strictly: only fields that a call has and none twice, nothing behind the object, and
// text as it was meant.
func (o *object) parse(body []byte) error {
	s := scanner{in: body}
	return s.body(o)
}

func (s *scanner) body(to *object) error {
	if s.next() != '{' {
		return s.noObject()
	}
	s.values++
	if err := s.object(to, "", 0); err != nil {
		return err
	}
	if s.next(); s.at < len(s.in) {
		return s.invalid()
	}
	return nil
}

// noObject refuses a body that is another value, or none.
func (s *scanner) noObject() error {
	if c := s.next(); c == '[' || c == '"' {
		return errNoObject
	}
	if _, err := s.value(place{index: -1}, 0); err != nil {
		return err
	}
	return errNoObject
}

const noObject = "the body must be a JSON object"

var errNoObject = bad(noObject)

// isField reports whether any call has a field of that name.
func isField(name string) bool {
	switch name {
	case "limit", "key", "quantity", "checks", "each", "algorithm", "max_burst", "capacity", "count", "period", "refill", "max_count",
		"every", "time_zone", "start", "epoch", "at_most", "ttl_ms", "id", "late", "max", "lease_ms", "token",
		"units", "charge":
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

// place is where a value is: a field, or an element of an array. Its text is only made for what needs it.
type place struct {
	of    string
	field []byte
	index int // negative for a field
}

func (p place) String() string {
	if p.index < 0 {
		return p.of + string(p.field)
	}
	return p.of + "[" + strconv.Itoa(p.index) + "]"
}

// value reads the value at a place.
func (s *scanner) value(at place, depth int) (v value, err error) {
	c := s.next()
	switch s.values++; {
	case depth > maxDepth:
		return v, bad("the body is nested too deeply at " + quote(at.String()))
	case s.values > maxValues:
		return v, bad("the body has more than " + strconv.Itoa(maxValues) + " values")
	case c == '{':
		v.kind, v.object = isObject, &object{}
		return v, s.object(v.object, at.String(), depth)
	case c == '[':
		v.kind = isArray
		v.all, err = s.array(at.String(), depth)
		return v, err
	case c == '"':
		v.kind = isText
		v.text, err = s.text()
		return v, err
	}
	from := s.at
	for s.at < len(s.in) && strings.IndexByte("+-.0123456789abcdefghijklmnopqrstuvwxyzE", s.in[s.at]) >= 0 {
		s.at++
	}
	switch v.text = s.in[from:s.at]; string(v.text) {
	case "true":
		v.kind = isTrue
	case "false":
		v.kind = isFalse
	case "null":
		v.kind = isNull
	default:
		if !json.Valid(v.text) {
			return v, s.invalid()
		}
		v.kind = isNumber
	}
	return v, nil
}

func (s *scanner) object(o *object, at string, depth int) error {
	if at != "" {
		at += "."
	}
	*o = object{at: at, fields: o.fields[:0]}
	if s.at++; s.passes('}') {
		return nil
	}
	for {
		if err := s.field(o, depth); err != nil {
			return err
		}
		if s.passes('}') {
			return nil
		}
		if !s.passes(',') {
			return s.invalid()
		}
	}
}

func (s *scanner) field(o *object, depth int) error {
	if s.next() != '"' {
		return s.invalid()
	}
	name, err := s.text()
	switch {
	case err != nil:
		return err
	case !isField(string(name)):
		return unknownField(o.at + string(name))
	case o.has(string(name)):
		return bad("the field " + quote(o.at+string(name)) + " is there twice")
	case !s.passes(':'):
		return s.invalid()
	}
	v, err := s.value(place{o.at, name, -1}, depth+1)
	o.fields = append(o.fields, field{name, v})
	return err
}

func (s *scanner) array(at string, depth int) (all []value, err error) {
	if s.at++; s.passes(']') {
		return nil, nil
	}
	for {
		if len(all) == maxChecks {
			return nil, tooMany(at)
		}
		v, err := s.value(place{of: at, index: len(all)}, depth+1)
		if err != nil {
			return nil, err
		}
		if all = append(all, v); s.passes(']') {
			return all, nil
		}
		if !s.passes(',') {
			return nil, s.invalid()
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

// text reads a string that begins here. Without escapes it is a part of the body.
func (s *scanner) text() (text []byte, err error) {
	from, escaped, ascii := s.at, false, true
	for s.at++; s.at < len(s.in) && s.in[s.at] != '"'; s.at++ {
		switch c := s.in[s.at]; {
		case c == '\\':
			escaped = true
			s.at++
		case c < ' ':
			return nil, s.invalid()
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	if s.at >= len(s.in) {
		return nil, s.invalid()
	}
	s.at++
	quoted := s.in[from:s.at]
	if escaped {
		return s.unescaped(quoted)
	}
	if !ascii && !utf8.Valid(quoted) {
		return nil, errNotUnicode
	}
	return quoted[1 : len(quoted)-1], nil
}

func (s *scanner) unescaped(quoted []byte) ([]byte, error) {
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return nil, s.invalid()
	}
	if !utf8.Valid(quoted) || hasLoneSurrogate(quoted) {
		return nil, errNotUnicode
	}
	return []byte(text), nil
}

var errNotUnicode = bad("the body has text that is not Unicode")

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
