package door_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"cellserver/internal/decide"
	"cellserver/internal/decide/clients"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/server"
	"cellserver/internal/redis/commands/commandstest"
	h2 "cellserver/internal/test/http2test"
	"cellserver/internal/test/patience"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Paths of grpcHouse:
const (
	anybody = "/t/Anybody" // needs no token, as the health
	ofUsers = "/t/Known"   // needs one
)

var errUnknown = status.Error(codes.Unimplemented, "unknown")

// proceduresFor answers a message with itself. One that is "panic" panics, and "wait" waits until its call ends.
func proceduresFor(waiting *atomic.Int64) door.Procedures {
	answer := func(c *door.Call, message []byte) ([]byte, error) {
		switch string(message) {
		case "panic":
			panic("a test")
		case "wait":
			waiting.Add(1)
			defer waiting.Add(-1)
			<-c.Done()
			return nil, c.Err()
		}
		return message, c.Conn.Ask(c, c.User, &decide.Requests{})
	}
	admit := func(c *door.Call) (*acl.User, error) {
		if c.Header("admit") == "panic" {
			panic("a test")
		}
		return c.Conn.UserNow(c.Header("token"))
	}
	return door.Procedures{
		All: map[string]door.Procedure{
			anybody: {MaxBytes: 1 << 10, Answer: answer},
			ofUsers: {MaxBytes: door.MaxMessageBytes, Admit: admit, Answer: answer},
		},
		Unknown: errUnknown,
		Code: func(err error) codes.Code {
			switch {
			case errors.Is(err, door.ErrToken):
				return codes.Unauthenticated
			case errors.Is(err, door.ErrFull):
				return codes.ResourceExhausted
			case errors.Is(err, context.Canceled):
				return codes.Canceled
			}
			return codes.PermissionDenied
		},
	}
}

// openGRPC is open for a door of gRPC.
func openGRPC(t *testing.T, limits server.Limits) *house {
	t.Helper()
	h := &house{Harness: commandstest.New()}
	now, log := func() int64 { return time.Now().UnixNano() }, slog.New(slog.DiscardHandler)
	h.server = server.New(server.Config{Now: now, Log: log, Limits: limits})
	h.door = door.NewGRPC(door.Config{
		Name: peer.GRPC, Server: h.server, Users: h.Config.Users, Tokens: &h.tokens, Logins: &clients.Logins{}, Now: now, Log: log,
		NewSession: func(p peer.Peer, c peer.Conn) door.Session { return h.Engine.NewSession(p, c) },
		Admit: func(peer.Peer) string {
			if h.refuses.Load() {
				return "DENIED"
			}
			return ""
		},
	}, proceduresFor(&h.waiting))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.door.Serve(l) }()
	h.url = l.Addr().String()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		h.door.Shutdown(ctx)
		if err := <-ended; err != nil {
			t.Errorf("the door ended with %v", err)
		}
		until(t, "all connections have left", func() bool { return h.server.Stats().Connected == 0 && h.Engine.Clients.Len() == 0 })
	})
	return h
}

// asBytes is a codec for messages that are bytes.
type asBytes struct{}

func (asBytes) Name() string { return "proto" }

func (asBytes) Marshal(m any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(m.(string))}, nil
}

func (asBytes) Unmarshal(data mem.BufferSlice, to any) error {
	*to.(*string) = string(data.Materialize())
	return nil
}

