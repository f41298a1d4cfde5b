package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/httpapi"
	"cellserver/internal/edge/server"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/racetest"
	"cellserver/internal/wire/peer"
)

// goroutines has net/http serve all.
func goroutines(c *server.Config) { c.IOThreads = 0 }

const checkU = "GET /v1/check/api?key=u HTTP/1.1\r\nHost: localhost\r\n\r\n"

func posting(body string, lines ...string) string {
	return fmt.Sprintf("POST /v1/check HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", strings.Join(append(lines, ""), "\r\n"), len(body), body)
}

// dial opens a connection that ends with the test.
func (h *harness) dial(t testing.TB) net.Conn {
	t.Helper()
	nc, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return patience.Conn{Conn: nc}
}

func write(t testing.TB, nc net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatal(err)
	}
}

// next reads an answer: its status, fields and body.
func next(t testing.TB, in *bufio.Reader, method string) string {
	t.Helper()
	got, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(got.Body)
	_ = got.Body.Close()
	if got.Header.Get("Date") == "" && got.StatusCode != http.StatusContinue || err != nil {
		t.Errorf("%+v: no Date, or %v", got.Header, err)
	}
	got.Header.Del("Date")
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(got.Header)) {
		lines = append(lines, name+": "+strings.Join(got.Header[name], ", "))
	}
	return fmt.Sprintf("%s %s %t %d\n%s\n%s", got.Proto, got.Status, got.Close, got.ContentLength, strings.Join(lines, "\n"), body)
}

// TestServersAnswerAlike: an event loop and net/http answer the same to the same requests.
func TestServersAnswerAlike(t *testing.T) {
	t.Parallel()
	loops, plain := withLimits(t, options{}), withLimits(t, options{server: goroutines})
	for _, request := range []string{
		checkU, strings.Replace(checkU, "GET", "HEAD", 1), strings.Replace(checkU, "key=u", "key=u&quantity=100", 1), strings.Replace(checkU, "key=u", "key=%zz", 1),
		strings.Replace(checkU, "/v1/check/api", "/v1/check/%61pi", 1), strings.Replace(checkU, "localhost", "evil.example", 1), strings.Replace(checkU, "api", "none", 1),
		strings.Replace(checkU, "\r\n\r\n", "\r\nOrigin: http://localhost\r\n\r\n", 1), strings.Replace(checkU, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1),
		strings.Replace(checkU, "key=u", "by=ip", 1), strings.Replace(checkU, "/v1/check", "/t/"+token+"/v1/check", 1), strings.Replace(checkU, "/v1/check/api", "/v1/chec", 1),
		posting(`{"limit":"api","key":"u"}`), posting(`{"limit":"api","key":"u"`), posting(``), posting(`{"limit":"api","key":"u"}`, "Content-Type: text/plain", "Connection: close"),
		posting(`{"limit":"api","key":"v","quantity":17}`), strings.Replace(posting(`{}`), "POST", "GET", 1), strings.Replace(posting(`{}`, "Connection: close"), "/v1/check", "/v1/check/api", 1),
		"GET /v1/limits HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /v1/limits/api/explain?key=u HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		answer := func(h *harness) string {
			nc := h.dial(t)
			write(t, nc, request)
			method, _, _ := strings.Cut(request, " ")
			return next(t, bufio.NewReader(nc), method)
		}
		if on, want := answer(loops), answer(plain); on != want {
			t.Errorf("%q:\n%s\nwant\n%s", request, on, want)
		}
	}
}

// TestHandedOver: what a loop leaves to net/http is answered in its place, and so is all behind it, on a
// connection that is one client.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	body := `{"limit":"api","key":"u"}`
	chunked := strings.Replace(posting("", "Transfer-Encoding: chunked"), "Content-Length: 0\r\n", "", 1) + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	for name, tt := range map[string]struct {
		requests []string
		left     []int
	}{
		"a list":       {[]string{checkU, "GET /v1/limits HTTP/1.1\r\nHost: localhost\r\n\r\n", checkU}, []int{15, -1, 14}},
		"Expect":       {[]string{checkU, posting(body, "Expect: 100-continue"), checkU, posting(body)}, []int{15, -100, 14, 13, 12}},
		"a long body":  {[]string{checkU, posting(body + strings.Repeat(" ", 20<<10)), checkU}, []int{15, 14, 13}},
		"odd":          {[]string{checkU, strings.Replace(checkU, "/v1", "/v1/../v1", 1), strings.Replace(checkU, "Host", "A: \x80\r\nHost", 1), checkU}, []int{15, -1, 14, 13}},
		"chunks":       {[]string{checkU, chunked}, []int{15, 14}},
		"HTTP/1.0":     {[]string{checkU, strings.Replace(checkU, "1.1", "1.0", 1)}, []int{15, 14}},
		"a wrong path": {[]string{checkU, strings.Replace(checkU, "/v1", "//v1", 1), checkU}, []int{15, -1, 14}},
	} {
		h := withLimits(t, options{})
		nc := h.dial(t)
		write(t, nc, strings.Join(tt.requests, ""))
		in := bufio.NewReader(nc)
		for i, left := range tt.left {
			got := next(t, in, "GET")
			if want := fmt.Sprintf(`"remaining":%d`, left); left >= 0 && !strings.Contains(got, want) || left == -100 && !strings.Contains(got, " 100 Continue") {
				t.Errorf("%s: answer %d lacks %s: %s", name, i, want, got)
			}
		}
		st, ends := h.server.Stats(), name == "chunks" || name == "HTTP/1.0"
		if st.Accepted != 1 || !ends && (st.Connected != 1 || h.Engine.Clients.Len() != 2) { // beside h.resp
			t.Errorf("%s: %+v, %d clients", name, st, h.Engine.Clients.Len())
		}
		_ = nc.Close()
		if !patience.Until(func() bool { return h.server.Stats().Connected == 0 && h.Engine.Clients.Len() == 1 }) {
			t.Errorf("%s: it stays", name)
		}
	}
}

