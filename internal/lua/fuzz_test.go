package lua

import (
	"strings"
	"testing"
	"time"
)

// checkReply reports whether a reply is exactly one in RESP.
func checkReply(reply string) bool {
	rest, ok := skipReply(reply)
	return ok && rest == ""
}

func skipReply(s string) (rest string, ok bool) {
	line, rest, ok := strings.Cut(s, "\r\n")
	if !ok || line == "" || strings.ContainsAny(line, "\r\n") {
		return "", false
	}
	n := 0
	for _, c := range line[1:] {
		if c < '0' || c > '9' {
			n = -1
			break
		}
		n = n*10 + int(c-'0')
	}
	switch line[0] {
	case '$':
		if n < 0 {
			return rest, line == "$-1"
		}
		if len(rest) < n+2 {
			return "", false
		}
		return rest[n+2:], rest[n:n+2] == "\r\n"
	case '*':
		for range n {
			if rest, ok = skipReply(rest); !ok {
				return "", false
			}
		}
		return rest, n >= 0
	}
	return rest, strings.IndexByte("+-:", line[0]) >= 0
}

// FuzzScript runs anything: there is one reply, in bounded time, and no error of the interpreter's own.
func FuzzScript(f *testing.F) {
	for _, a := range attacks {
		f.Add(a.source, "a", "b")
	}
	for _, source := range []string{
		"return {string.find(ARGV[1], ARGV[2])}", "return {string.gsub(ARGV[1], ARGV[2], ARGV[2])}",
		"local t = {} for a, b in ARGV[1]:gmatch(ARGV[2]) do t[#t+1] = tostring(a) .. tostring(b) end return t",
		"return cjson.encode(cjson.decode(ARGV[1]))", "return (ARGV[1]):format(ARGV[2], 1, 2)", "return tonumber(ARGV[1])",
		"return tostring(ARGV[1] + ARGV[2])", "return bit.tohex(tonumber(ARGV[1]) or 0)", "return ARGV[1]:rep(tonumber(ARGV[2]) or 2)",
		"local function f(a, ...) local g = function() a = a + 1 return a end pcall(error) return g(), select('#', ...) end return {f(1, 2)}",
	} {
		f.Add(source, `[1,{"a":"\u00e9"}]`, "(%w+)-?%1")
	}
	e := newEngine(Config{TimeLimit: 20 * time.Millisecond, MaxMemoryBytes: 4 << 20, MaxReplyBytes: 1 << 20})
	f.Fuzz(func(t *testing.T, source, a, b string) {
		host := &fakeHost{}
		reply, err := eval(e, host, source, byteSlices("key"), byteSlices(a, b))
		if !checkReply(reply) {
			t.Errorf("reply %.300q, %v", reply, err)
		}
		if len(host.log) > 0 && strings.HasPrefix(host.log[len(host.log)-1], "3 panic") {
			t.Error(host.log)
		}
	})
}
