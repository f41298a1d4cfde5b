package operation

import (
	"bufio"
	"io"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/certtest"
	"cellserver/internal/test/patience"
)

func TestMetricsOverTLSWithASecret(t *testing.T) {
	files, ca := harness.NewTLSFiles(t)
	token := harness.WriteFile(t, "first\n")
	p := harness.StartServer(t, "--metrics-tls-cert", files.Cert, "--metrics-tls-key", files.Key, "--metrics-token-file", token)
	for given, want := range map[string]int{"": 401, "second": 401, "first": 200} {
		if got := p.Ask(t, "/metrics", given, ca.Pool); got != want {
			t.Errorf("token %q: got %d, want %d", given, got, want)
		}
	}
	p.AwaitReady(t, ca.Pool)
	if code, out, errOut := p.Health(t, nil, "--metrics-addr", p.Metrics, "--metrics-tls-cert", files.Cert); code != 0 || out != "ok\n" {
		t.Errorf("health: got %d, %q, %q", code, out, errOut)
	}
	if code, _, _ := harness.Call(t, nil, "health", "--metrics-addr", p.Metrics); code != 1 {
		t.Errorf("health without TLS: got %d", code)
	}
	other := certtest.NewCA(t)
	files.Write(t, other, "renewed")
	certtest.Write(t, token, []byte("second"))
	p.Signal(t, syscall.SIGHUP)
	p.Logged(t, "using new TLS files")
	p.Eventually(t, "take the new token", func() bool {
		return p.Ask(t, "/metrics", "second", other.Pool) == 200
	})
	if got := p.Ask(t, "/metrics", "first", other.Pool); got != 401 {
		t.Errorf("the old token: got %d", got)
	}
	certtest.Write(t, token, nil)
	p.Signal(t, syscall.SIGHUP)
	p.Logged(t, "is empty; write the token into it")
	if got := p.Ask(t, "/metrics", "second", other.Pool); got != 200 {
		t.Errorf("the token after a file that cannot be used: got %d", got)
	}
}

func TestNotReadyWhileItDrains(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	p := harness.StartServer(t, "--io-threads", "1", "--enable-debug-command", "yes", "--shutdown-timeout", "1h")
	p.AwaitReady(t, nil)
	idle := bufio.NewReader(p.Dial(t))
	nc := p.Dial(t)
	harness.Send(t, nc, "DEBUG SLEEP 3600\r\n")
	p.Eventually(t, "see the command", func() bool {
		return p.Metric(t, "cellserver_received_bytes_total") > 0
	})
	p.Signal(t, syscall.SIGTERM)
	if _, err := idle.ReadByte(); err != io.EOF { // closed first, as it is idle
		t.Errorf("the idle client: %v", err)
	}
	if got := p.Ask(t, "/readyz", "", nil); got != 503 {
		t.Errorf("/readyz while it drains: got %d", got)
	}
	if got := p.Ask(t, "/healthz", "", nil); got != 200 {
		t.Errorf("/healthz while it drains: got %d", got)
	}
	p.Stop(t, syscall.SIGKILL)
}

func TestMetricsBeyondLoopback(t *testing.T) {
	files, _ := harness.NewTLSFiles(t)
	open := []string{"--metrics-addr", "0.0.0.0:0"}
	secret := []string{"--metrics-addr", "0.0.0.0:0", "--metrics-token-file", harness.WriteFile(t, "secret")}
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"open", open, "requires no token"},
		{"unencrypted", secret, "crosses the network unencrypted"},
		{"well", append(secret, "--metrics-tls-cert", files.Cert, "--metrics-tls-key", files.Key), ""},
		{"loopback", nil, ""},
	} {
		p := harness.StartServer(t, tt.args...)
		p.Logged(t, tt.want)
		p.Stop(t, syscall.SIGTERM)
		if log := p.Log.String(); tt.want == "" && strings.Contains(log, "metrics address") {
			t.Errorf("%s: the log warns: %s", tt.name, log)
		}
	}
}

