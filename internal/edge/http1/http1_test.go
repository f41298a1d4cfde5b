package http1

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/test/http1test"
	"cellserver/internal/test/randtest"
)

const get, post = http1test.Get, http1test.Post

// TestPieces reads requests that come byte by byte, one behind the other.
func TestPieces(t *testing.T) {
	var r Reader
	var in []byte
	var found []string
	for _, c := range []byte(get + post + get) {
		in = append(in, c)
		var to Request
		if n, f := r.Next(in, &to); f == Plain {
			found = append(found, string(in[:n]))
			in = in[n:]
		} else if f == Doubtful {
			t.Fatalf("doubtful: %q", in)
		}
	}
	if want := []string{get, post, get}; !slices.Equal(found, want) {
		t.Errorf("got %q", found)
	}
}

// TestRead has requests that are plain, and what is read of them.
func TestRead(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{get, `GET "/v1/check/api" "key=u%20%2B1&quantity=2" localhost:6381 [X-Forwarded-For=192.0.2.7] "" false`},
		{post, `POST "/v1/check" "" a.example [Content-Type=application/json] "{\"limit\":\"api\",\"key\":\"u1\"}" false`},
		{"HEAD /a%2fb HTTP/1.1\r\nHost: [::1]:1\r\nConnection: Close\r\n\r\n", `HEAD "/a/b" "" [::1]:1 [Connection=Close] "" true`},
		{"GET / HTTP/1.1\r\nHOST:x\r\nA:\r\na: \t é \t\r\n\r\n", `GET "/" "" x [A= a=é] "" false`},
		{"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", `POST "/" "" x [] "" false`},
	} {
		var r Reader
		var to Request
		n, f := r.Next([]byte(tt.in+"GET"), &to)
		var fields []string
		for _, one := range to.Fields {
			fields = append(fields, one.Name+"="+one.Value)
		}
		got := fmt.Sprintf("%s %q %q %s %v %q %t", to.Method, to.Path, to.Query, to.Host, fields, to.Body, r.Close)
		if f != Plain || n != len(tt.in) || got != tt.want {
			t.Errorf("%q: %d, %d bytes, %s, want %s", tt.in, f, n, got, tt.want)
		}
	}
}

// TestDoubtful has what is left to net/http.
func TestDoubtful(t *testing.T) {
	with := func(lines ...string) string {
		return "POST /v1/check HTTP/1.1\r\nHost: x\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
	}
	for _, in := range []string{
		"PRI * HTTP/2.0\r\n", "\x16\x03\x01", "*1\r\n", "\r\nGET / HTTP/1.1\r\n", "OPTIONS * HTTP/1.1\r\n", "DELETE /", "get /", "GET http://x/ HTTP/1.1", "GET * HTTP/1.1",
		"GET / HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.1\r\nHost: x\n\r\n", "GET / HTTP/1.0\r\nHost: x\r\n\r\n", "GET / HTTP/1.1 \r\nHost: x\r\n\r\n", "GET /\r\n\r\n", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", "GET /% HTTP/1.1\r\nHost: x\r\n\r\n", "GET //x/../y HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a//b HTTP/1.1\r\nHost: x\r\n\r\n", "GET /%2f%2f HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /#a HTTP/1.1\r\nHost: x\r\n\r\n", "GET /? HTTP/1.1\r\nHost: x\r\n\r\n", "GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n", "GET /é HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / HTTP/1.1\r\nHost:\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x y\r\n\r\n", "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n a: b\r\n\r\n", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nab\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\na: \x00\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\na: b\rc\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
		with(), with("Content-Length: 1", "Content-Length: 1"), with("Content-Length: 1, 1"), with("Content-Length: +1"), with("Content-Length: 01"), with("Content-Length: "), with("Content-Length: 1 " + "\x0b"),
		with("Content-Length: 99999999999999999999"), with("Content-Length: 20000"), with("Content-Length: -1"), with("Content-Length: 0x1"),
		with("Content-Length: 1", "Transfer-Encoding: chunked"), with("Transfer-Encoding: identity"), with("Transfer-Encoding: chunked"), with("Content-Length: 1", "Transfer-Encoding : chunked"),
		with("Content-Length: 1", "Expect: 100-continue"), with("Content-Length: 1", "Expect: something"), with("Content-Length: 1", "Upgrade: h2c"), with("Content-Length: 1", "Trailer: a"),
		with("Content-Length: 1", "Connection: upgrade"), with("Content-Length: 1", "Connection: keep-alive, close"), with("Content-Length: 1", "Connection: close", "Connection: keep-alive"),
		with("Content-Length: 1", strings.Repeat("a: b\r\n", maxFields)+"c: d"), with("Content-Length: 1", "a: "+strings.Repeat("b", MaxHead)),
	} {
		var r Reader
		var to Request
		if n, f := r.Next([]byte(in), &to); f != Doubtful || n != 0 {
			t.Errorf("%q: %d, %d bytes", in, f, n)
		}
	}
}

