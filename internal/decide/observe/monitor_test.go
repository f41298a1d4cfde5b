package observe

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/decide/clients"
	"cellserver/internal/wire/peer"
)

// wakes counts how often a connection is woken.
type wakes int

func (w *wakes) Wake()  { *w++ }
func (w *wakes) Kill()  {}
func (w *wakes) Evict() {}

func monitored() (*clients.Client, *wakes) {
	w := new(wakes)
	return clients.New(peer.Peer{}, w, t0), w
}

// TestMonitors: all get every line and are woken once.
func TestMonitors(t *testing.T) {
	var ms Monitors
	if ms.Any() || len(ms.Send([]byte("nobody\n"))) != 0 {
		t.Error("the zero Monitors has a monitor")
	}
	first, woken := monitored()
	second, _ := monitored()
	a, b := ms.Begin(first), ms.Begin(second)
	for round := range 2 {
		ms.Send([]byte("x\n"))
		ms.Send([]byte("y\n"))
		if *woken != wakes(round+1) {
			t.Errorf("round %d: woken %d times", round, *woken)
		}
		if got, more := a.Take([]byte("+OK\n"), 100); string(got) != "+OK\nx\ny\n" || more {
			t.Errorf("round %d: took %q, more %t", round, got, more)
		}
	}
	ms.End(a)
	if ms.Send([]byte("z\n")); !ms.Any() || *woken != 2 {
		t.Errorf("monitors: %t; woken %d times", ms.Any(), *woken)
	}
	ms.End(b)
	if got, _ := b.Take(nil, 100); ms.Any() || string(got) != "x\ny\nx\ny\nz\n" {
		t.Errorf("monitors: %t; the second took %q", ms.Any(), got)
	}
}

// TestTakePieces: Take returns whole lines of about the wanted size.
func TestTakePieces(t *testing.T) {
	for _, tt := range []struct {
		most   int
		pieces string // separated by /
	}{
		{0, "ab\n/c\n/def\n"}, {1, "ab\n/c\n/def\n"}, {2, "ab\n/c\ndef\n"}, {3, "ab\nc\n/def\n"}, {4, "ab\nc\n/def\n"},
		{5, "ab\nc\ndef\n"}, {8, "ab\nc\ndef\n"}, {9, "ab\nc\ndef\n"},
	} {
		var ms Monitors
		c, woken := monitored()
		m := ms.Begin(c)
		ms.Send([]byte("ab\nc\n"))
		ms.Send([]byte("def\n"))
		var pieces []string
		for more := true; more; {
			var piece []byte
			piece, more = m.Take(nil, tt.most)
			pieces = append(pieces, string(piece))
			if more != (m.lines.Len() > 0) || more != (m.lines.Held() > 0) {
				t.Errorf("%d bytes: more %t, but %d bytes are left", tt.most, more, m.lines.Len())
			}
		}
		if got := strings.Join(pieces, "/"); got != tt.pieces || *woken != 1 {
			t.Errorf("%d bytes: took %q, want %q; woken %d times", tt.most, got, tt.pieces, *woken)
		}
	}
	var ms Monitors
	c, woken := monitored()
	m := ms.Begin(c)
	ms.Send([]byte("a\nb\n"))
	m.Take(nil, 1)
	if ms.Send([]byte("c\n")); *woken != 1 {
		t.Error("woken again before it took all lines")
	}
}

func TestMonitorFallsBehind(t *testing.T) {
	var ms Monitors
	slow, _ := monitored()
	quick, _ := monitored()
	a, b := ms.Begin(slow), ms.Begin(quick)
	if dropped := ms.Send(make([]byte, MaxMonitorBytes-1)); len(dropped) != 0 {
		t.Fatal("dropped at once")
	}
	b.Take(nil, MaxMonitorBytes)
	if dropped := ms.Send([]byte("x")); len(dropped) != 0 {
		t.Error("dropped before it had fallen behind")
	}
	if dropped := ms.Send([]byte("y")); len(dropped) != 1 || dropped[0] != a || dropped[0].Client != slow {
		t.Errorf("dropped %v", dropped)
	}
	if got, more := a.Take(nil, 1); len(got) != 0 || more {
		t.Errorf("%d bytes kept after it was dropped", len(got))
	}
	if got, _ := b.Take(nil, 2); string(got) != "xy" || len(ms.Send([]byte("z"))) != 0 || !ms.Any() {
		t.Errorf("the quick one took %q", got)
	}
}

// TestClosingClient gets no lines, which would not be counted.
func TestClosingClient(t *testing.T) {
	var register clients.Register
	var ms Monitors
	c, woken := monitored()
	register.Add(c)
	m := ms.Begin(c)
	ms.Send(make([]byte, 100_000))
	register.SetMaxMemory(50_000)
	if dropped := ms.Send([]byte("x")); len(dropped) != 0 || ms.Any() || m.lines.Held() != 0 || *woken != 1 {
		t.Errorf("dropped %v, monitors: %t, %d bytes kept, woken %d times", dropped, ms.Any(), m.lines.Held(), *woken)
	}
	other, _ := monitored()
	m = ms.Begin(other)
	ms.Send([]byte("x"))
	if ms.Abandon(m); ms.Any() || m.lines.Held() != 0 {
		t.Errorf("%d bytes kept for a disconnected client", m.lines.Held())
	}
}

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
