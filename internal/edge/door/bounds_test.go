package door_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/decide/clients"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/server"
	"cellserver/internal/test/patience"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// TestManyRequests: requests under way are bounded, as those of HTTP/2 need few connections.
func TestManyRequests(t *testing.T) {
	const most = 250 // of a connection, and so of a small server
	h := open(t, server.Limits{MaxClients: 2})
	waiting := newClient(t, true)
	h.get(t, waiting, throttle, "")
	var all sync.WaitGroup
	for range most {
		all.Go(func() {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+slow, http.NoBody)
			if response, err := waiting.Do(r); err == nil {
				response.Body.Close()
			}
		})
	}
	until(t, "all wait", func() bool { return h.waiting.Load() == most })
	if got := h.get(t, h.client, throttle, ""); !strings.Contains(got, "--maxclients") {
		t.Errorf("one more request got %s", got)
	}
	waiting.Transport.(*http.Transport).CloseIdleConnections()
	for _, c := range h.Engine.Clients.All(func(*clients.Client) bool { return true }) {
		c.Conn.Kill()
	}
	all.Wait()
	until(t, "nobody waits", func() bool { return h.waiting.Load() == 0 })
	if got := h.get(t, h.client, throttle, ""); strings.Contains(got, "--maxclients") {
		t.Errorf("then: %s", got)
	}
}

// slowSession yields while it is asked, and records how many are at once.
type slowSession struct{ now, most *atomic.Int64 }

func (s slowSession) Ask(decide.Ask) peer.Status {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
		continue
	}
	for range 100 {
		runtime.Gosched()
	}
	return peer.NeedInput
}

func (slowSession) Become(*acl.User)    {}
func (slowSession) HungUp(peer.Hangup)  {}
func (slowSession) HoldsInput(_, _ int) {}
func (slowSession) HoldsOutput(int)     {}
func (slowSession) Name() string        { return "" }
func (slowSession) Close()              {}

// serve serves l by a door of slow sessions.
func serve(t *testing.T, l net.Listener, s slowSession) (*door.Door, *server.Server) {
	t.Helper()
	now, log := func() int64 { return time.Now().UnixNano() }, slog.New(slog.DiscardHandler)
	on := server.New(server.Config{Now: now, Log: log, Limits: server.Limits{MaxClients: 10}})
	d := door.New(door.Config{
		Name: peer.HTTP, Server: on, Users: acl.NewUsers(catalog.New().ForRules()), Tokens: &door.Tokens{}, Now: now, Log: log,
		NewSession: func(peer.Peer, peer.Conn) door.Session { return s },
		Admit:      func(peer.Peer) string { return "" },
	}, http.HandlerFunc(answer))
	go func() { _ = d.Serve(l) }()
	t.Cleanup(func() { d.Shutdown(t.Context()) }) // whose end has it end at once
	return d, on
}

// TestTurns: requests of a connection are executed one after another.
func TestTurns(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var now, most atomic.Int64
	serve(t, l, slowSession{&now, &most})
	client, h := newClient(t, true), house{url: "http://" + l.Addr().String() + "/"}
	h.get(t, client, "first", "")
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() { h.get(t, client, "more", "") })
	}
	all.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d at once", n)
	}
}

// pipes accepts one end of a pipe.
type pipes struct {
	ends   chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case end := <-p.ends:
		return end, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { close(p.closed); return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestUnreadAnswers: a client of HTTP/2 that reads nothing is closed.
func TestUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		p := pipes{make(chan net.Conn), make(chan struct{})}
		d, on := serve(t, p, slowSession{&now, &most})
		theirs, ours := net.Pipe()
		p.ends <- ours
		go func() {
			_, _ = io.WriteString(theirs, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		}()
		synctest.Wait()
		if n := on.Stats().Connected; n != 1 {
			t.Errorf("%d clients", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := on.Stats().Connected; n != 0 {
			t.Errorf("after a minute: %d clients", n)
		}
		theirs.Close()
		d.Shutdown(t.Context())
	})
}

// TestTraffic is counted while a connection lasts.
func TestTraffic(t *testing.T) {
	h := open(t, server.Limits{MaxClients: 1})
	h.get(t, h.client, throttle, "")
	before := h.server.Stats()
	h.get(t, h.client, throttle, "")
	if !patience.Until(func() bool { // an answer may arrive before it is counted
		s := h.server.Stats()
		return before.Received > 0 && s.Received > before.Received && s.Sent > before.Sent && s.Connected == 1
	}) {
		t.Errorf("%+v, then %+v", before, h.server.Stats())
	}
}
