// Package http1 reads plain requests of HTTP/1.1: complete ones of GET, HEAD and POST, whose end no server
// sees elsewhere. Whatever else a client sends is left to net/http, so that what is doubtful has one judge. A
// Reader belongs to its connection.
package http1

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
)

// Request is a request. Its texts stay as they are, its slices until the next one.
type Request struct {
	Method string
	Path   string // without escapes
	Query  string // as sent
	Host   string
	Fields []Field // of the header, without Host
	Body   []byte
}

// Field is a line of a header. Its name is spelt in any way.
type Field struct{ Name, Value string }

// Field returns the value of a field, and how often it is there.
func (r *Request) Field(name string) (value string, n int) {
	for i := range r.Fields {
		if f := &r.Fields[i]; f.Is(name) {
			if n++; n == 1 {
				value = f.Value
			}
		}
	}
	return value, n
}

// Is reports whether the field has a name.
func (f *Field) Is(name string) bool {
	return len(f.Name) == len(name) && strings.EqualFold(f.Name, name)
}

// Bounds of a plain request:
const (
	MaxHead = 16 << 10 // bytes
	MaxBody = 16 << 10

	maxFields = 64
)

// Reader reads the requests at the front of a connection's input.
type Reader struct {
	// Close reports that the connection ends after the request.
	Close bool

	lines int // bytes of complete lines of a head that has no end yet
	head  int // bytes of the head; 0 until it is read
	body  int
}

// Found is what stands at the front of the input.
type Found uint8

const (
	Part     Found = iota // of a head, or nothing
	Head                  // a head whose body is not complete
	Plain                 // a request
	Doubtful              // something for net/http
)

// Next reads what begins in in, which begins with what was not complete before. n are the bytes of a Plain
// request.
func (r *Reader) Next(in []byte, to *Request) (n int, found Found) {
	if r.head == 0 {
		end, found := r.end(in)
		if found != Head {
			return 0, found
		}
		if r.Close = false; !r.read(string(in[:end]), to) { // one copy for all of its texts
			return 0, Doubtful
		}
		r.head, r.lines = end, 0
	}
	n = r.head + r.body
	if len(in) < n {
		return 0, Head
	}
	to.Body = in[r.head:n:n]
	r.head = 0
	return n, Plain
}

// end finds the end of a head. It looks at each line once.
func (r *Reader) end(in []byte) (end int, found Found) {
	if !begins(in) {
		return 0, Doubtful
	}
	for {
		line := bytes.IndexByte(in[r.lines:], '\n')
		end = r.lines + line + 1
		switch {
		case line < 0 && len(in) < MaxHead:
			return 0, Part
		case line < 1 || end > MaxHead || in[end-2] != '\r':
			return 0, Doubtful
		case line == 1:
			return end, Head
		}
		r.lines = end
	}
}

// begins reports whether input may be that of a method.
func begins(in []byte) bool {
	for _, method := range [...]string{"GET /", "POST /", "HEAD /"} {
		if n := min(len(in), len(method)); string(in[:n]) == method[:n] {
			return true
		}
	}
	return false
}

// read reads a head. It reports whether each server would read it so.
func (r *Reader) read(head string, to *Request) bool {
	line, rest := cutLine(head)
	var version string
	var ok bool
	if to.Method, line, ok = strings.Cut(line, " "); !ok {
		return false
	}
	if line, version, ok = strings.Cut(line, " "); !ok || version != "HTTP/1.1" || !to.target(line) {
		return false
	}
	to.Fields, to.Host, r.body = to.Fields[:0], "", -1
	for len(rest) > len("\r\n") {
		line, rest = cutLine(rest)
		colon := strings.IndexByte(line, ':')
		if colon < 1 || len(to.Fields) == maxFields || !all(line[:colon], tokenLo, tokenHi) || !isText(line[colon:]) {
			return false
		}
		if !r.field(line[:colon], trimmed(line[colon+1:]), to) {
			return false
		}
	}
	if r.body < 0 {
		if r.body = 0; to.Method == http.MethodPost {
			return false
		}
	}
	return to.Host != "" && (r.body == 0 || to.Method == http.MethodPost)
}

// cutLine cuts the first line, which ends as end has found.
func cutLine(head string) (line, rest string) {
	end := strings.IndexByte(head, '\n')
	return head[:end-1], head[end+1:]
}