// TestWrongTokenOnALoop is counted once, and has its client wait; the connection goes on.
func TestWrongTokenOnALoop(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{users: anyone + "user app on nopass ~* +@all\n"})
	nc := h.dial(t)
	right := strings.Replace(checkU, "\r\n\r\n", "\r\nX-Cellserver-Token: "+token+"\r\n\r\n", 1)
	write(t, nc, right+strings.Replace(right, token, "wrong-token-000000", 1)+right)
	in := bufio.NewReader(nc)
	for i, want := range []string{" 200 ", " 401 ", " 200 "} {
		if got := next(t, in, "GET"); !strings.Contains(got, want) {
			t.Errorf("answer %d: %s", i, got)
		}
	}
	if n, _ := h.door.Logins.Total(); n != 1 {
		t.Errorf("%d failed logins", n)
	}
}

// waiting is a session whose requests for the key slow wait until the client is gone, and panic for panic.
type waiting struct {
	door.Session
	left *atomic.Int64 // sessions that were told so
}

func (w waiting) Ask(a decide.Ask) peer.Status {
	if r, ok := a.(*decide.Requests); ok {
		switch string(r.All[0].Key) {
		case "slow":
			return peer.Waiting
		case "panic":
			panic("a defect")
		}
	}
	return w.Session.Ask(a)
}

func (w waiting) HungUp(h peer.Hangup) {
	w.left.Add(1)
	w.Session.HungUp(h)
}

func withWaiting(t *testing.T) (*harness, *atomic.Int64) {
	t.Helper()
	var left atomic.Int64
	return withLimits(t, options{door: func(c *door.Config) {
		of := c.NewSession
		c.NewSession = func(p peer.Peer, conn peer.Conn) door.Session { return waiting{of(p, conn), &left} }
	}}), &left
}

// TestHangUpWhileWaiting: who leaves while a request waits frees its place, whether it closes one direction
// or both.
func TestHangUpWhileWaiting(t *testing.T) {
	t.Parallel()
	h, left := withWaiting(t)
	slow := strings.Replace(checkU, "key=u", "key=slow", 1)
	for i, leave := range []func(net.Conn) error{net.Conn.Close, func(nc net.Conn) error { return nc.(patience.Conn).CloseWrite() }} {
		nc := h.dial(t)
		write(t, nc, checkU+slow+checkU)
		next(t, bufio.NewReader(nc), "GET")
		if err := leave(nc); err != nil {
			t.Fatal(err)
		}
		if !patience.Until(func() bool { return left.Load() > int64(i) && h.server.Stats().Connected == 0 }) {
			t.Errorf("%d: %d told, %d clients", i, left.Load(), h.server.Stats().Connected)
		}
	}
}

// TestKilledOnALoop: CLIENT KILL ends a connection that waits, and one that does not.
func TestKilledOnALoop(t *testing.T) {
	t.Parallel()
	h, _ := withWaiting(t)
	for _, request := range []string{checkU, strings.Replace(checkU, "key=u", "key=slow", 1)} {
		nc := h.dial(t)
		write(t, nc, checkU+request)
		next(t, bufio.NewReader(nc), "GET")
		if !patience.Until(func() bool { return strings.Contains(h.say(t, "CLIENT LIST"), nc.LocalAddr().String()) }) {
			t.Fatal("CLIENT LIST does not have it")
		}
		h.say(t, "CLIENT KILL ADDR "+nc.LocalAddr().String())
		if _, err := io.Copy(io.Discard, nc); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Error(err)
		}
		if !patience.Until(func() bool { return h.server.Stats().Connected == 0 }) {
			t.Error("it stays")
		}
	}
}

