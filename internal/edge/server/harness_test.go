package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cellserver/internal/test/certtest"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
	"cellserver/internal/wire/peer"
)

type testServer struct {
	*Server
	network, addr string
	tls           *tls.Config         // the clients'; nil without
	pipes         *pipeListener       // dialled instead; nil without
	pass          func(time.Duration) // lets time pass, where it does not by itself
	log           *processtest.Log
	done          chan error

	mu       sync.Mutex // guards sessions
	sessions []*observed
}

func (s *testServer) record(session peer.Session, p peer.Peer, conn peer.Conn) *observed {
	w := &observed{Session: session, peer: p, conn: conn}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = append(s.sessions, w)
	return w
}

// all returns all sessions so far.
func (s *testServer) all() []*observed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sessions)
}

// checkEnds expects each session to be closed once, and not used afterwards.
func (s *testServer) checkEnds(t *testing.T) {
	t.Helper()
	for i, w := range s.all() {
		if closes, faults := w.closes.Load(), w.faults.Load(); closes != 1 || faults != 0 {
			t.Errorf("session %d: got %d closes, and %d calls that were concurrent or late", i, closes, faults)
		}
	}
}

func start(t *testing.T, ioThreads int, l net.Listener, change func(*Config)) *testServer {
	t.Helper()
	s := newServer(l, ioThreads, change)
	s.serve(t, func() error { return s.Serve(l) })
	return s
}

func startTLS(t *testing.T, ioThreads int, l net.Listener, change func(*Config)) *testServer {
	t.Helper()
	ca := certtest.NewCA(t)
	s := newServer(l, ioThreads, change)
	s.tls = &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", DynamicRecordSizingDisabled: true}
	config := &tls.Config{Certificates: []tls.Certificate{ca.Pair(t, "server")}, ClientCAs: ca.Pool, ClientAuth: tls.VerifyClientCertIfGiven}
	config.SessionTicketsDisabled = s.pipes != nil // they would be pending, too
	s.serve(t, func() error { return s.ServeTLS(l, config) })
	return s
}

func newServer(l net.Listener, ioThreads int, change func(*Config)) *testServer {
	s := &testServer{network: l.Addr().Network(), addr: l.Addr().String(), log: &processtest.Log{}, done: make(chan error, 1)}
	s.pipes, _ = l.(*pipeListener)
	c := Config{
		NewSession: func(_ peer.Peer, conn peer.Conn) peer.Session { return &echoes{conn: conn} },
		IOThreads:  ioThreads,
		Limits:     Limits{MaxClients: 100, MaxOutputBytes: 32 << 20, OutputTimeout: patience.Forever},
		Now:        monotonicNs(),
		Log:        slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&c)
	}
	newSession := c.NewSession
	c.NewSession = func(p peer.Peer, conn peer.Conn) peer.Session { return s.record(newSession(p, conn), p, conn) }
	s.Server = New(c)
	return s
}

func monotonicNs() func() int64 {
	began := time.Now()
	return func() int64 { return began.UnixNano() + int64(time.Since(began)) }
}

// serve serves until the end of the test.
func (s *testServer) serve(t *testing.T, serve func() error) {
	t.Helper()
	go func() { s.done <- serve() }()
	t.Cleanup(func() {
		ctx, cancel := patience.Context(context.Background())
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-s.done; !errors.Is(err, ErrClosed) {
			t.Errorf("Serve: got %v, want ErrClosed", err)
		}
		s.checkEnds(t)
	})
}

// starter starts a server with a given driver and network.
type starter func(change func(*Config)) *testServer

// onEachDriver runs a test with goroutines and with event loops, over TCP, a unix socket and TLS.
func onEachDriver(t *testing.T, test func(t *testing.T, start starter)) {
	t.Helper()
	for _, network := range []string{"tcp", "unix"} {
		for _, ioThreads := range []int{0, 1, 2} {
			t.Run(fmt.Sprintf("%s/io-threads=%d", network, ioThreads), func(t *testing.T) {
				test(t, func(change func(*Config)) *testServer {
					t.Helper()
					return start(t, ioThreads, listen(t, network), change)
				})
			})
		}
	}
	for _, ioThreads := range []int{0, 1} {
		t.Run(fmt.Sprintf("tls/io-threads=%d", ioThreads), func(t *testing.T) {
			test(t, func(change func(*Config)) *testServer {
				t.Helper()
				return startTLS(t, ioThreads, listen(t, "tcp"), change)
			})
		})
	}
}

