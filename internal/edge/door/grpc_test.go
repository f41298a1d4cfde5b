package door_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
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
	"cellserver/internal/test/patience"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// Paths of grpcHouse:
const (
	anybody = "/t/Anybody" // needs no token, as the health
	ofUsers = "/t/Known"   // needs one
)

var errUnknown = status.Error(codes.Unimplemented, "unknown")

// proceduresFor answers a message with itself. One that is "panic" panics, and "wait" waits until its call
// ends.
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
			streams: {MaxBytes: 1 << 10, Stream: streamUntil(waiting)},
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

// TestCalls: what is refused is refused with a deadline, too, and a panic ends neither connection nor
// process.
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

// TestRefusalsLeaveNothing: grpc-go would keep the timer of a call with a deadline that the tap refuses.
func TestRefusalsLeaveNothing(t *testing.T) {
	h := openGRPC(t, server.Limits{MaxClients: 10})
	client := h.newCaller(t)
	objects := func() int {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int(stats.HeapObjects)
	}
	refuse := func(calls int) {
		for range calls {
			ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
			if got := say(ctx, client, "/t/Other", "a"); got != "Unimplemented: unknown" {
				t.Fatal(got)
			}
			cancel()
		}
	}
	refuse(100)
	before := objects()
	const calls = 5000
	refuse(calls)
	if more := objects() - before; more > calls/2 {
		t.Errorf("%d calls leave %d objects", calls, more)
	}
}
