package proxies

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/redistest"
)

// stack is a site behind a proxy that asks cellserver.
type stack struct {
	t       *testing.T // for servers that outlast its subtests
	front   string     // the proxy's address
	site    *httptest.Server
	served  atomic.Int64 // requests that reached the site
	limiter *harness.Process
	proxy   *processtest.Process
	// The proxy reaches cellserver's ports through these.
	http, redis *redistest.Proxy

	httpAddr, redisAddr, limits string
	password                    string   // of cellserver; "" for none
	peer                        string   // of cellserver, whose Redis address it is; "" for none
	args                        []string // more of cellserver
	log                         string   // nginx's access log
}

// startStack starts the site, cellserver, and a recipe's proxy.
func startStack(t *testing.T, r recipe, how mode) *stack {
	t.Helper()
	program := processtest.Need(t, r.program)
	s := &stack{t: t, front: processtest.FreeAddr(t), httpAddr: processtest.FreeAddr(t), redisAddr: processtest.FreeAddr(t), limits: limitsFile(t)}
	s.site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.served.Add(1)
		_, _ = w.Write([]byte("the site\n"))
	}))
	t.Cleanup(s.site.Close)
	s.http, s.redis = redistest.NewProxy(t, s.httpAddr), redistest.NewProxy(t, s.redisAddr)
	s.password, s.args = how.password, how.args
	s.startLimiter()
	r.start(t, program, s, how)
	return s
}

func (s *stack) startLimiter() {
	s.t.Helper()
	args := []string{"--addr", s.redisAddr, "--http-addr", s.httpAddr, "--http-trusted-proxies", "127.0.0.1", "--limits-file", s.limits}
	args = append(args, s.args...)
	if s.password != "" {
		args = append(args, "--requirepass", s.password)
	}
	if s.peer != "" {
		args = append(args, "--peer", s.peer)
	}
	s.limiter = harness.StartServer(s.t, args...)
}

var (
	limitsBlock = regexp.MustCompile("(?ms)^```yaml\n(limits:.*?)^```$")
	rates       = regexp.MustCompile(`\b(count|refill): \d+`)
	periods     = regexp.MustCompile(`\bperiod: \w+`)
	everies     = regexp.MustCompile(`\bevery: \w+`)
)

// limitsFile has the limits of docs/HTTP.md, which give nothing back while a test runs.
func limitsFile(t *testing.T) (path string) {
	t.Helper()
	m := limitsBlock.FindStringSubmatch(read(t, "docs/HTTP.md"))
	if m == nil {
		t.Fatal("docs/HTTP.md has no limits")
	}
	text := periods.ReplaceAllString(rates.ReplaceAllString(m[1], "$1: 1"), "period: 24h")
	return harness.WriteFile(t, everies.ReplaceAllString(text, "every: year"))
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// write makes a file that the proxy's own user may read, too.
func write(t *testing.T, dir, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// visit is a request of a visitor.
type visit struct {
	from, path, key, user, password string
	header                          http.Header
}

// answer is what a visitor sees of an answer.
type answer struct {
	status int
	header http.Header
	body   string
}

// send returns the proxy's answer.
func (s *stack) send(ctx context.Context, v visit) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.front+v.path, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	for name, values := range v.header {
		r.Header[name] = values
	}
	if v.key != "" {
		r.Header.Set("X-Api-Key", v.key)
	}
	if v.user != "" {
		r.SetBasicAuth(v.user, v.password)
	}
	local := &net.TCPAddr{IP: net.ParseIP(cmp.Or(v.from, "127.0.0.1"))}
	transport := &http.Transport{DialContext: (&net.Dialer{LocalAddr: local}).DialContext, DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}

// expect sends a request, whose answer must have a status.
func (s *stack) expect(t *testing.T, v visit, status int) http.Header {
	t.Helper()
	got, err := s.send(t.Context(), v)
	if err != nil {
		t.Fatalf("%+v: %v", v, err)
	}
	if got.status != status {
		t.Errorf("%+v is answered %d, want %d: %v", v, got.status, status, got.header)
	}
	return got.header
}