// onEachServer is onEachDriver with one server.
func onEachServer(t *testing.T, change func(*Config), test func(t *testing.T, s *testServer)) {
	t.Helper()
	onEachDriver(t, func(t *testing.T, start starter) { test(t, start(change)) })
}

func listen(t *testing.T, network string) net.Listener {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s") // a path has at most 108 bytes
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s *testServer) dial(t *testing.T) net.Conn {
	t.Helper()
	nc := s.dialRaw(t)
	if s.tls == nil {
		return nc
	}
	client := tls.Client(nc, s.tls)
	if s.pipes != nil { // on a pipe all unread bytes are pending
		_ = client.Handshake()
		s.pass(0)
	}
	return client
}

func (s *testServer) dialRaw(t *testing.T) net.Conn {
	t.Helper()
	if s.pipes != nil {
		nc := s.pipes.dial()
		t.Cleanup(func() { nc.Close() })
		return nc
	}
	nc, err := net.Dial(s.network, s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if tcp, ok := nc.(*net.TCPConn); ok { // else it grows beyond floodBytes
		if err := tcp.SetReadBuffer(64 << 10); err != nil {
			t.Fatal(err)
		}
	}
	return patience.Conn{Conn: nc}
}

// dialAndNotRead connects a client that requests 50 MB and reads none of it.
func (s *testServer) dialAndNotRead(t *testing.T) {
	t.Helper()
	nc := s.dial(t)
	ask(t, nc, "a\n"+strings.Repeat("long\n", 500), "a\n")
}

// awaitClients waits for a number of connected clients. One that has just dialled may not count yet.
func (s *testServer) awaitClients(t *testing.T, want int) {
	t.Helper()
	s.await(t, func(st Stats) bool { return st.Connected == want })
}

func (s *testServer) await(t *testing.T, cond func(Stats) bool) {
	t.Helper()
	if !patience.Until(func() bool { return cond(s.Stats()) }) {
		t.Fatalf("the server is still at %+v", s.Stats())
	}
}

// awaitStall waits until the server stops sending for now.
func (s *testServer) awaitStall(t *testing.T) {
	t.Helper()
	sent := uint64(0)
	s.await(t, func(st Stats) bool {
		stalled := st.Sent > 0 && st.Sent == sent
		sent = st.Sent
		return stalled
	})
}

func ask(t *testing.T, nc net.Conn, send, want string) {
	t.Helper()
	write(t, nc, send)
	expect(t, nc, want)
}

func discard(t *testing.T, nc net.Conn, n int64) {
	t.Helper()
	if got, err := io.CopyN(io.Discard, nc, n); err != nil {
		t.Fatalf("got %d bytes, %v, want %d", got, err, n)
	}
}

func write(t *testing.T, nc net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func expect(t *testing.T, nc net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(nc, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

// ended expects the rest of a connection and its end.
func ended(t *testing.T, nc net.Conn, want string) {
	t.Helper()
	got, err := io.ReadAll(nc)
	if err != nil || string(got) != want {
		t.Errorf("at the end: got %q, %v, want %q", got, err, want)
	}
}

// greet connects a client that has got one reply.
func (s *testServer) greet(t *testing.T) net.Conn {
	t.Helper()
	nc := s.dial(t)
	ask(t, nc, "a\n", "a\n")
	return nc
}

func closeWrite(t *testing.T, nc net.Conn) {
	t.Helper()
	if err := nc.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
}

// changeLimits changes the limits of a running server.
func (s *testServer) changeLimits(t *testing.T, change func(*Limits)) {
	t.Helper()
	limits := s.Limits()
	change(&limits)
	s.SetLimits(limits)
	if got := s.Limits(); got != limits {
		t.Errorf("Limits: got %+v, want %+v", got, limits)
	}
}