// newCaller returns an honest client.
func (h *house) newCaller(t *testing.T) *grpc.ClientConn {
	t.Helper()
	client, err := grpc.NewClient("passthrough:///"+h.url, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(asBytes{})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// say returns the answer to a message, or the error.
func say(ctx context.Context, client *grpc.ClientConn, path, message string, header ...string) string {
	var answer string
	if err := client.Invoke(metadata.AppendToOutgoingContext(ctx, header...), path, message, &answer); err != nil {
		return status.Code(err).String() + ": " + status.Convert(err).Message()
	}
	return answer
}

// TestCalls: what is refused is refused with a deadline, too, and a panic ends neither connection nor process.
func TestCalls(t *testing.T) {
	h := openGRPC(t, server.Limits{MaxClients: 10})
	client := h.newCaller(t)
	for _, tt := range []struct {
		path, message string
		header        []string
		want          string
	}{
		{ofUsers, "a", nil, "a"},
		{ofUsers, "", nil, ""},
		{anybody, "a", nil, "a"},
		{ofUsers, strings.Repeat("x", door.MaxMessageBytes), nil, "xxx"},
		{ofUsers, strings.Repeat("x", door.MaxMessageBytes+1), nil, "ResourceExhausted: "},
		{anybody, strings.Repeat("x", 1025), nil, "ResourceExhausted: the message has 1025 bytes, more than 1024"},
		{ofUsers, "panic", nil, "Internal: the server failed; its log says why"},
		{ofUsers, "a", []string{"admit", "panic"}, "Internal: the server failed; its log says why"},
		{ofUsers, "a", []string{"origin", "http://localhost"}, "PermissionDenied: requests of web pages are refused"},
		{ofUsers, "a", []string{"token", "wrong"}, "Unauthenticated: the token is unknown"},
		{"/t/Other", "a", nil, "Unimplemented: unknown"},
		{"/other", "a", nil, "Unimplemented: unknown"},
		{ofUsers, "b", nil, "b"},
	} {
		for _, bounded := range []bool{false, true} {
			ctx, cancel := t.Context(), func() {}
			if bounded {
				ctx, cancel = patience.Context(ctx)
			}
			if got := say(ctx, client, tt.path, tt.message, tt.header...); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s %.20q %v, bounded %t: got %.100s, want %s", tt.path, tt.message, tt.header, bounded, got, tt.want)
			}
			cancel()
		}
	}
	h.refuses.Store(true)
	if got := say(t.Context(), client, ofUsers, "a"); got != "PermissionDenied: DENIED" {
		t.Errorf("in protected mode: %s", got)
	}
	if n := h.server.Stats().Accepted; n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestNothingIsDecompressed: no decompressor is linked, which grpc-go would use by itself.
func TestNothingIsDecompressed(t *testing.T) {
	for _, name := range []string{"gzip", "deflate", "snappy", "zstd"} {
		if encoding.GetCompressor(name) != nil {
			t.Errorf("%s is linked", name)
		}
	}
}

// TestCallsEnd: one that waits ends with its client's, with its connection by CLIENT KILL, and with the door.
func TestCallsEnd(t *testing.T) {
	h := openGRPC(t, server.Limits{MaxClients: 10})
	for _, tt := range []struct {
		name string
		end  func(cancel func())
	}{
		{"the caller", func(cancel func()) { cancel() }},
		{"a kill", func(func()) {
			for _, c := range h.Engine.Clients.All(func(c *clients.Client) bool { return c.Peer.Door == peer.GRPC }) {
				c.Conn.Kill()
			}
		}},
		{"the door", func(func()) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			h.door.Shutdown(ctx)
		}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		client, ended := h.newCaller(t), make(chan string, 1)
		go func() { ended <- say(ctx, client, ofUsers, "wait") }()
		until(t, tt.name+" can end a call", func() bool { return h.waiting.Load() == 1 })
		tt.end(cancel)
		if got := <-ended; !strings.HasPrefix(got, "Canceled") && !strings.HasPrefix(got, "Unavailable") {
			t.Errorf("%s: %s", tt.name, got)
		}
		until(t, tt.name+" has ended it", func() bool { return h.waiting.Load() == 0 })
		cancel()
	}
}

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

// serveGRPC serves pipes by a door of slow sessions.
func serveGRPC(t *testing.T) (p pipes, d *door.Door, on *server.Server) {
	t.Helper()
	now, log := func() int64 { return time.Now().UnixNano() }, slog.New(slog.DiscardHandler)
	on = server.New(server.Config{Now: now, Log: log, Limits: server.Limits{MaxClients: 10}})
	d = door.NewGRPC(door.Config{
		Name: peer.GRPC, Server: on, Users: acl.NewUsers(catalog.New().ForRules()), Tokens: &door.Tokens{}, Now: now, Log: log,
		NewSession: func(peer.Peer, peer.Conn) door.Session { return slowSession{new(atomic.Int64), new(atomic.Int64)} },
		Admit:      func(peer.Peer) string { return "" },
	}, proceduresFor(&atomic.Int64{}))
	p = pipes{make(chan net.Conn), make(chan struct{})}
	go func() { _ = d.Serve(p) }()
	return p, d, on
}

// TestGRPCTimes: how long a client of gRPC stays that does something now and then, or nothing.
func TestGRPCTimes(t *testing.T) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	ping := string(h2.Frame(h2.Ping, 0, 0, "12345678"))
	for _, tt := range []struct {
		name, begins, then string
		every              time.Duration // 0 for never
		unread             bool
		stays, leaves      time.Duration
	}{
		{"sends nothing", "", "", 0, false, 9 * time.Second, 11 * time.Second},
		{"sends half a preface", preface[:10], "", 0, false, 9 * time.Second, 11 * time.Second},
		{"asks in HTTP/1", "GET / HTTP/1.1\r\n", "x", time.Second, false, 9 * time.Second, 11 * time.Second},
		{"answers no ping", preface, "", 0, false, 49 * time.Second, 52 * time.Second},
		{"pings as Envoy does", preface, ping, 10 * time.Second, false, 170 * time.Second, 0},
		{"pings too often", preface, ping, time.Second, false, 0, 30 * time.Second},
		{"is idle", preface, ping, 20 * time.Second, false, 179 * time.Second, 6 * time.Minute},
		{"reads nothing", preface, ping, 10 * time.Second, true, 0, 61 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, d, on := serveGRPC(t)
			theirs, ours := net.Pipe()
			p.ends <- ours
			var all sync.WaitGroup
			all.Go(func() {
				_, err := io.WriteString(theirs, tt.begins)
				for err == nil && tt.every > 0 {
					time.Sleep(tt.every)
					_, err = io.WriteString(theirs, tt.then)
				}
			})
			if !tt.unread {
				all.Go(func() { _, _ = io.Copy(io.Discard, theirs) })
			}
			time.Sleep(tt.stays)
			synctest.Wait()
			if n := on.Stats().Connected; tt.stays > 0 && n != 1 {
				t.Errorf("one that %s: %d clients after %v", tt.name, n, tt.stays)
			}
			if tt.leaves > 0 {
				time.Sleep(tt.leaves - tt.stays)
				synctest.Wait()
				if n := on.Stats().Connected; n != 0 {
					t.Errorf("one that %s: %d clients after %v", tt.name, n, tt.leaves)
				}
			}
			_ = theirs.Close()
			all.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			d.Shutdown(ctx)
			time.Sleep(time.Minute) // for timers
		})
	}
}

