package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"unicode/utf8"
)

// Content types.
const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

func (to *Answer) contentType() string {
	if to.problem {
		return problemType
	}
	return jsonType
}

// mostFields that an answer has.
const mostFields = 12

// maxCounted is the length up to which net/http counts a body by itself, without an allocation.
const maxCounted = 2048

// SetHeader sets the same fields as AppendFields, by their canonical names, which takes less than Set, and
// those of which net/http has to be told.
func (to *Answer) SetHeader(h http.Header) {
	values := make([]string, 0, mostFields) // in one allocation
	set := func(name, value string) {
		n := len(values)
		values = append(values, value)
		h[name] = values[n : n+1 : n+1]
	}
	number := func(name string, n int64) { set(name, strconv.FormatInt(n, 10)) }
	set("Cache-Control", "no-store")
	set("X-Content-Type-Options", "nosniff")
	set("Content-Type", to.contentType())
	if len(to.Body) >= maxCounted {
		number("Content-Length", int64(len(to.Body)))
	}
	text := string(to.values)
	if to.policyEnd > 0 {
		set("Ratelimit-Policy", text[:to.policyEnd])
	}
	if to.limitEnd > to.policyEnd {
		set("Ratelimit", text[to.policyEnd:to.limitEnd])
	}
	if to.nearEnd > to.limitEnd {
		set("X-Ratelimit-Near", text[to.limitEnd:to.nearEnd])
	}
	if len(text) > to.nearEnd {
		set("Retry-After", text[to.nearEnd:])
	}
	if to.legacy {
		number("X-Ratelimit-Limit", to.most)
		number("X-Ratelimit-Remaining", to.remaining)
	}
	if to.resets {
		number("X-Ratelimit-Reset", to.resetIn)
	}
	if to.allow != "" {
		set("Allow", to.allow)
	}
	if to.login {
		set("Www-Authenticate", tokenHeader)
	}
	if to.Close {
		set("Connection", "close")
	}
}

// AppendFields appends the fields of the header, each with its line's end, but for Content-Length, Date and
// Connection.
func (to *Answer) AppendFields(b []byte) []byte {
	if to.problem {
		b = append(b, "Cache-Control: no-store\r\nContent-Type: "+problemType+"\r\nX-Content-Type-Options: nosniff\r\n"...)
	} else {
		b = append(b, "Cache-Control: no-store\r\nContent-Type: "+jsonType+"\r\nX-Content-Type-Options: nosniff\r\n"...)
	}
	if to.policyEnd > 0 {
		b = append(append(append(b, "Ratelimit-Policy: "...), to.values[:to.policyEnd]...), lineEnd...)
	}
	if to.limitEnd > to.policyEnd {
		b = append(append(append(b, "Ratelimit: "...), to.values[to.policyEnd:to.limitEnd]...), lineEnd...)
	}
	if to.nearEnd > to.limitEnd {
		b = append(append(append(b, "X-Ratelimit-Near: "...), to.values[to.limitEnd:to.nearEnd]...), lineEnd...)
	}
	if len(to.values) > to.nearEnd {
		b = append(append(append(b, "Retry-After: "...), to.values[to.nearEnd:]...), lineEnd...)
	}
	if to.legacy {
		b = appendNumber(b, "X-Ratelimit-Limit: ", to.most)
		b = appendNumber(b, "X-Ratelimit-Remaining: ", to.remaining)
	}
	if to.resets {
		b = appendNumber(b, "X-Ratelimit-Reset: ", to.resetIn)
	}
	if to.allow != "" {
		b = append(append(append(b, "Allow: "...), to.allow...), lineEnd...)
	}
	if to.login {
		b = append(b, "Www-Authenticate: "+tokenHeader+lineEnd...)
	}
	return b
}

const lineEnd = "\r\n"

// appendNumber appends a field whose name has its colon.
func appendNumber(b []byte, name string, n int64) []byte {
	return append(strconv.AppendInt(append(b, name...), n, 10), lineEnd...)
}

// secondsOf rounds up, so that nobody comes too early.
func secondsOf(ms int64) int64 {
	sec := ms / 1000
	if ms%1000 > 0 {
		sec++
	}
	return sec
}

// appendText appends a JSON string.
func appendText[T string | []byte](b []byte, text T) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(string(text)) // never fails for a string
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

const maxQuoted = 64 // bytes of a client's text in a refusal

// quote quotes a client's text for a refusal.
func quote(text string) string {
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "..."
	}
	return strconv.Quote(text)
}
