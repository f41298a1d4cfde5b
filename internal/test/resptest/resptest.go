// Package resptest writes commands and reads replies in strict RESP. It is safe for concurrent use.
package resptest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// Reply is one value of RESP.
type Reply struct {
	Kind     byte // the first byte
	Text     string
	Number   int64
	Elements []Reply // a map's keys and values alternate
}

// Parse reads the first reply of in, strictly: shortest lengths, CRLF line ends, no control bytes in a line.
func Parse(in string) (r Reply, rest string, err error) {
	line, rest, ok := strings.Cut(in, "\r\n")
	if !ok || line == "" {
		return r, in, fmt.Errorf("malformed reply: no line in %.100q", in)
	}
	r.Kind, r.Text = line[0], line[1:]
	if !utf8.ValidString(line) || strings.ContainsFunc(line, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }) {
		return r, in, fmt.Errorf("malformed reply: control bytes in %q", line)
	}
	switch r.Kind {
	case '+', '-':
		return r, rest, nil
	case '#', ',', '(':
		if r.Text == "" || strings.Trim(r.Text, "-+.0123456789einfat") != "" {
			return r, in, fmt.Errorf("malformed reply: %q", line)
		}
		return r, rest, nil
	case '_':
		if r.Text != "" {
			return r, in, fmt.Errorf("malformed reply: %q", line)
		}
		return r, rest, nil
	}
	if r.Number, err = strconv.ParseInt(r.Text, 10, 64); err != nil || strconv.FormatInt(r.Number, 10) != r.Text {
		return r, in, fmt.Errorf("malformed reply: %q", line)
	}
	switch r.Kind {
	case ':':
		return r, rest, nil
	case '$', '=':
		return parseBulk(r, rest)
	case '*', '~', '>':
		return parseElements(r, rest, r.Number)
	case '%':
		return parseElements(r, rest, 2*r.Number)
	}
	return r, in, fmt.Errorf("malformed reply: of no type: %q", line)
}

func parseBulk(r Reply, rest string) (Reply, string, error) {
	n := int(r.Number)
	if n == -1 && r.Kind == '$' {
		r.Kind = '_'
		return r, rest, nil
	}
	if n < 0 || len(rest) < n+2 || rest[n:n+2] != "\r\n" || r.Kind == '=' && !strings.HasPrefix(rest[:n], "txt:") {
		return r, rest, fmt.Errorf("malformed reply: bulk of %d in %.100q", n, rest)
	}
	r.Text = rest[:n]
	return r, rest[n+2:], nil
}

func parseElements(r Reply, rest string, n int64) (_ Reply, _ string, err error) {
	if n == -1 && r.Kind == '*' {
		r.Kind = '_'
		return r, rest, nil
	}
	if n < 0 {
		return r, rest, fmt.Errorf("malformed reply: %d elements", n)
	}
	for range n {
		var e Reply
		if e, rest, err = Parse(rest); err != nil {
			return r, rest, err
		}
		r.Elements = append(r.Elements, e)
	}
	return r, rest, nil
}

// ParseAll reads complete replies.
func ParseAll(t testing.TB, in string) []Reply {
	t.Helper()
	var all []Reply
	for in != "" {
		r, rest, err := Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		all, in = append(all, r), rest
	}
	return all
}

// Field returns the value of a map's key; in RESP2 a map is an array.
func (r Reply) Field(key string) Reply {
	for i := 0; i+1 < len(r.Elements); i += 2 {
		if r.Elements[i].Text == key {
			return r.Elements[i+1]
		}
	}
	return Reply{}
}

// Append appends a command.
func Append(b []byte, args ...string) []byte {
	b = append(strconv.AppendInt(append(b, '*'), int64(len(args)), 10), '\r', '\n')
	for _, arg := range args {
		b = append(strconv.AppendInt(append(b, '$'), int64(len(arg)), 10), '\r', '\n')
		b = append(append(b, arg...), '\r', '\n')
	}
	return b
}

func Encode(args ...string) string { return string(Append(nil, args...)) }

// Ints encodes an array of integers, CL.THROTTLE's reply.
func Ints(numbers ...int64) string {
	var b strings.Builder
	b.WriteString("*" + strconv.Itoa(len(numbers)) + "\r\n")
	for _, n := range numbers {
		b.WriteString(":" + strconv.FormatInt(n, 10) + "\r\n")
	}
	return b.String()
}