func trimmed(value string) string {
	isSpace := func(c byte) bool { return c == ' ' || c == '\t' }
	for value != "" && isSpace(value[0]) {
		value = value[1:]
	}
	for value != "" && isSpace(value[len(value)-1]) {
		value = value[:len(value)-1]
	}
	return value
}

// field reads a field. It reports whether it is there once, if it must be, and says nothing unusual about the
// request's end or its connection.
func (r *Reader) field(name, value string, to *Request) bool {
	switch len(name) {
	case len("Host"):
		if strings.EqualFold(name, "Host") {
			ok := to.Host == "" && value != "" && all(value, hostLo, hostHi)
			to.Host = value
			return ok
		}
	case len("Content-Length"):
		if strings.EqualFold(name, "Content-Length") {
			ok := r.body < 0
			r.body, ok = length(value, ok)
			return ok
		}
	case len("Connection"):
		if strings.EqualFold(name, "Connection") {
			if _, n := to.Field(name); n > 0 {
				return false
			}
			r.Close = strings.EqualFold(value, "close")
			if !r.Close && !strings.EqualFold(value, "keep-alive") {
				return false
			}
		}
	case len("Transfer-Encoding"):
		if strings.EqualFold(name, "Transfer-Encoding") {
			return false
		}
	case len("Upgrade"): // and Trailer
		if strings.EqualFold(name, "Upgrade") || strings.EqualFold(name, "Trailer") {
			return false
		}
	case len("Expect"):
		if strings.EqualFold(name, "Expect") {
			return false
		}
	}
	to.Fields = append(to.Fields, Field{name, value})
	return true
}

// length reads a length within the maximum, in its only form.
func length(digits string, ok bool) (n int, _ bool) {
	if !ok || digits == "" || len(digits) > 5 || digits[0] == '0' && digits != "0" {
		return 0, false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		n = 10*n + int(digits[i]-'0')
	}
	return n, n <= MaxBody
}

// target reads a path with a query. A path in another form than its own is for net/http.
func (r *Request) target(target string) bool {
	var ok bool
	if r.Path, r.Query, ok = strings.Cut(target, "?"); ok && r.Query == "" || !all(r.Path, pathLo, pathHi) || !all(r.Query, queryLo, queryHi) {
		return false
	}
	if strings.IndexByte(r.Path, '%') >= 0 {
		var err error
		if r.Path, err = url.PathUnescape(r.Path); err != nil {
			return false
		}
	}
	return !strings.Contains(r.Path, "//")
}

// Sets of bytes below 0x80, those below 64 and the others:
const (
	alnumLo = (1<<10 - 1) << '0'
	alnumHi = (1<<26-1)<<('A'-64) | (1<<26-1)<<('a'-64)

	tokenLo = alnumLo | 1<<'!' | 1<<'#' | 1<<'$' | 1<<'%' | 1<<'&' | 1<<'\'' | 1<<'*' | 1<<'+' | 1<<'-' | 1<<'.'
	tokenHi = alnumHi | 1<<('^'-64) | 1<<('_'-64) | 1<<('`'-64) | 1<<('|'-64) | 1<<('~'-64)

	hostLo = alnumLo | 1<<'-' | 1<<'.' | 1<<':'
	hostHi = alnumHi | 1<<('['-64) | 1<<(']'-64) | 1<<('_'-64)

	pathLo = alnumLo | 1<<'-' | 1<<'.' | 1<<'/' | 1<<'%' | 1<<'!' | 1<<'$' | 1<<'&' | 1<<'\'' | 1<<'(' | 1<<')' | 1<<'*' | 1<<'+' | 1<<',' | 1<<';' | 1<<'=' | 1<<':'
	pathHi = alnumHi | 1<<('_'-64) | 1<<('~'-64) | 1<<('@'-64)

	queryLo = (1<<64 - 1) << '!' & (1<<64 - 1) &^ (1 << '#')
	queryHi = 1<<63 - 1 // all but DEL
)

// all reports whether a text is of bytes of a set.
func all(text string, lo, hi uint64) bool {
	for i := range len(text) {
		c := text[i]
		set := lo
		if c >= 64 {
			set = hi
		}
		if c >= 0x80 || set>>(c&63)&1 == 0 {
			return false
		}
	}
	return true
}

// isText reports whether a value has no control characters but tabs.
func isText(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
