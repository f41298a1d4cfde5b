package door_test

import (
	"strings"
	"testing"

	"cellserver/internal/edge/server"
	h2 "cellserver/internal/test/http2test"
)

// TestStalledMessages: calls whose message does not come keep nobody out, and of a host's too many the one
// that has waited longest ends.
func TestStalledMessages(t *testing.T) {
	const most = 250 // of a connection, and so of a host of a small server
	h := openGRPC(t, server.Limits{MaxClients: 10})
	stall := func() *h2.Conn {
		c := h.speak(t)
		for range most {
			b, _ := c.Open(h2.GRPC(ofUsers), 0)
			send(t, c, b)
		}
		return c
	}
	first := stall()
	until(t, "all wait", func() bool { return h.door.Waiting() == most })
	if got := say(t.Context(), h.newCaller(t), ofUsers, "a"); got != "a" {
		t.Errorf("beside messages that do not come: %s", got)
	}
	b, _ := first.Open(h2.GRPC(ofUsers), 0)
	send(t, first, b)
	for r := (h2.Received{}); r.Kind != h2.Reset; { // one too many of the connection
		var err error
		if r, err = first.Next(); err != nil {
			t.Fatal(err)
		}
	}
	stall()
	for ended := 0; ended < most; {
		r, err := first.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r.Ends() {
			ended++
		}
	}
	if got := say(t.Context(), h.newCaller(t), ofUsers, "a"); got != "a" {
		t.Errorf("then: %s", got)
	}
}

// TestGRPCFloods: each closes its connection, or ends its stream, and clients beside are answered.
func TestGRPCFloods(t *testing.T) {
	h := openGRPC(t, server.Limits{MaxClients: 100})
	honest := h.newCaller(t)
	for name, flood := range map[string]func(c *h2.Conn) []byte{
		"resets": func(c *h2.Conn) []byte {
			b, stream := c.Open(h2.GRPC(ofUsers), 0)
			return append(b, h2.Frame(h2.Reset, 0, stream, "\x00\x00\x00\x08")...)
		},
		"resets of what is refused": func(c *h2.Conn) []byte {
			b, stream := c.Open(h2.GRPC("/other"), 0)
			return append(b, h2.Frame(h2.Reset, 0, stream, "\x00\x00\x00\x08")...)
		},
		"PING":          func(*h2.Conn) []byte { return h2.Frame(h2.Ping, 0, 0, "a flood.") },
		"SETTINGS":      func(*h2.Conn) []byte { return h2.Frame(h2.Settings, 0, 0, "") },
		"PRIORITY":      func(*h2.Conn) []byte { return h2.Frame(h2.Priority, 0, 3, "\x00\x00\x00\x00\x01") },
		"WINDOW_UPDATE": func(*h2.Conn) []byte { return h2.Frame(h2.Window, 0, 0, "\x00\x00\x00\x01") },
		"DATA":          func(*h2.Conn) []byte { return h2.Frame(h2.Data, 0, 1, "") },
	} {
		before := h.server.Stats()
		c := h.speak(t)
		if name == "DATA" {
			b, _ := c.Open(h2.GRPC(ofUsers), 0)
			send(t, c, b)
		}
		if c.Outlasts(func() []byte { return flood(c) }) {
			t.Errorf("%s: the connection is open", name)
		}
		until(t, name+": its end is counted", func() bool {
			s := h.server.Stats()
			return s.Accepted > before.Accepted && s.Connected <= before.Connected
		})
		if got := say(t.Context(), honest, ofUsers, "a"); got != "a" {
			t.Errorf("beside %s: %s", name, got)
		}
	}
}

// TestLongHeaders: a header beyond 16 KiB ends its stream, and one that goes on and on its connection.
func TestLongHeaders(t *testing.T) {
	h := openGRPC(t, server.Limits{MaxClients: 10})
	c := h.speak(t)
	fields := h2.GRPC(ofUsers, "x", strings.Repeat("x", 10_000), "y", strings.Repeat("x", 7_000))
	b, stream := c.Open(fields[:10_000], 0)
	b[4] = 0 // it goes on
	send(t, c, append(b, h2.Frame(h2.Continuation, h2.EndHeaders, stream, fields[10_000:])...))
	for {
		r, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r.Kind == h2.Reset && r.Stream == stream {
			break
		}
	}
	b, stream = c.Open(h2.GRPC(ofUsers), 0)
	send(t, c, append(b, h2.Frame(h2.Data, h2.EndStream, stream, "\x00\x00\x00\x00\x01a")...))
	for {
		if r, err := c.Next(); err != nil {
			t.Fatal(err)
		} else if r.Ends() {
			break
		}
	}
	b, stream = c.Open(h2.GRPC(ofUsers), 0)
	b[4] = 0
	send(t, c, b)
	for range 1000 {
		if _, err := c.Write(h2.Frame(h2.Continuation, 0, stream, h2.Fields("x", strings.Repeat("x", 1000)))); err != nil {
			break
		}
	}
	until(t, "it is closed", func() bool { return h.server.Stats().Connected == 0 })
}

// TestMessagesAreMemory of their client, by the buffers that they take, until the call ends.
func TestMessagesAreMemory(t *testing.T) {
	h := openGRPC(t, server.Limits{MaxClients: 10})
	c := h.speak(t)
	b, stream := c.Open(h2.GRPC(ofUsers), 0)
	b = append(b, h2.Frame(h2.Data, 0, stream, "\x00\x00\x04\x00\x00")...)
	for range 100 {
		b = append(b, h2.Frame(h2.Data, 0, stream, strings.Repeat("x", 300))...)
	}
	send(t, c, b)
	until(t, "parts of messages count", func() bool { return h.held() > 100*(4<<10) })
	send(t, c, h2.Frame(h2.Reset, 0, stream, "\x00\x00\x00\x08"))
	until(t, "they no longer count", func() bool { return h.held() < 100*(4<<10) })
}

// TestStrangeMessages: strangers send no long messages.
func TestStrangeMessages(t *testing.T) {
	h := openGRPC(t, server.Limits{MaxClients: 10})
	for _, header := range [][]string{nil, {"token", "wrong"}} {
		c := h.speak(t)
		b, stream := c.Open(h2.GRPC(anybody, header...), 0)
		b = append(b, h2.Frame(h2.Data, 0, stream, "\x00\x00\x04\x00\x00")...)
		for range 20 {
			b = append(b, h2.Frame(h2.Data, 0, stream, strings.Repeat("x", 10_000))...)
		}
		_, _ = c.Write(b) // fails once it is closed
		for {
			if _, err := c.Next(); err != nil {
				break
			}
		}
	}
	if got := say(t.Context(), h.newCaller(t), ofUsers, strings.Repeat("x", 200_000)); !strings.HasPrefix(got, "xxx") {
		t.Errorf("a known one: %.100s", got)
	}
}
