package httpapi_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"cellserver/internal/edge/door"
	"cellserver/internal/edge/httpapi"
)

// BenchmarkCheck beside a handler that does nothing, on one connection without TLS. Both include a client
// that only counts bytes.
func BenchmarkCheck(b *testing.B) {
	b.Run("empty", func(b *testing.B) { benchmark(b, http.HandlerFunc(empty), "/") })
	b.Run("empty with headers", func(b *testing.B) { benchmark(b, http.HandlerFunc(withHeaders), "/") })
	b.Run("check by key", func(b *testing.B) { benchmark(b, nil, "/v1/check/api?key=u") })
	b.Run("check by ip", func(b *testing.B) { benchmark(b, nil, "/v1/check/api?by=ip") })
	b.Run("token in the path", func(b *testing.B) { benchmark(b, nil, "/t/"+token+"/v1/check/api?key=u") })
	b.Run("denial", func(b *testing.B) { benchmark(b, nil, "/v1/check/none?key=u") })
}

func empty(http.ResponseWriter, *http.Request) {}

// withHeaders answers what a check does, without one.
func withHeaders(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	for _, name := range []string{"Cache-Control", "X-Content-Type-Options", "Content-Type", "Ratelimit", "Ratelimit-Policy"} {
		h[name] = []string{`"api";q=16;w=32`}
	}
	_, _ = io.WriteString(w, `{"allowed":true,"limit":16,"remaining":15,"retry_after_ms":-1,"reset_after_ms":2000}`+"\n")
}

func benchmark(b *testing.B, of http.Handler, path string) {
	o := options{users: anyone + "user app on nopass ~* +@all\n"}
	h := newHarness(b, &o)
	h.resp = h.Session()
	h.say(b, "CL.LIMIT SET api 1000000000 1000000000 1", "CL.LIMIT SET none 0 1 3600", "CL.CHECK none u")
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	if of == nil {
		of = httpapi.New(httpapi.Config{Limits: h.Config.NamedLimits, BoundTo: l.Addr()})
	}
	d := door.New(h.doorConfig(b, &o), of)
	go func() { _ = d.Serve(l) }()
	b.Cleanup(func() { d.Shutdown(context.Background()) })
	nc, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: curl/8\r\nAccept: */*\r\n\r\n")
	n, buf := 0, make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(request); err != nil {
			b.Fatal(err)
		}
		for n = 0; n == 0 || buf[n-1] != '\n'; { // where a header's line ends, the rest is there, too
			more, err := nc.Read(buf[n:])
			if err != nil {
				b.Fatal(err)
			}
			n += more
		}
	}
	if got := string(buf[:n]); !strings.HasPrefix(got, "HTTP/1.1 200 ") && !strings.Contains(got, "quota-exceeded") {
		b.Errorf("got %q", got)
	}
}
