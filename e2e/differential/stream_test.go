package differential

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/test/resptest"
)

// stream is input in the pieces of its arrival.
type stream struct{ pieces [][]byte }

// String abbreviates long runs.
func (s stream) String() string {
	text := strconv.Quote(string(bytes.Join(s.pieces, nil)))
	return regexp.MustCompile(`x{40,}|e{40,}|w{40,}|(\\r\\n){10,}|(\*1\\r\\n){10,}`).ReplaceAllStringFunc(text, func(dull string) string {
		return dull[:24] + "[...]"
	})
}

// mutes reports whether the stream has CLIENT REPLY.
func (s stream) mutes() bool {
	return bytes.Contains(bytes.ToUpper(bytes.Join(s.pieces, nil)), []byte("REPLY"))
}

func (s stream) hasNUL() bool { return bytes.IndexByte(bytes.Join(s.pieces, nil), 0) >= 0 }

// streamMaker generates streams that Redis 7 and cellserver must answer alike. They avoid intended
// differences: the store's content, IDs and counts, commands of one server, NUL in headers, and sizes between
// the two servers' limits.
type streamMaker struct {
	*rand.Rand
	b       []byte
	mutates bool // one byte changes
	weighty bool // Redis would discard pending replies with the client after a RESET, which undoes AUTH
}

