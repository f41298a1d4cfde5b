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

// webCommands are a GET and a POST.
func webCommands(t *testing.T) map[string]Command {
	t.Helper()
	get, err := NewGet("/check?key=u:"+KeyMark, "Host: localhost")
	if err != nil {
		t.Fatal(err)
	}
	post, err := NewPost("/check", "u:"+KeyMark, "Host: localhost")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Command{"GET": get, "POST": post}
}

func webServer(t *testing.T, h http.HandlerFunc) *server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return &server{addr: netip.MustParseAddrPort(s.Listener.Addr().String())}
}

// answerKey limits every fourth call and notes the key's digits.
func answerKey(n *atomic.Int64, keys *sync.Map) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key := r.URL.Query().Get("key")
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			key = string(body)
		}
		keys.Store(key, true)
		if n.Add(1)%4 == 0 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 100))
	}
}

func TestWebAnswersAreCounted(t *testing.T) {
	for name, command := range webCommands(t) {
		var n atomic.Int64
		var keys sync.Map
		s := webServer(t, answerKey(&n, &keys))
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

func TestWebManyAtOnce(t *testing.T) {
	for name, command := range webCommands(t) {
		var n atomic.Int64
		s := webServer(t, answerKey(&n, &sync.Map{}))
		for _, rate := range []float64{0, 1e6} {
			n.Store(0)
			r, err := open(t, s, Config{Conns: 5, Pipeline: 20, Threads: 2, Command: command}).Run(t.Context(), Plan{Requests: 1000, Rate: rate})
			if err != nil || r.Requests != 1000 || r.Limited != 250 {
				t.Errorf("%s: %+v: %v", name, r, err)
			}
		}
	}
}

func TestWebErrorsFail(t *testing.T) {
	for name, command := range webCommands(t) {
		s := webServer(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such limit", http.StatusNotFound) })
		if _, err := open(t, s, Config{Conns: 1, Pipeline: 1, Command: command}).Run(t.Context(), Plan{Requests: 1}); !errors.Is(err, errErrorReply) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzWeb: whatever a server sends, at most what is there counts, and nothing beyond it is read.
func FuzzWeb(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
	f.Add([]byte("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, used, err := (&web{}).feed(b)
		if used > len(b) || n.limited > len(b) || err == nil && n.replies > len(b) {
			t.Errorf("%d of %d bytes, %+v: %v", used, len(b), n, err)
		}
	})
}
