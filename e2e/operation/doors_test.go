package operation

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/certtest"
)

const throttleBody = `{"key": "k", "algorithm": "funnel", "max_burst": 15, "count": 1, "period": "1h"}`

// post returns the status and the body of a check.
func post(t *testing.T, client *http.Client, url, token string) (status int, body string) {
	t.Helper()
	status, body = call(t, client, http.MethodPost, url+"/v1/check", throttleBody, token)
	return status, strings.TrimSpace(body)
}

func newHTTPClient(t *testing.T, config *tls.Config) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestHTTPSharesStates with RESP, over TLS and without.
func TestHTTPSharesStates(t *testing.T) {
	t.Parallel()
	files, ca := harness.NewTLSFiles(t)
	acl := harness.WriteFile(t, "user default on >pw ~* +@all\nuser client on >pw ~k +cl.throttle\n")
	p := harness.StartServer(t, append(files.Flags(), "--http-addr", "127.0.0.1:0", "--http-tls-addr", "127.0.0.1:0",
		"--tls-client-ca", files.ClientCA, "--tls-auth-clients", "optional", "--aclfile", acl)...)
	plain := newHTTPClient(t, nil)
	if status, body := post(t, plain, "http://"+p.HTTP, ""); status != http.StatusUnauthorized || !strings.Contains(body, "X-Cellserver-Token") {
		t.Errorf("without a token: %d %s", status, body)
	}
	withCert := newHTTPClient(t, &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", Certificates: []tls.Certificate{ca.Pair(t, "client")}})
	if status, body := post(t, withCert, "https://"+p.HTTPS, ""); status != http.StatusOK || !strings.Contains(body, `"remaining":15`) {
		t.Errorf("with a certificate: %d %s", status, body)
	}
	harness.Exchange(t, p.Dial(t), "AUTH pw\r\nCL.THROTTLE k 15 1 3600\r\n", "+OK\r\n*5\r\n:0\r\n:16\r\n:14\r\n:-1\r\n:")
	checkProtocols(t, p, ca)
}

// TestHTTPAtThePortOfHTTPS is told so.
func TestHTTPAtThePortOfHTTPS(t *testing.T) {
	t.Parallel()
	files, _ := harness.NewTLSFiles(t)
	p := harness.StartServer(t, append(files.Flags(), "--http-tls-addr", "127.0.0.1:0")...)
	nc := harness.DialTCP(t, p.HTTPS)
	harness.Send(t, nc, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if got := harness.ReadTo(t, nc, "one's\n"); !strings.HasPrefix(got, "HTTP/1.0 400 ") {
		t.Errorf("got %q", got)
	}
}

// checkProtocols expects HTTP/2 over TLS where a client offers it.
func checkProtocols(t *testing.T, p *harness.Process, ca *certtest.CA) {
	t.Helper()
	for offered, want := range map[string]string{"h2": "h2", "http/1.1": "http/1.1"} {
		nc := tls.Client(harness.DialTCP(t, p.HTTPS), &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", NextProtos: []string{offered}})
		if err := nc.Handshake(); err != nil || nc.ConnectionState().NegotiatedProtocol != want {
			t.Errorf("%s: %v, %q", offered, err, nc.ConnectionState().NegotiatedProtocol)
		}
	}
}

func TestTokensAreReloaded(t *testing.T) {
	t.Parallel()
	const first, second = "0123456789abcdef", "fedcba9876543210"
	file := harness.WriteFile(t, first+" default\n")
	p := harness.StartServer(t, "--http-addr", "127.0.0.1:0", "--http-tokens-file", file, "--requirepass", "pw")
	client := newHTTPClient(t, nil)
	expect := func(token string, want int) {
		t.Helper()
		if status, body := post(t, client, "http://"+p.HTTP, token); status != want {
			t.Errorf("%s: %d %s", token, status, body)
		}
	}
	expect(first, http.StatusOK)
	expect(second, http.StatusUnauthorized)
	p.Rewrite(t, file, second+" default\n", "reloading on SIGHUP")
	p.Eventually(t, "take the second token", func() bool { status, _ := post(t, client, "http://"+p.HTTP, second); return status == http.StatusOK })
	expect(first, http.StatusUnauthorized)
	p.Rewrite(t, file, "short default\n", "cannot use the changed tokens")
	expect(second, http.StatusOK)
}

// TestDoorsEndWithTheServer: idle connections do not delay a shutdown.
func TestDoorsEndWithTheServer(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0")
	if status, _ := post(t, newHTTPClient(t, nil), "http://"+p.HTTP, ""); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	_ = harness.DialTCP(t, p.HTTP)
	_ = harness.DialTCP(t, p.GRPC)
	if code := p.Stop(t, syscall.SIGTERM); code != 0 || strings.Contains(p.Log.String(), "cut short") {
		t.Errorf("exit %d: %s", code, p.Log.String())
	}
}

// TestMistakesOfDoors end a start with a line that says what to do.
func TestMistakesOfDoors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("domain: a\ndescriptors:\n  - key: k\n    ratelimit: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens := harness.WriteFile(t, "short app\n")
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"--envoy-config " + dir + " --grpc-addr 127.0.0.1:0", []string{"--envoy-config", "a.yaml:4"}},
		{"--http-tokens-file " + tokens + " --http-addr 127.0.0.1:0", []string{"--http-tokens-file", "line 1"}},
		{"--http-trusted-proxies nonsense --http-addr 127.0.0.1:0", []string{"--http-trusted-proxies takes addresses and networks"}},
		{"--http-headers legacy", []string{"require --http-addr"}},
		{"--envoy-config " + dir, []string{"require --grpc-addr"}},
		{"--grpc-tls-addr 127.0.0.1:0", []string{"require --tls-cert and --tls-key"}},
	} {
		code, _, said := harness.Call(t, nil, append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", ""}, strings.Fields(tt.args)...)...)
		if code == 0 || strings.Count(strings.TrimSpace(said), "\n") > 0 {
			t.Errorf("%s: exit %d, %s", tt.args, code, said)
		}
		for _, want := range tt.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %s, want %s", tt.args, said, want)
			}
		}
	}
}

// TestConfigCheckTellsEnvoysLines: config check tells lines that may be mistakes, as a start does.
func TestConfigCheckTellsEnvoysLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "domain: a\ndescriptors:\n  - key: k\n    rate_limit: {unit: minute, shadow_mode: true}\n  - key: l\n    unit: minute\n"
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{"--grpc-addr", "127.0.0.1:0", "--envoy-config", dir}
	code, out, said := harness.Call(t, nil, append([]string{"config", "check"}, args...)...)
	if code != 0 || out != "ok\n" {
		t.Errorf("exit %d, %s", code, out)
	}
	p := harness.StartServer(t, args...)
	for _, want := range []string{"shadow_mode has no effect in rate_limit", "requests_per_unit is missing", "unit has no effect in a descriptor", "a.yaml:5: this descriptor limits nothing", "it skips others"} {
		if !strings.Contains(said, want) || !strings.Contains(p.Log.String(), want) {
			t.Errorf("%s is not in\n%s\nor not in\n%s", want, said, p.Log.String())
		}
	}
	if want := `"files":1,"domains":1,"rules":1`; !strings.Contains(p.Log.String(), want) {
		t.Errorf("%s is not in\n%s", want, p.Log.String())
	}
}
