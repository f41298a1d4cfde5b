package clients

import (
	"strings"
	"testing"

	"cellserver/internal/wire/peer"
)

// wakes counts how often a connection is woken.
type wakes int

func (w *wakes) Wake()  { *w++ }
func (w *wakes) Kill()  {}
func (w *wakes) Evict() {}

func listening() (*Client, *wakes) {
	w := new(wakes)
	return New(peer.Peer{}, w, t0), w
}

// TestGroup: all get every line and are woken once.
func TestGroup(t *testing.T) {
	g := Group{Held: MonitorLines}
	if g.Any() || len(g.Send([]byte("nobody\n"))) != 0 {
		t.Error("somebody listens to a new Group")
	}
	first, woken := listening()
	second, _ := listening()
	a, b := g.Begin(first), g.Begin(second)
	for round := range 2 {
		g.Send([]byte("x\n"))
		g.Send([]byte("y\n"))
		if *woken != wakes(round+1) {
			t.Errorf("round %d: woken %d times", round, *woken)
		}
		if got, more := a.Take([]byte("+OK\n"), 100); string(got) != "+OK\nx\ny\n" || more {
			t.Errorf("round %d: took %q, more %t", round, got, more)
		}
	}
	a.End()
	if g.Send([]byte("z\n")); !g.Any() || *woken != 2 {
		t.Errorf("listening: %t; woken %d times", g.Any(), *woken)
	}
	b.End()
	if got, _ := b.Take(nil, 100); g.Any() || string(got) != "x\ny\nx\ny\nz\n" {
		t.Errorf("listening: %t; the second took %q", g.Any(), got)
	}
}

// TestTakePieces: Take returns whole lines of about the wanted size.
func TestTakePieces(t *testing.T) {
	for _, tt := range []struct {
		maxBytes int
		pieces   string // separated by /
	}{
		{0, "ab\n/c\n/def\n"}, {1, "ab\n/c\n/def\n"}, {2, "ab\n/c\ndef\n"}, {3, "ab\nc\n/def\n"}, {4, "ab\nc\n/def\n"},
		{5, "ab\nc\ndef\n"}, {8, "ab\nc\ndef\n"}, {9, "ab\nc\ndef\n"},
	} {
		g := Group{Held: MonitorLines}
		c, woken := listening()
		m := g.Begin(c)
		g.Send([]byte("ab\nc\n"))
		g.Send([]byte("def\n"))
		var pieces []string
		for more := true; more; {
			var piece []byte
			piece, more = m.Take(nil, tt.maxBytes)
			pieces = append(pieces, string(piece))
			if more != (m.lines.Len() > 0) || more != (m.lines.Held() > 0) {
				t.Errorf("%d bytes: more %t, but %d bytes are left", tt.maxBytes, more, m.lines.Len())
			}
		}
		if got := strings.Join(pieces, "/"); got != tt.pieces || *woken != 1 {
			t.Errorf("%d bytes: took %q, want %q; woken %d times", tt.maxBytes, got, tt.pieces, *woken)
		}
	}
	g := Group{Held: MonitorLines}
	c, woken := listening()
	m := g.Begin(c)
	g.Send([]byte("a\nb\n"))
	m.Take(nil, 1)
	if g.Send([]byte("c\n")); *woken != 1 {
		t.Error("woken again before it took all lines")
	}
}

func TestListenerFallsBehind(t *testing.T) {
	g := Group{Held: MonitorLines}
	slow, _ := listening()
	quick, _ := listening()
	a, b := g.Begin(slow), g.Begin(quick)
	if dropped := g.Send(make([]byte, MaxBacklogBytes-1)); len(dropped) != 0 {
		t.Fatal("dropped at once")
	}
	b.Take(nil, MaxBacklogBytes)
	if dropped := g.Send([]byte("x")); len(dropped) != 0 {
		t.Error("dropped before it had fallen behind")
	}
	if dropped := g.Send([]byte("y")); len(dropped) != 1 || dropped[0] != a || dropped[0].Client != slow {
		t.Errorf("dropped %v", dropped)
	}
	if got, more := a.Take(nil, 1); len(got) != 0 || more {
		t.Errorf("%d bytes kept after it was dropped", len(got))
	}
	if got, _ := b.Take(nil, 2); string(got) != "xy" || len(g.Send([]byte("z"))) != 0 || !g.Any() {
		t.Errorf("the quick one took %q", got)
	}
}

// TestClosingClient gets no lines, which would not be counted.
func TestClosingClient(t *testing.T) {
	var register Register
	g := Group{Held: MonitorLines}
	c, woken := listening()
	register.Add(c)
	m := g.Begin(c)
	g.Send(make([]byte, 100_000))
	register.SetMaxMemory(50_000)
	if dropped := g.Send([]byte("x")); len(dropped) != 0 || g.Any() || m.lines.Held() != 0 || *woken != 1 {
		t.Errorf("dropped %v, listening: %t, %d bytes kept, woken %d times", dropped, g.Any(), m.lines.Held(), *woken)
	}
	other, _ := listening()
	m = g.Begin(other)
	g.Send([]byte("x"))
	if m.Abandon(); g.Any() || m.lines.Held() != 0 {
		t.Errorf("%d bytes kept for a disconnected client", m.lines.Held())
	}
}

// TestChannelsAreMemory each by itself: the backlog of one is counted beside the other's.
func TestChannelsAreMemory(t *testing.T) {
	var r Register
	client, _ := listening()
	r.Add(client)
	const backlog = 100 << 10
	all := NewChannels("one", "other")
	var last *Listener
	for i, ch := range all {
		last = ch.Begin(client)
		ch.Send([]byte(strings.Repeat("x", backlog) + "\n"))
		if held, total := client.Memory(); total < (i+1)*backlog || held.lines() < (i+1)*backlog {
			t.Errorf("%d channels: %d bytes are counted, %d of them lines", i+1, total, held.lines())
		}
	}
	if last.Take(nil, 2*backlog); r.Memory() < backlog {
		t.Errorf("with the backlog of one channel %d bytes are counted", r.Memory())
	}
}
