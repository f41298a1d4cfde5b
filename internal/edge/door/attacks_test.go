package door_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"cellserver/internal/decide/clients"
	"cellserver/internal/edge/server"
	h2 "cellserver/internal/test/http2test"
)

func (h *house) dial(t *testing.T) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(h.url, "http://"), "/"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

func (h *house) speak(t *testing.T) *h2.Conn {
	t.Helper()
	c, err := h2.Begin(h.dial(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func send(t *testing.T, to io.Writer, b []byte) {
	t.Helper()
	if _, err := to.Write(b); err != nil {
		t.Fatal(err)
	}
}

// stall opens streams whose bodies stop after some bytes, and waits until the door knows of them.
func stall(t *testing.T, c *h2.Conn, streams, bytes int) {
	t.Helper()
	for range streams {
		b, stream := c.Open(h2.Request("POST", "/"+throttle, "content-length", "64000"), 0)
		for left := bytes; left > 0; left -= 10_000 {
			b = append(b, h2.Frame(h2.Data, 0, stream, strings.Repeat("x", min(left, 10_000)))...)
		}
		send(t, c, b)
	}
	known(t, c)
}

// known waits until what was sent is known.
func known(t *testing.T, c *h2.Conn) {
	t.Helper()
	send(t, c, h2.Frame(h2.Ping, 0, 0, "12345678"))
	for {
		r, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r.Kind == h2.Ping {
			return
		}
	}
}

// TestStalledBodies: requests that wait for their body keep nobody out, and of a host's too many the one that
// has waited longest ends.
func TestStalledBodies(t *testing.T) {
	const most = 250 // of a connection, and so of a host of a small server
	h := open(t, server.Limits{MaxClients: 10})
	first, second := h.speak(t), h.speak(t)
	stall(t, first, most, 0)
	if got := h.get(t, h.client, throttle, ""); got != "15;14;" {
		t.Errorf("beside %d bodies that do not come: %s", most, got)
	}
	stall(t, second, most-1, 0)
	until(t, "further ones have taken the place of the first", func() bool { return h.door.Waiting() == most })
	for ended := 0; ended < most-1; {
		r, err := first.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r.Ends() {
			ended++
		}
	}
	if got := h.get(t, h.client, throttle, ""); !strings.HasPrefix(got, "13;") {
		t.Errorf("then: %s", got)
	}
}

// statusOf reads an answer of HTTP/1.
func statusOf(t *testing.T, nc net.Conn) int {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// held returns the most that a client is counted with.
func (h *house) held() (most int) {
	for _, c := range h.Engine.Clients.All(func(*clients.Client) bool { return true }) {
		_, bytes := c.Memory()
		most = max(most, bytes)
	}
	return most
}

// TestBodiesAreMemory of their client, until the request ends.
func TestBodiesAreMemory(t *testing.T) {
	h := open(t, server.Limits{MaxClients: 10})
	const streams, bytes = 10, 60_000
	c := h.speak(t)
	stall(t, c, streams, bytes)
	until(t, "bodies of HTTP/2 count", func() bool { return h.held() > streams*bytes })
	for i := range uint32(streams) {
		send(t, c, h2.Frame(h2.Reset, 0, 2*i+1, "\x00\x00\x00\x08"))
	}
	until(t, "they no longer count", func() bool { return h.held() < 3*bytes })

	// so do those of HTTP/1
	nc := h.dial(t)
	send(t, nc, []byte("POST /"+throttle+" HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n"+strings.Repeat("x", 59_999)))
	until(t, "a body of HTTP/1 counts", func() bool { return h.held() > 59_999 })
	send(t, nc, []byte("x"))
	if status := statusOf(t, nc); status != http.StatusOK {
		t.Fatal(status)
	}
	until(t, "it no longer counts", func() bool { return h.held() < 59_999 })

	// and headers
	send(t, nc, []byte("GET /x HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 16_000)))
	until(t, "half a header counts", func() bool { return h.held() > 16_000 })
}

// TestBodiesAreEvicted: the client whose bodies take the most memory is closed first.
func TestBodiesAreEvicted(t *testing.T) {
	h := open(t, server.Limits{MaxClients: 100})
	h.get(t, h.client, throttle, "")
	const most = 2 << 20
	h.Engine.Clients.SetMaxMemory(most)
	for i := range 8 {
		c := h.speak(t)
		for range 10 + i {
			b, stream := c.Open(h2.Request("POST", "/"+throttle, "content-length", "64000"), 0)
			for range 6 {
				b = append(b, h2.Frame(h2.Data, 0, stream, strings.Repeat("x", 10_000))...)
			}
			_, _ = c.Write(b) // fails once it is closed
		}
	}
	until(t, "clients are closed for memory", func() bool {
		return h.server.Stats().Closed["memory"] > 0 && h.Engine.Clients.Memory() <= most
	})
	if got := h.get(t, h.client, throttle, ""); !strings.HasPrefix(got, "13;") {
		t.Errorf("then: %s", got)
	}
}

// TestFloodsAreClosed: so is a connection that resets its streams, or sends frames that ask nothing.
func TestFloodsAreClosed(t *testing.T) {
	h := open(t, server.Limits{MaxClients: 10})
	for name, flood := range map[string]func(c *h2.Conn) []byte{
		"resets": func(c *h2.Conn) []byte {
			b, stream := c.Open(h2.Request("GET", "/"+throttle), h2.EndStream)
			return append(b, h2.Frame(h2.Reset, 0, stream, "\x00\x00\x00\x08")...)
		},
		"PING":     func(*h2.Conn) []byte { return h2.Frame(h2.Ping, 0, 0, "a flood.") },
		"SETTINGS": func(*h2.Conn) []byte { return h2.Frame(h2.Settings, 0, 0, "") },
		"DATA": func(*h2.Conn) []byte {
			return h2.Frame(h2.Data, 0, 1, "")
		},
	} {
		before := h.server.Stats().Closed["session"]
		c := h.speak(t)
		if name == "DATA" {
			b, _ := c.Open(h2.Request("POST", "/"+throttle), 0)
			send(t, c, b)
		}
		if c.Outlasts(func() []byte { return flood(c) }) {
			t.Errorf("%s: the connection is open", name)
		}
		until(t, name+": the end is counted", func() bool { return h.server.Stats().Closed["session"] == before+1 })
	}
	if got := h.get(t, h.client, throttle, ""); !strings.HasSuffix(got, ";") {
		t.Errorf("then: %s", got)
	}
}

// TestContinuation: a header of HTTP/2 that goes on and on ends its connection.
func TestContinuation(t *testing.T) {
	h := open(t, server.Limits{MaxClients: 10})
	c := h.speak(t)
	b, stream := c.Open(h2.Request("GET", "/"+throttle), 0)
	b[4] = 0 // it goes on
	send(t, c, b)
	field := h2.Fields("x", strings.Repeat("x", 1000))
	for range 1000 {
		if _, err := c.Write(h2.Frame(h2.Continuation, 0, stream, field)); err != nil {
			break
		}
	}
	for {
		r, err := c.Next()
		if err != nil || r.Kind == h2.GoAway {
			break
		}
	}
	until(t, "it is closed", func() bool { return h.server.Stats().Connected == 0 })
}

// TestPreface: HTTP/2 is known however its first bytes come.
func TestPreface(t *testing.T) {
	h := open(t, server.Limits{MaxClients: 10})
	nc := h.dial(t)
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for i := range len(preface) - 1 {
		send(t, nc, []byte(preface[i:i+1]))
		if i < 16 {
			until(t, fmt.Sprint(i+1, " bytes are there"), func() bool { return h.server.Stats().Received >= uint64(i+1) })
		}
	}
	send(t, nc, []byte(preface[len(preface)-1:]))
	send(t, nc, h2.Frame(h2.Settings, 0, 0, ""))
	_, _ = nc.Write(append([]byte{}, []byte(strings.Repeat(string(h2.Frame(h2.Ping, 0, 0, "a flood.")), 2000))...))
	until(t, "its flood is closed", func() bool { return h.server.Stats().Closed["session"] == 1 })
}
