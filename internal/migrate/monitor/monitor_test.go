package monitor

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"cellserver/internal/decide/observe"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/resp"
	"cellserver/internal/wire/peer"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		line string
		want Line
	}{
		{`1700000000.123456 [0 127.0.0.1:5000] "cl.throttle" "a" "1"`, Line{AtNs: 1_700_000_000_123_456_000, Client: "127.0.0.1:5000", Args: words("cl.throttle", "a", "1")}},
		{`+1700000000.000001 [15 lua] "GET" ""`, Line{AtNs: 1_700_000_000_000_001_000, DB: 15, Args: words("GET", "")}},
		{`0.000000 [65535 [::1]:5000] "x"`, Line{DB: 65535, Client: "[::1]:5000", Args: words("x")}},
		{`1.000000 [0 unix:/run/my server] "x" "\"\\\n\r\t\a\b\x00\xff] \" [1 a]"`,
			Line{AtNs: 1e9, Client: "unix:/run/my server", Args: words("x", "\"\\\n\r\t\a\b\x00\xff] \" [1 a]")}},
	} {
		var got Line
		for range 2 { // reused memory
			if err := got.Parse([]byte(tt.line)); err != nil || got.AtNs != tt.want.AtNs || got.DB != tt.want.DB || got.Client != tt.want.Client ||
				!slices.EqualFunc(got.Args, tt.want.Args, bytes.Equal) {
				t.Errorf("%s: %+v, %v", tt.line, got, err)
			}
		}
		if !IsLine([]byte(tt.line)) {
			t.Errorf("%s looks like none", tt.line)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		line string
		want error
	}{
		{"", errShape}, {"OK", errShape}, {`1700000000 [0 a] "x"`, errShape}, {`1.12345 [0 a] "x"`, errShape}, {`x.123456 [0 a] "x"`, errShape},
		{`-1.123456 [0 a] "x"`, errShape}, {`.123456 [0 a] "x"`, errShape}, {`1.123456 [0] "x"`, errShape}, {`1.123456 [0 a]`, errShape}, {`1.123456 [x a] "x"`, errShape},
		{`9223372036855.000000 [0 a] "x"`, errTime}, {`99999999999999999999.000000 [0 a] "x"`, errTime}, {`1.123456 [65536 a] "x"`, errDB},
		{`1.123456 [0 a] "x`, errQuotes}, {`1.123456 [0 a] "x"y`, errQuotes}, {`1.123456 [0 a] "x\"`, errQuotes},
	} {
		var l Line
		if err := l.Parse([]byte(tt.line)); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.line, err, tt.want)
		}
	}
}

func words(all ...string) (args [][]byte) {
	for _, word := range all {
		args = append(args, []byte(word))
	}
	return args
}

// FuzzParse: Parse returns what MONITOR was given, and never panics.
func FuzzParse(f *testing.F) {
	f.Add(int64(1_700_000_000_123_456_000), uint16(3), []byte("cl.throttle"), []byte("a\"\\\x00\xff b"))
	f.Add(int64(0), uint16(0), []byte(`1.123456 [0 a] "x" "y\`), []byte(`OK`))
	f.Fuzz(func(t *testing.T, atNs int64, db uint16, first, second []byte) {
		var got Line
		_ = got.Parse(first)
		atNs = max(atNs, 0) / 1000 * 1000
		line := observe.Line{NowNs: atNs, DB: db, Peer: &peer.Peer{Addr: "192.0.2.1:5000"}, Args: [][]byte{first, second}}
		text := bytes.TrimRight(line.Append(nil), "\r\n")
		if err := got.Parse(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		const shown = 8 << 10 // bytes of an argument
		if len(first) > shown || len(second) > shown {
			return
		}
		if got.AtNs != atNs || got.DB != db || !bytes.Equal(got.Args[0], first) || !bytes.Equal(got.Args[1], second) {
			t.Fatalf("%s: %+v", text, got)
		}
		if again := splitText(t, Text(got.Args)); !slices.EqualFunc(again, got.Args, bytes.Equal) {
			t.Fatalf("%s: %q", Text(got.Args), again)
		}
	})
}

func splitText(t *testing.T, text string) [][]byte {
	t.Helper()
	args, ok := resp.SplitInline([]byte(text), nil)
	if !ok {
		t.Fatalf("%s: a quote is not closed", text)
	}
	return args
}

func TestText(t *testing.T) {
	if got, want := Text(words("cl.throttle", "a b", "", `it's`, "\n", "15")), `cl.throttle "a b" "" "it's" "\x0a" 15`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUse(t *testing.T) {
	calls := NewCalls(funnel.Burst)
	for _, tt := range []struct {
		args [][]byte
		use  Use
		name string
	}{
		{words("CL.THROTTLE", "a"), Decides, "cl.throttle"}, {words("cl.refund"), Decides, "cl.refund"}, {words("CL.DEBIT"), Decides, "cl.debit"}, {words("cl.quota"), Decides, "cl.quota"}, {words("CL.BUCKET", "TAKE", "k"), Limits, "cl.bucket|take"},
		{words("cl.bucket", "add", "k"), Limits, "cl.bucket|add"}, {words("CL.CHECK", "a", "b"), Limits, "cl.check"}, {words("cl.bthrottle"), Limits, "cl.bthrottle"},
		{words("cl.peek", "k"), Reads, "cl.peek"}, {words("EVAL", "return 1", "0"), Reads, "eval"}, {words("exec"), Reads, "exec"}, {words("get", "k"), Reads, "get"},
		{words("del", "k"), Writes, "del"}, {words("cl.reset", "k"), Writes, "cl.reset"}, {words("HSET", "k"), Writes, "hset"}, {words("INCR", "k"), Writes, "incr"},
		{words("flushall"), Flushes, "flushall"}, {words("SWAPDB", "0", "1"), Flushes, "swapdb"}, {nil, Reads, ""},
	} {
		if use, name := calls.Use(tt.args); use != tt.use || name != tt.name {
			t.Errorf("%q: %d, %s", tt.args, use, name)
		}
	}
}

func TestRequest(t *testing.T) {
	line := Line{DB: 3, Args: words("CL.THROTTLE", "k", "15", "30", "60", "2")}
	q, err := NewCalls(funnel.Capacity).Request("cl.throttle", &line)
	if err != nil || q.Key.DB != 3 || string(q.Key.Name) != "k" || q.Rule.Kind != limiter.Funnel || q.Rule.Funnel.Capacity() != 15 || q.Quantity != 2 {
		t.Errorf("%+v, %v", q, err)
	}
	line.Args = words("cl.throttle", "k", "x", "1", "1")
	if _, err = NewCalls(funnel.Burst).Request("cl.throttle", &line); err == nil || err.Error() != "cl.throttle: Couldn't parse as integer: x" {
		t.Error(err)
	}
}
