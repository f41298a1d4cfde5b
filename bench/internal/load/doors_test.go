package load

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const testMark = "#key-digits#"

// doorCommands are one of HTTP/1.1 and one of gRPC.
func doorCommands(t *testing.T) map[string]Command {
	t.Helper()
	get, err := NewGet("/check?key=u:"+KeyMark, "Host: localhost")
	if err != nil {
		t.Fatal(err)
	}
	call, err := NewCall("/service/Method", []byte("u:"+testMark), testMark, "a call")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Command{"HTTP": get, "gRPC": call.LimitedBy(2)}
}

// webServer serves HTTP/1.1 and HTTP/2 without TLS.
func webServer(t *testing.T, h http.HandlerFunc) *server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return &server{addr: netip.MustParseAddrPort(s.Listener.Addr().String())}
}

// answerKey limits every fourth call and notes the key's digits.
func answerKey(n *atomic.Int64, keys *sync.Map, status string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		limited := n.Add(1)%4 == 0
		if r.ProtoMajor == 1 {
			keys.Store(r.URL.Query().Get("key"), true)
			if limited {
				w.WriteHeader(http.StatusTooManyRequests)
			}
			_, _ = io.WriteString(w, strings.Repeat("x", 100))
			return
		}
		body, _ := io.ReadAll(r.Body)
		keys.Store(string(body[5:]), true)
		w.Header().Set("Trailer", "Grpc-Status")
		message := "\x00\x00\x00\x00\x02\x08\x01"
		if limited {
			message = "\x00\x00\x00\x00\x02\x08\x02"
		}
		_, _ = io.WriteString(w, message)
		w.Header().Set("Grpc-Status", status)
	}
}

func TestDoorsAnswersAreCounted(t *testing.T) {
	for name, command := range doorCommands(t) {
		var n atomic.Int64
		var keys sync.Map
		s := webServer(t, answerKey(&n, &keys, "0"))
		r, err := open(t, s, Config{Conns: 1, Pipeline: 1, Command: command, Keys: Keys{Dist: Sequential, Count: 100}}).Run(t.Context(), Plan{Requests: 400})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for key := range 100 {
			if _, ok := keys.Load(fmt.Sprintf("u:%012d", key)); !ok {
				t.Errorf("%s: no request for key %d", name, key)
			}
		}
		if r.Requests != 400 || n.Load() != 400 || r.Limited != 100 {
			t.Errorf("%s: %d replies, %d requests, %d limited", name, r.Requests, n.Load(), r.Limited)
		}
	}
}

// TestDoorsManyAtOnce: several connections, and of gRPC several streams, fewer than 250 of a connection.
func TestDoorsManyAtOnce(t *testing.T) {
	for name, command := range doorCommands(t) {
		var n atomic.Int64
		s := webServer(t, answerKey(&n, &sync.Map{}, "0"))
		for _, rate := range []float64{0, 1e6} {
			n.Store(0)
			r, err := open(t, s, Config{Conns: 5, Pipeline: 20, Threads: 2, Command: command}).Run(t.Context(), Plan{Requests: 1000, Rate: rate})
			if err != nil || r.Requests != 1000 || r.Limited != 250 {
				t.Errorf("%s: %+v: %v", name, r, err)
			}
		}
	}
}

func TestDoorsErrorsFail(t *testing.T) {
	bad := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such limit", http.StatusNotFound) }
	for name, command := range doorCommands(t) {
		for _, h := range []http.HandlerFunc{bad, answerKey(&atomic.Int64{}, &sync.Map{}, "14")} {
			_, err := open(t, webServer(t, h), Config{Conns: 1, Pipeline: 1, Command: command}).Run(t.Context(), Plan{Requests: 1})
			if name == "HTTP" && err == nil {
				continue // it has no second status
			}
			if !errors.Is(err, errErrorReply) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// FuzzDoors: whatever a server sends, a dialect counts at most what is there, and does not read beyond it.
func FuzzDoors(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), false)
	f.Add([]byte("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"), false)
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x01\x05\x00\x00\x00\x01\x88"), true)
	f.Fuzz(func(t *testing.T, b []byte, isGRPC bool) {
		command := Command{get: true}
		if isGRPC {
			command = Command{call: &call{}}
		}
		n, used, err := command.newDialect(0).feed(b)
		if used > len(b) || n.limited > len(b) || err == nil && n.replies > len(b) {
			t.Errorf("%d of %d bytes, %+v: %v", used, len(b), n, err)
		}
	})
}