// queued writes in the background.
type queued struct {
	net.Conn
	queue chan []byte
}

func (q queued) Write(b []byte) (int, error) {
	q.queue <- b
	return len(b), nil
}

func (q queued) run() {
	for b := range q.queue {
		_, _ = q.Conn.Write(b)
	}
}

// TestLateMessages: a message that is not whole in ten seconds ends its stream, not its connection.
func TestLateMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d, on := serveGRPC(t)
		theirs, ours := net.Pipe()
		p.ends <- ours
		var ends atomic.Int64
		q := queued{theirs, make(chan []byte, 10)}
		go q.run()
		defer close(q.queue)
		c, _ := h2.Begin(q)
		b, stream := c.Open(h2.GRPC(ofUsers), 0)
		_, _ = c.Write(append(b, h2.Frame(h2.Data, 0, stream, "\x00\x00\x00\x00\x02a")...))
		go func() {
			for {
				r, err := c.Next()
				if err != nil {
					return
				}
				if r.Ends() {
					ends.Add(1)
				}
			}
		}()
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if n := ends.Load(); n != 0 {
			t.Errorf("%d streams ended in 9 s", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := ends.Load(); n != 1 || on.Stats().Connected != 1 {
			t.Errorf("%d streams ended in 11 s, %d clients", n, on.Stats().Connected)
		}
		_ = theirs.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d.Shutdown(ctx)
		time.Sleep(time.Minute)
	})
}
