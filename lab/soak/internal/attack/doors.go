package attack

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/test/http2test"
	"cellserver/lab/soak/internal/target"
)

// doors abuse HTTP, gRPC, TLS and the metrics address, as strangers and as known users.
func doors() []Attack {
	flood := func(name string, connections int, one func(*Attacker) error) Attack {
		return Attack{Name: name, Pause: 2 * time.Second, Round: func(a *Attacker) error { return a.each(connections, one) }}
	}
	frames := func(name string, payload func(c *http2test.Conn) []byte) Attack {
		return flood(name, 3, func(a *Attacker) error { return a.floodFrames(payload) })
	}
	repeated := func(b []byte) func(*http2test.Conn) []byte {
		return func(*http2test.Conn) []byte { return []byte(strings.Repeat(string(b), 100)) }
	}
	return []Attack{
		frames("rapid reset", rapidReset),
		frames("PINGs of HTTP/2", repeated(http2test.Frame(http2test.Ping, 0, 0, "12345678"))),
		frames("SETTINGS of HTTP/2", repeated(http2test.Frame(http2test.Settings, 0, 0, ""))),
		frames("CONTINUATION without end", func(c *http2test.Conn) []byte {
			b, stream := c.Open(http2test.Request("GET", "/v1/limits"), 0)
			b[4] = 0 // its fields go on
			return append(b, strings.Repeat(string(http2test.Frame(http2test.Continuation, 0, stream, "")), 1000)...)
		}),
		flood("scrapes", 24, func(a *Attacker) error { return a.getAll("metrics", "/metrics") }),
		flood("pages", 24, func(a *Attacker) error { return a.getAll("metrics", "/?key=k") }),
		flood("handshakes of TLS", 24, handshakes),
		{Name: "stalled bodies", Pause: time.Second, Round: func(a *Attacker) error { return a.stall("http", 5, 60_000) }},
		{Name: "stalled messages", Pause: time.Second, Round: func(a *Attacker) error { return a.stall("grpc", 5, 60_000) }},
		{Name: "half headers", Pause: time.Second, Round: func(a *Attacker) error {
			return a.holdOn("http", 200*a.Size, []byte("GET / HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 11_000)))
		}},
		{Name: "bodies that do not end", Pause: time.Second, Round: func(a *Attacker) error {
			return a.holdOn("http", 200*a.Size, []byte("POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65000\r\n\r\n"+strings.Repeat("x", 64_000)))
		}},
	}
}

// each runs an attack on several connections until the round ends, again and again.
func (a *Attacker) each(connections int, one func(*Attacker) error) error {
	failed := make(chan error, connections)
	for range connections {
		go func() {
			var err error
			for a.ctx.Err() == nil && err == nil {
				if err = one(a); errors.Is(err, errClosed) {
					err = nil
				}
			}
			failed <- err
		}()
	}
	var err error
	for range connections {
		if e := <-failed; a.ctx.Err() == nil {
			err = errors.Join(err, e)
		}
	}
	return err
}

// errClosed says that the server has closed a connection, as it should.
var errClosed = errors.New("the server closed the connection")

// floodFrames sends frames on a connection until it is closed.
func (a *Attacker) floodFrames(payload func(*http2test.Conn) []byte) error {
	nc, err := a.Server.DialRaw(a.ctx, "http")
	if err != nil {
		return err
	}
	defer nc.Close()
	c, err := http2test.Begin(nc)
	if err != nil {
		return errClosed
	}
	go func() { _, _ = io.Copy(io.Discard, nc) }()
	for {
		n, err := nc.Write(payload(c))
		a.Stats.Bytes.Add(int64(n))
		if err != nil {
			return errClosed
		}
	}
}

// rapidReset opens streams and resets them at once.
func rapidReset(c *http2test.Conn) (all []byte) {
	for range 100 {
		b, stream := c.Open(http2test.Request("GET", "/v1/limits"), http2test.EndStream)
		all = append(append(all, b...), http2test.Frame(http2test.Reset, 0, stream, "\x00\x00\x00\x08")...)
	}
	return all
}

// getAll asks for a path until the connection is closed.
func (a *Attacker) getAll(network, path string) error {
	nc, err := a.Server.DialRaw(a.ctx, network)
	if err != nil {
		return err
	}
	defer nc.Close()
	in := bufio.NewReader(nc)
	for {
		if _, err := nc.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
			return errClosed
		}
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			return errClosed
		}
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		a.Stats.note(strconv.Itoa(response.StatusCode))
		if err != nil || response.Close {
			return errClosed
		}
	}
}

// handshakes makes one handshake of TLS after another.
func handshakes(a *Attacker) error {
	c, err := a.Server.Dial(a.ctx, "tls")
	if err != nil {
		return errClosed
	}
	c.Reset()
	return nil
}

// stall opens 250 streams on each of some connections, whose bodies stop after some bytes.
func (a *Attacker) stall(network string, connections, bytes int) error {
	fields := http2test.Request("POST", "/v1/check", "content-length", "64000")
	if network == "grpc" {
		fields = http2test.GRPC("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit")
	}
	for range connections * a.Size {
		nc, err := a.Server.DialRaw(a.ctx, network)
		if err != nil {
			return err
		}
		defer nc.Close()
		go func() { _ = stallOn(nc, fields, bytes) }()
	}
	sleep(a.ctx, a.Hold)
	return nil
}

func stallOn(nc *target.Conn, fields string, bytes int) error {
	c, err := http2test.Begin(nc)
	if err != nil {
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, nc) }()
	part := strings.Repeat("\x00", bytes/4)
	for range 250 {
		b, stream := c.Open(fields, 0)
		for range 4 {
			b = append(b, http2test.Frame(http2test.Data, 0, stream, part)...)
		}
		if _, err := nc.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// holdOn sends the same on connections to a door, and reads nothing until Hold is over.
func (a *Attacker) holdOn(network string, connections int, b []byte) error {
	for range connections {
		c, err := a.Server.DialRaw(a.ctx, network)
		if err != nil {
			return err
		}
		defer c.Close()
		go func() { _, _ = c.Write(b) }()
	}
	sleep(a.ctx, a.Hold)
	return nil
}
