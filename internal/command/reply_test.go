package command

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// reply is one value of RESP.
type reply struct {
	kind     byte // its first byte
	text     string
	number   int64
	elements []reply // a map's keys and values in turn
}

// parseReply reads the reply at the front of in, strictly: every length in its shortest form, every line's end
// CRLF, and no control byte in a line.
func parseReply(in string) (r reply, rest string, err error) {
	line, rest, ok := strings.Cut(in, "\r\n")
	if !ok || line == "" {
		return r, in, fmt.Errorf("malformed reply: no line in %.100q", in)
	}
	r.kind, r.text = line[0], line[1:]
	if !utf8.ValidString(line) || strings.ContainsFunc(line, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }) {
		return r, in, fmt.Errorf("malformed reply: control bytes in %q", line)
	}
	switch r.kind {
	case '+', '-':
		return r, rest, nil
	case '#', ',', '(':
		if r.text == "" || strings.Trim(r.text, "-+.0123456789einfat") != "" {
			return r, in, fmt.Errorf("malformed reply: %q", line)
		}
		return r, rest, nil
	case '_':
		if r.text != "" {
			return r, in, fmt.Errorf("malformed reply: %q", line)
		}
		return r, rest, nil
	}
	if r.number, err = strconv.ParseInt(r.text, 10, 64); err != nil || strconv.FormatInt(r.number, 10) != r.text {
		return r, in, fmt.Errorf("malformed reply: %q", line)
	}
	switch r.kind {
	case ':':
		return r, rest, nil
	case '$', '=':
		return parseBulk(r, rest)
	case '*', '~', '>':
		return parseElements(r, rest, r.number)
	case '%':
		return parseElements(r, rest, 2*r.number)
	}
	return r, in, fmt.Errorf("malformed reply: of no type: %q", line)
}

func parseBulk(r reply, rest string) (reply, string, error) {
	n := int(r.number)
	if n == -1 && r.kind == '$' {
		r.kind = '_'
		return r, rest, nil
	}
	if n < 0 || len(rest) < n+2 || rest[n:n+2] != "\r\n" || r.kind == '=' && !strings.HasPrefix(rest[:n], "txt:") {
		return r, rest, fmt.Errorf("malformed reply: bulk of %d in %.100q", n, rest)
	}
	r.text = rest[:n]
	return r, rest[n+2:], nil
}

func parseElements(r reply, rest string, n int64) (_ reply, _ string, err error) {
	if n == -1 && r.kind == '*' {
		r.kind = '_'
		return r, rest, nil
	}
	if n < 0 {
		return r, rest, fmt.Errorf("malformed reply: %d elements", n)
	}
	for range n {
		var e reply
		if e, rest, err = parseReply(rest); err != nil {
			return r, rest, err
		}
		r.elements = append(r.elements, e)
	}
	return r, rest, nil
}

// parseReplies reads replies that must be whole.
func parseReplies(t testing.TB, in string) []reply {
	t.Helper()
	var all []reply
	for in != "" {
		r, rest, err := parseReply(in)
		if err != nil {
			t.Fatal(err)
		}
		all, in = append(all, r), rest
	}
	return all
}

// field returns the value of a key of a map, which in RESP2 is an array.
func (r reply) field(key string) reply {
	for i := 0; i+1 < len(r.elements); i += 2 {
		if r.elements[i].text == key {
			return r.elements[i+1]
		}
	}
	return reply{}
}