// TestPartsOfHeads waits for the rest of a head up to its bound, and no further.
func TestPartsOfHeads(t *testing.T) {
	var r Reader
	in := []byte("GET / HTTP/1.1\r\nHost: x\r\na: " + strings.Repeat("b", MaxHead))
	for n := range MaxHead {
		if _, f := r.Next(in[:n], &Request{}); f != Part {
			t.Fatalf("%d bytes: %d", n, f)
		}
	}
	if _, f := r.Next(in, &Request{}); f != Doubtful {
		t.Errorf("a long head: %d", f)
	}
}

// judge is a server of net/http that serves one connection at a time, over memory.
type judge struct {
	conns  chan net.Conn
	served []string
	ended  chan struct{}
}

func (j *judge) Accept() (net.Conn, error) {
	if nc, ok := <-j.conns; ok {
		return nc, nil
	}
	return nil, net.ErrClosed
}
func (j *judge) Close() error   { return nil }
func (j *judge) Addr() net.Addr { return &net.TCPAddr{} }

func (j *judge) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	fields := map[string][]string(r.Header.Clone())
	j.served = append(j.served, said(r.Method, r.URL.Path, r.URL.RawQuery, r.Host, fields, string(body), r.Close)+fmt.Sprint(err))
}

func said(method, path, query, host string, fields map[string][]string, body string, closes bool) string {
	delete(fields, "Content-Length")
	return fmt.Sprintf("%s %q %q %s %q %q %t ", method, path, query, host, fields, body, closes)
}

// whole is a connection whose client has sent all.
type whole struct {
	net.Conn
	in    *bytes.Reader
	ended chan struct{}
}

func (w *whole) Read(b []byte) (int, error)  { return w.in.Read(b) }
func (w *whole) Write(b []byte) (int, error) { return len(b), nil }
func (w *whole) Close() error {
	select {
	case w.ended <- struct{}{}:
	default:
	}
	return w.Conn.Close()
}

// all returns the requests that the judge finds in bytes.
func (j *judge) all(in []byte) []string {
	j.served = nil
	_, nc := net.Pipe()
	j.conns <- &whole{Conn: nc, in: bytes.NewReader(in), ended: j.ended}
	<-j.ended
	return j.served
}

// TestAgreement: net/http reads from mutated requests what is read here, each plain request as one.
func TestAgreement(t *testing.T) {
	j := &judge{conns: make(chan net.Conn), ended: make(chan struct{}, 1)}
	server := &http.Server{Handler: j, ErrorLog: log.New(io.Discard, "", 0), DisableGeneralOptionsHandler: true}
	go func() { _ = server.Serve(j) }()
	defer func() { _ = server.Close() }()
	defer close(j.conns)
	random, plain := rand.New(rand.NewPCG(randtest.Seed(t, 1), 0)), 0
	rounds := 100_000
	if testing.Short() {
		rounds = 10_000
	}
	for range rounds {
		in := http1test.Mutated(random)
		var r Reader
		var read []string
		rest := in
		for {
			var to Request
			n, found := r.Next(rest, &to)
			if found != Plain {
				break
			}
			rest = rest[n:]
			fields := map[string][]string{}
			for _, f := range to.Fields {
				name := http.CanonicalHeaderKey(f.Name)
				fields[name] = append(fields[name], f.Value)
			}
			read = append(read, said(to.Method, to.Path, to.Query, to.Host, fields, string(to.Body), r.Close)+"<nil>")
			if r.Close {
				break
			}
		}
		if len(read) == 0 {
			continue
		}
		plain += len(read)
		if judged := j.all(in[:len(in)-len(rest)]); !slices.Equal(judged, read) {
			t.Fatalf("%q:\nread   %q\njudged %q", in, read, judged)
		}
	}
	if t.Logf("%d plain requests", plain); plain < rounds/4 {
		t.Errorf("of %d only %d were plain", rounds, plain)
	}
}

func FuzzAgreement(f *testing.F) {
	f.Add([]byte(get))
	f.Add([]byte(post))
	f.Fuzz(func(t *testing.T, in []byte) {
		var r Reader
		var to Request
		n, found := r.Next(in, &to)
		if found != Plain {
			return
		}
		read, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(in[:n])))
		if err != nil {
			t.Fatalf("%q: %v", in[:n], err)
		}
		body, err := io.ReadAll(read.Body)
		if err != nil || !bytes.Equal(body, to.Body) || read.URL.Path != to.Path || read.URL.RawQuery != to.Query || read.Method != to.Method || read.Host != to.Host || read.Close != r.Close {
			t.Fatalf("%q: %+v, %q, want %+v", in[:n], read, body, to)
		}
	})
}
