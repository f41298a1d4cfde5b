package observe

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/wire/peer"
)

// TestLine is Redis's form of a call.
func TestLine(t *testing.T) {
	tcp, unix := &peer.Peer{Addr: "192.0.2.1:5000"}, &peer.Peer{Addr: "/run/a:0", Unix: true}
	const at = t0 + 12_345_678
	half, long := strings.Repeat("h", maxLineArgBytes/2), strings.Repeat("x", maxLineArgBytes)
	words := func(n int, word string) (args [][]byte) {
		for range n {
			args = append(args, []byte(word))
		}
		return args
	}
	quoted := func(n int, word string) string { return strings.Repeat(` "`+word+`"`, n) }
	const full = maxLineBytes / maxLineArgBytes
	for _, tt := range []struct {
		name string
		line Line
		want string
	}{
		{"by TCP", Line{NowNs: at, DB: 3, Peer: tcp, Args: words(2, "a")}, "+1700000000.012345 [3 192.0.2.1:5000]" + quoted(2, "a")},
		{"by a unix socket", Line{NowNs: t0 + sec - 1, Peer: unix}, "+1700000000.999999 [0 unix:/run/a]"},
		{"by a script", Line{NowNs: t0, DB: 15, Peer: tcp, ByScript: true, Args: words(1, "")}, "+1700000000.000000 [15 lua]" + quoted(1, "")},
		{"the most arguments", Line{Peer: tcp, Args: words(maxLineArgs, "a")}, "+0.000000 [0 192.0.2.1:5000]" + quoted(maxLineArgs, "a")},
		{"one more", Line{Peer: tcp, Args: words(maxLineArgs+1, "a")}, "+0.000000 [0 192.0.2.1:5000]" + quoted(maxLineArgs, "a") + ` "... (1 more arguments)"`},
		{"the most bytes", Line{Peer: tcp, Args: words(full, long)}, "+0.000000 [0 192.0.2.1:5000]" + quoted(full, long)},
		{"longer", Line{Peer: tcp, Args: words(full+2, long)}, "+0.000000 [0 192.0.2.1:5000]" + quoted(full, long) + ` "... (2 more arguments)"`},
		{"longer by halves", Line{Peer: tcp, Args: words(2*full+1, half)}, "+0.000000 [0 192.0.2.1:5000]" + quoted(2*full, half) + ` "... (1 more arguments)"`},
		{"a long argument counts as truncated", Line{Peer: tcp, Args: append(words(1, strings.Repeat("x", 10*maxLineBytes)), words(1, "b")...)},
			"+0.000000 [0 192.0.2.1:5000] \"" + long + `... (647168 more bytes)" "b"`},
	} {
		if got := string(tt.line.Append([]byte("before "))); got != "before "+tt.want+"\r\n" {
			t.Errorf("%s: got %.100q, want %.100q", tt.name, got, tt.want)
		}
	}
}

func TestQuoted(t *testing.T) {
	long := bytes.Repeat([]byte("x"), maxLineArgBytes)
	for _, tt := range []struct{ arg, want string }{
		{"", `""`},
		{"a b~!", `"a b~!"`},
		{"\"\\\n\r\t\a\b", `"\"\\\n\r\t\a\b"`},
		{"\x00\x1f\x7f\x80\xff", `"\x00\x1f\x7f\x80\xff"`},
		{string(long), `"` + string(long) + `"`},
		{string(long) + "yz", `"` + string(long) + `... (2 more bytes)"`},
	} {
		if got := string(appendQuoted(nil, []byte(tt.arg))); got != tt.want {
			t.Errorf("%.50q: got %.100q, want %.100q", tt.arg, got, tt.want)
		}
	}
}

// FuzzQuoted: a quoted argument is one unambiguous line.
func FuzzQuoted(f *testing.F) {
	f.Add([]byte("a\"\\\x00\a\b\r\n\t\x7f\xff"))
	f.Fuzz(func(t *testing.T, arg []byte) {
		quoted := string(appendQuoted(nil, arg))
		if strings.ContainsAny(quoted, "\r\n\x00") {
			t.Fatalf("%q", quoted)
		}
		if len(arg) > maxLineArgBytes {
			return
		}
		if back, err := strconv.Unquote(quoted); err != nil || back != string(arg) { // Go has the same escapes
			t.Fatalf("%q became %s, %v", arg, quoted, err)
		}
	})
}