// TestPanicOnALoop ends the connection alone.
func TestPanicOnALoop(t *testing.T) {
	t.Parallel()
	h, _ := withWaiting(t)
	other := h.dial(t)
	in := bufio.NewReader(other)
	write(t, other, checkU)
	next(t, in, "GET")
	nc := h.dial(t)
	write(t, nc, strings.Replace(checkU, "key=u", "key=panic", 1))
	if got, err := io.ReadAll(nc); len(got) > 0 {
		t.Errorf("got %q, %v", got, err)
	}
	write(t, other, checkU)
	if got := next(t, in, "GET"); !strings.Contains(got, " 200 ") {
		t.Error(got)
	}
	if st := h.server.Stats(); st.Panics != 1 || st.Connected != 1 {
		t.Errorf("%+v", st)
	}
}

// TestDeadlinesOfLoops: a connection may be silent for three minutes between requests, and for ten seconds
// before or within one; and half a minute without reading.
func TestDeadlinesOfLoops(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sent   string
		within time.Duration
		reason string
	}{
		"nothing":     {"", 10 * time.Second, "handshake"},
		"half":        {checkU[:30], 10 * time.Second, "handshake"},
		"half behind": {checkU + checkU[:30], 10 * time.Second, "input"},
		"half a body": {checkU + strings.TrimSuffix(posting("{}"), "}"), 10 * time.Second, "input"},
		"idle":        {checkU, 3 * time.Minute, "idle"},
		"unread":      {strings.Repeat(checkU, 40_000), 30 * time.Second, "output"},
	} {
		h := withLimits(t, options{})
		nc := h.dial(t)
		go func() { _, _ = io.WriteString(nc, tt.sent) }()
		in := bufio.NewReader(nc)
		if strings.HasPrefix(tt.sent, checkU) && name != "unread" {
			next(t, in, "GET")
		}
		if name == "unread" {
			if !patience.Until(func() bool { return h.outputOf(t, nc) > 64<<10 }) {
				t.Error("its answers do not wait")
			}
		}
		if !patience.Until(func() bool {
			st := h.server.Stats()
			return st.Connected == 1 && st.Received >= uint64(min(len(tt.sent), 1<<10))
		}) {
			t.Fatalf("%s: not received", name)
		}
		h.pass(t, tt.within-time.Second)
		if n := h.server.Stats().Connected; n != 1 {
			t.Errorf("%s: closed early: %+v", name, h.server.Stats().Closed)
		}
		if !patience.Until(func() bool {
			h.pass(t, 2*time.Second)
			return h.server.Stats().Closed[tt.reason] == 1
		}) {
			t.Errorf("%s: %+v", name, h.server.Stats().Closed)
		}
	}
}

// pass moves the clock, and has the loops see it.
func (h *harness) pass(t *testing.T, d time.Duration) {
	t.Helper()
	h.Clock.Advance(int64(d))
	ctx, cancel := patience.Context(context.Background())
	defer cancel()
	for range 2 { // the first may be of a round that has read the clock before
		if err := h.server.Probe(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// outputOf returns the bytes of answers that a connection has not taken.
func (h *harness) outputOf(t *testing.T, nc net.Conn) (bytes int) {
	t.Helper()
	for _, line := range strings.Split(h.say(t, "CLIENT LIST"), "\n") {
		if strings.Contains(line, nc.LocalAddr().String()) {
			_, rest, _ := strings.Cut(line, " omem=")
			_, _ = fmt.Sscan(rest, &bytes)
		}
	}
	return bytes
}

type noConn struct{}

func (noConn) Wake()  {}
func (noConn) Kill()  {}
func (noConn) Evict() {}

// TestRequestIsCopiedOnce: from bytes in to bytes out, the copy of a request's head is all that is allocated.
func TestRequestIsCopiedOnce(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates")
	}
	o := options{engine: []func(*commands.Config){commandstest.Standing}}
	h := newHarness(t, &o)
	h.resp = h.Session()
	h.say(t, "CL.LIMIT SET api 999999 1000000 60", "CL.LIMIT SET full 0 1 86400", "CL.CHECK full u")
	api := httpapi.New(httpapi.Config{Limits: h.Config.NamedLimits})
	s := api.NewSession(door.New(h.doorConfig(t, &o), api), peer.Peer{Addr: "127.0.0.1:5000", Door: peer.HTTP}, noConn{})
	defer s.Close()
	var out []byte
	for _, request := range []string{checkU, strings.Replace(checkU, "api", "full", 1), posting(`{"limit":"api","key":"u"}`)} {
		in := []byte(request)
		n := testing.AllocsPerRun(100, func() {
			consumed, answer, status := s.Feed(in, out[:0])
			if consumed != len(in) || status != peer.NeedInput {
				t.Fatalf("consumed %d, status %d", consumed, status)
			}
			out = answer
		})
		if n != 1 {
			t.Errorf("%q: %v allocations", request, n)
		}
	}
}