func newStream(r *rand.Rand) stream {
	m := &streamMaker{Rand: r, mutates: r.IntN(8) == 0}
	for range 1 + m.IntN(8) {
		switch n := m.IntN(100); {
		case n < 45:
			m.b = resptest.Append(m.b, m.command()...)
		case n < 60:
			m.b = append(m.b, strings.Join(m.command(), m.pick(" ", " ", "  ", "\t"))+m.pick("\r\n", "\n")...)
		case n < 75:
			m.inline()
		case n < 85:
			m.b = append(m.b, m.pick("*0\r\n", "*-1\r\n", "*-10\r\n", "\r\n", "\n", "\n\n", " \t\r\n", "\v\f \n")...)
		case n < 88:
			m.b = resptest.Append(m.b, "ECHO", strings.Repeat(m.pick("x", "\r\n", "*1\r\n"), m.IntN(30_000)))
			m.weighty = true
		case n < 98:
			m.oddHeader()
		default:
			m.b = append(m.b, m.pick("$3 abc\r\n", "\x00PING\r\n", "ECHO a\x00b\r\n", "PING\r", "(\r\n", "+OK\r\n", ":1\r\n")...)
		}
	}
	if m.mutates && len(m.b) > 0 {
		m.b[m.IntN(len(m.b))] = m.pick("*", "$", "\r", "\n", "0", "1", "9", "-", "x", " ", `"`, `\`)[0]
	} else if m.IntN(8) == 0 { // truncated
		m.b = m.b[:m.IntN(len(m.b)+1)]
	}
	return m.cut()
}

func (m *streamMaker) pick(choices ...string) string { return choices[m.IntN(len(choices))] }

// cut leaves a stream whole, or cuts it at a few places or after each byte.
func (m *streamMaker) cut() (s stream) {
	longest := len(m.b)
	if len(m.b) < 200 && m.IntN(4) == 0 {
		longest = 1
	} else if m.IntN(3) > 0 {
		longest = 1 + len(m.b)/2
	}
	for rest := m.b; len(rest) > 0; {
		n := min(1+m.IntN(longest), len(rest))
		if longest == len(m.b) {
			n = len(rest)
		}
		s.pieces = append(s.pieces, rest[:n])
		rest = rest[n:]
	}
	return s
}

func (m *streamMaker) command() []string {
	words := strings.Fields(m.pick(
		"PING", "PING", "PING a", "PING a b", "PING a b c", "ECHO hello", "ECHO", "ECHO a b",
		"SELECT N", "SELECT N", "SELECT 15", "SELECT 0", "SELECT", "SELECT 1 2", "DBSIZE", "DBSIZE x",
		"CLIENT", "CLIENT SETNAME W", "CLIENT SETNAME W", "CLIENT SETNAME", "CLIENT GETNAME", "CLIENT GETNAME", "CLIENT GETNAME x",
		"CLIENT NOSUCH", "CLIENT REPLY OFF", "CLIENT REPLY ON", "CLIENT REPLY ON", "CLIENT REPLY SKIP", "CLIENT REPLY W", "CLIENT W", "CLIENT ID x", "CLIENT INFO x",
		"HELLO", "HELLO 2", "HELLO 3", "HELLO N", "HELLO 4", "HELLO 2 NOPE", "HELLO 3 SETNAME", "HELLO 3 SETNAME W", "HELLO 3 AUTH default",
		"HELLO 3 AUTH nobody x", "HELLO 3 AUTH default sesame", "HELLO 2 SETNAME W AUTH default sesame", "HELLO 3 SETNAME b SETNAME W x",
		"AUTH", "AUTH W", "AUTH nobody W", "AUTH default sesame", "AUTH sesame", "AUTH sesame", "AUTH a b c",
		"EXISTS", "EXISTS a", "EXISTS a b a", "TTL a", "TTL", "PTTL a", "PTTL a b", "DEL a", "DEL a b c", "DEL", "UNLINK a", "UNLINK",
		"COMMAND COUNT x", "COMMAND NOSUCH", "COMMAND W x", "COMMAND INFO nosuch", "COMMAND INFO a|b nosuch", "COMMAND DOCS nosuch",
		"COMMAND LIST x", "COMMAND LIST FILTERBY", "COMMAND LIST FILTERBY NOSUCH x", "COMMAND LIST FILTERBY MODULE nosuch",
		"COMMAND LIST FILTERBY PATTERN nosuch*", "CONFIG", "CONFIG NOSUCH", "CONFIG GET", "CONFIG GET nosuch", "CONFIG GET databases",
		"FLUSHALL", "FLUSHALL BAD", "FLUSHALL ASYNC", "FLUSHALL SYNC ASYNC", "FLUSHDB BAD", "FLUSHDB sync", "FLUSHDB a b",
		"MODULE", "MODULE NOSUCH", "INFO nosuch", "TIME x", "RESET", "RESET x", "QUIT", "QUIT now",
		"W", "W W", "W a b c d e f g h i j k"))
	if m.mutates && slices.Contains([]string{"CLIENT", "COMMAND", "INFO", "MODULE", "TIME"}, words[0]) {
		words = []string{"PING"} // errors of others could become replies
	}
	if m.weighty = m.weighty || words[0] == "COMMAND"; m.weighty && words[0] == "RESET" {
		words = []string{"PING"}
	}
	for i, word := range words {
		switch {
		case word == "W":
			words[i] = m.word()
		case word == "N":
			words[i] = m.number()
		case m.IntN(4) == 0:
			words[i] = strings.ToLower(word)
		}
	}
	return words
}

// word returns a word that is no command. Long ones, which errors truncate, need no escaping.
func (m *streamMaker) word() string {
	long := 300
	if m.mutates {
		long = 100
	}
	return m.pick("foo", "xyzzy", "a,b", "it's", `"`, `\n`, "%s%n", "grün", "", "no such", "cl.throttlex", "client|setname", "*1", "$4",
		strings.Repeat("w", 1+m.IntN(long)))
}

// number returns text that may parse as a number. None is between our limits and Redis's higher ones:
// 1,048,576 arguments, 4 MiB.
func (m *streamMaker) number() string {
	return m.pick("", "0", "00", "01", "-0", "-1", "-10", "+1", "+0", "1 ", " 1", "1a", "abc", "0x1", "1.5", "1e3", "-", "--1", "²",
		"2147483647000", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
		"-9223372036854775809", "99999999999999999999", strconv.Itoa(m.IntN(20)), strings.Repeat("0", 1+m.IntN(40)), strings.Repeat("1", 30+m.IntN(40)))
}

func (m *streamMaker) inline() {
	m.b = append(m.b, m.pick("ECHO ", "ECHO ", "ECHO ", "PING ", " \tECHO\t", `"ECHO" `, `'ping'`, `"\x45C\x48o" `, "ec\"ho\" ")...)
	for range m.IntN(8) {
		m.b = append(m.b, m.pick("a", "b c", " ", "\t", `"`, `'`, `"a b"`, `'a b'`, `\`, `\n`, `\x41`, `"\x4"`, `"\xzz\x01\xff"`, `"\r\n\t\a\b\q"`,
			`\'`, `\"`, `'it\'s'`, `'\n'`, `""`, `''`, `"" `, "\v", "\f", "\r", "ü", "\xff", "#", "*1", "$")...)
	}
	m.b = append(m.b, m.pick("\r\n", "\r\n", "\n", "\r\r\n")...)
}

// oddHeader returns a command with invalid or unusual framing.
func (m *streamMaker) oddHeader() {
	lineEnd := func() string { return m.pick("\r\n", "\r\n", "\r\n", "\rX", "\r\r", "\r\x00", "\r$", "\n", "\n\r", "") }
	count, marker, length := "1", "$", "4"
	switch m.IntN(5) {
	case 0:
		count = m.number()
	case 1:
		marker = m.pick("", "*", "+", "f", ",", " ", "\n")
	case 2:
		length = m.number()
	case 3: // the limit before AUTH, one more, and long arguments
		m.b = resptest.Append(m.b, append([]string{"DEL"}, strings.Fields(strings.Repeat("k ", 9+m.IntN(2)))...)...)
		m.b = resptest.Append(m.b, "ECHO", strings.Repeat("e", 16<<10-1+m.IntN(3)))
		m.weighty = true
		return
	}
	m.b = append(m.b, "*"+count+lineEnd()+marker+length+lineEnd()+"PING\r\n"...)
}