func TestProfilesAreServedOnRequest(t *testing.T) {
	for flag, want := range map[string]int{"--pprof=false": 404, "--pprof": 200} {
		if got := harness.StartServer(t, flag).Ask(t, "/debug/pprof/heap", "", nil); got != want {
			t.Errorf("%s: got %d, want %d", flag, got, want)
		}
	}
}

func TestMistakesAboutMetrics(t *testing.T) {
	empty, spaced, twoLines := harness.WriteFile(t, "\n"), harness.WriteFile(t, "a token\n"), harness.WriteFile(t, "token\n\n")
	files, _ := harness.NewTLSFiles(t)
	free := func(args ...string) []string {
		return append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"}, args...)
	}
	checkMistakes(t, []mistake{
		{"", []string{"--metrics-addr", "", "--pprof"}, 2, "--pprof, --page-actions and the flags that begin with --metrics require --metrics-addr; set it, such as --metrics-addr 127.0.0.1:9380"},
		{"", free("--metrics-tls-cert", files.Cert), 2, "--metrics-tls-cert and --metrics-tls-key require each other; set both"},
		{"", free("--page-actions", "--no-dashboard"), 2, "--page-actions requires the live page; leave out --no-dashboard"},
		{"", []string{"--metrics-addr", "", "--metrics-allowed-hosts", "a"}, 2, "--pprof, --page-actions and the flags that begin with --metrics require --metrics-addr; set it, such as --metrics-addr 127.0.0.1:9380"},
		{"", free("--metrics-allowed-hosts", "cellserver,http://a"), 2, `--metrics-allowed-hosts takes names without a scheme and a port, such as cellserver,metrics.example.com; got "cellserver,http://a"`},
		{"", free("--metrics-allowed-hosts", "a:9380"), 2, `--metrics-allowed-hosts takes names without a scheme and a port, such as cellserver,metrics.example.com; got "a:9380"`},
		{"", free("--metrics-token-file", "/no/such"), 1, "cannot read --metrics-token-file /no/such: no such file or directory"},
		{"", free("--metrics-token-file", empty), 1, "--metrics-token-file " + empty + " is empty; write the token into it"},
		{"", free("--metrics-token-file", twoLines), 1, "--metrics-token-file " + twoLines + " must be one line without spaces"},
		{"", free("--metrics-password-file", spaced), 2, "unknown flag --metrics-password-file; it was removed: use metrics-token-file, with the password alone; any user name has it"},
		{"", free("--metrics-token-file", spaced), 1, "--metrics-token-file " + spaced + " must be one line without spaces"},
		{"", free("--metrics-tls-cert", "/no/such", "--metrics-tls-key", files.Key), 1, "certs: read --metrics-tls-cert /no/such: no such file or directory"},
	})
}

// TestLogOfClients: one line per client at disconnect, and only at debug.
func TestLogOfClients(t *testing.T) {
	for level, want := range map[string]int{"debug": 1, "info": 0} {
		p := harness.StartServer(t, "--log-level", level)
		nc := p.Dial(t)
		harness.Exchange(t, nc, "CLIENT SETNAME worker-7\r\n", "+OK\r\n")
		harness.Exchange(t, nc, "QUIT\r\n", "+OK\r\n")
		p.Eventually(t, "forget the client", func() bool {
			_ = nc.(patience.Conn).CloseWrite()
			return p.Metric(t, "cellserver_connections_closed_total") == 1
		})
		p.Stop(t, syscall.SIGTERM)
		log := p.Log.String()
		line := `"msg":"client disconnected","client":"` + nc.LocalAddr().String() + `","name":"worker-7","tls":false,"reason":"session","received_bytes":31,"sent_bytes":10,`
		if strings.Count(log, line) != want || strings.Count(log, nc.LocalAddr().String()) != want {
			t.Errorf("%s: want %d of %s, got %s", level, want, line, log)
		}
	}
}
