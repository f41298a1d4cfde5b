package operation

import (
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/base/buildinfo"
)

// mistake is a command line that ends with one line.
type mistake struct {
	env  string
	args []string
	code int
	want string
}

func checkMistakes(t *testing.T, mistakes []mistake) {
	t.Helper()
	for _, m := range mistakes {
		code, out, errOut := harness.Call(t, []string{m.env}, m.args...)
		if code != m.code || out != "" || errOut != "cellserver: "+m.want+"\n" {
			t.Errorf("%s %q: got %d, %q, %q, want %d, %q", m.env, m.args, code, out, errOut, m.code, m.want)
		}
	}
}

func TestMistakesAreOneLine(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	inUse := taken.Addr().String()
	file := harness.WriteFile(t, "not a socket")
	const see = "; see cellserver --help"
	free := []string{"--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"}
	checkMistakes(t, []mistake{
		{"", []string{"--nope"}, 2, "unknown flag --nope" + see},
		{"", []string{"nope"}, 2, `unknown command "nope"` + see},
		{"", []string{"relay"}, 2, `unknown command "relay"; did you mean replay?`},
		{"", []string{"help", "relay"}, 2, `unknown command "relay"; did you mean replay?`},
		{"", []string{"--databases", "many"}, 2, `--databases takes a whole number from 1 to 65536, such as 16; got "many"`},
		{"", []string{"--databases", "0"}, 2, `--databases takes a whole number from 1 to 65536, such as 16; got "0"`},
		{"", []string{"--maxclients", "-1"}, 2, `--maxclients takes a whole number from 1 to 1073741824, such as 10000; got "-1"`},
		{"", []string{"--maxclients-per-address", "-1"}, 2, `--maxclients-per-address takes a whole number from 0 to 1073741824, such as 10; got "-1"`},
		{"", []string{"--max-new-keys-per-second", "-1"}, 2, `--max-new-keys-per-second takes a whole number from 0 to 1000000000, such as 10; got "-1"`},
		{"", []string{"--maxmemory-clients", "lots"}, 2, `--maxmemory-clients takes a size or a percentage, such as 64mb or 25%; got "lots"`},
		{"", []string{"--input-timeout", "-1s"}, 2, `--input-timeout takes a time of at least 0, such as 30s, or seconds, such as 30; got "-1s"`},
		{"", []string{"--slowlog-log-slower-than", "-2"}, 2, `--slowlog-log-slower-than takes a whole number of at least -1, such as 10000; got "-2"`},
		{"", []string{"--slowlog-max-len", "99999"}, 2, `--slowlog-max-len takes a whole number from 0 to 16384, such as 128; got "99999"`},
		{"", []string{"--latency-monitor-threshold", "-1"}, 2, `--latency-monitor-threshold takes a whole number of at least 0, such as 10; got "-1"`},
		{"", []string{"--top-keys-metric", "101"}, 2, `--top-keys-metric takes a whole number from 0 to 100, such as 10; got "101"`},
		{"", []string{"--top-keys-metric-names", "md5"}, 2, `--top-keys-metric-names takes plain, hash or cut; got "md5"`},
		{"", []string{"--timeout", "-1s"}, 2, `--timeout takes a time of at least 0, such as 30s, or seconds, such as 30; got "-1s"`},
		{"", []string{"--log-level", "loud"}, 2, `--log-level takes debug, info, warn or error; got "loud"`},
		{"", []string{"--log-format", "xml"}, 2, `--log-format takes text or json; got "xml"`},
		{"", []string{"--addr", ""}, 2, "nothing to listen on: set --addr, --tls-addr, --unixsocket, --http-addr or --grpc-addr"},
		{"CELLSERVER_TIMEOUT=soon", nil, 2, `CELLSERVER_TIMEOUT takes a time of at least 0, such as 30s, or seconds, such as 30; got "soon"`},
		{"", []string{"--addr", inUse}, 1, "cannot listen on " + inUse + ": bind: address already in use; choose another with --addr or CELLSERVER_ADDR"},
		{"", append(free, "--metrics-addr", inUse), 1, "cannot listen on " + inUse + ": bind: address already in use; choose another with --metrics-addr or CELLSERVER_METRICS_ADDR"},
		{"CELLSERVER_ADDR=" + inUse, nil, 1, "cannot listen on " + inUse + ": bind: address already in use; choose another with --addr or CELLSERVER_ADDR"},
		{"", []string{"--addr", "no port"}, 2, `--addr takes host:port, such as 127.0.0.1:6380; got "no port"`},
		{"", []string{"--addr", "127.0.0.1:99999"}, 2, `--addr takes host:port, such as 127.0.0.1:6380; got "127.0.0.1:99999"`},
		{"", append(free, "--unixsocket", file), 1, "cannot listen on " + file + ": a file that is not a socket is there; choose another with --unixsocket or CELLSERVER_UNIXSOCKET"},
		{"", []string{"health", "now"}, 2, `health takes no argument, got "now"`},
		{"", []string{"health", "--addr", inUse}, 2, "unknown flag --addr; use --metrics-addr"},
		{"", []string{"--maxmemory", "20mb"}, 2, "--maxmemory 20mb must be 0 for no maximum, or at least 48mb, got 20971520 bytes"},
		{"", []string{"health", "--metrics-addr", "nowhere"}, 2, `--metrics-addr takes host:port, such as 127.0.0.1:9380; got "nowhere"`},
	})
	if b, err := os.ReadFile(file); err != nil || string(b) != "not a socket" {
		t.Errorf("the file in the socket's place was touched: %q, %v", b, err)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, flag := range []string{"--version", "-v"} {
		if code, out, _ := harness.Call(t, nil, flag); code != 0 || !strings.HasPrefix(out, "cellserver "+buildinfo.Version+" (go") {
			t.Errorf("%s: got %d, %q", flag, code, out)
		}
	}
	if code, out, _ := harness.Call(t, nil, "--help"); code != 0 || !strings.Contains(out, "\nListening:\n") {
		t.Errorf("--help: got %d, %q", code, out)
	}
	for _, sub := range []string{"replay", "health", "dump", "load", "import", "check", "top", "version"} {
		if code, out, _ := harness.Call(t, nil, sub, "--help"); code != 0 || !strings.Contains(out, "Usage:\n  cellserver "+sub) {
			t.Errorf("%s --help: got %d, %q", sub, code, out)
		}
	}
	if code, _, errOut := harness.Call(t, []string{"CELLSERVER_SERVICE_PORT=6380"}, "--version"); code != 0 {
		t.Errorf("a variable that is no flag: got %d, %q", code, errOut)
	}
}

func TestSignalsEndItInGoodOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := harness.StartServer(t)
		nc := p.Dial(t)
		harness.Exchange(t, nc, "PING\r\n", "+PONG\r\n")
		if code := p.Stop(t, sig); code != 0 {
			t.Errorf("%s: exit code %d", sig, code)
		}
		if rest, err := io.ReadAll(nc); len(rest) != 0 || err != nil {
			t.Errorf("%s: the client was left with %q, %v", sig, rest, err)
		}
		if log := p.Log.String(); !strings.Contains(log, "stopped") {
			t.Errorf("%s: the log does not end: %s", sig, log)
		}
	}
}

// TestShutdownEndsScripts, running and queued, whatever their time limit.
func TestShutdownEndsScripts(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--shutdown-timeout", "1h", "--lua-time-limit", "1h")
	var clients []net.Conn
	for range 10 {
		nc := p.Dial(t)
		harness.Exchange(t, nc, "PING\r\nEVAL \"while true do end\" 0\r\nEVAL \"while true do end\" 0\r\n", "+PONG\r\n")
		clients = append(clients, nc)
	}
	if code := p.Stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, nc := range clients {
		if rest, err := io.ReadAll(nc); err != nil || strings.Count(string(rest), "-ERR script was ended: its client has gone, or the server is shutting down") != 2 {
			t.Errorf("a client was left with %q, %v", rest, err)
		}
	}
}

func TestSecondSignalEndsItAtOnce(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--enable-debug-command", "yes", "--shutdown-timeout", "1h")
	harness.Send(t, p.Dial(t), "DEBUG SLEEP 3000\r\n")
	p.Eventually(t, "see the command", func() bool {
		return p.Metric(t, "cellserver_received_bytes_total") > 0
	})
	p.Signal(t, syscall.SIGTERM)
	p.Logged(t, "shutting down")
	p.Eventually(t, "end", func() bool { // the second signal is no longer caught a moment after the line
		_ = p.Cmd.Process.Signal(syscall.SIGTERM)
		return p.HasExited()
	})
	if code := p.Await(t); code != -1 {
		t.Errorf("ended with %d, not by the signal", code)
	}
}

func TestHealthAndHosts(t *testing.T) {
	p := harness.StartServer(t)
	if code, out, errOut := p.Health(t, nil, "--metrics-addr", p.Metrics); code != 0 || out != "ok\n" {
		t.Errorf("health: got %d, %q, %q", code, out, errOut)
	}
	_, port, _ := net.SplitHostPort(p.Metrics)
	if code, _, errOut := p.Health(t, []string{"CELLSERVER_METRICS_ADDR=0.0.0.0:" + port}); code != 0 {
		t.Errorf("health at all addresses: got %d, %q", code, errOut)
	}
	for host, want := range map[string]int{
		"localhost": 200, "LocalHost:9380": 200, "127.0.0.1": 200, "127.1.2.3:1": 200, "[::1]:9380": 200, "[::1]": 200,
		"example.com": 403, "localhost.example.com:9380": 403, "10.0.0.1": 403, "127.0.0.1.example.com": 403, "0.0.0.0": 403,
	} {
		if got, _ := p.Fetch(t, "/metrics", host); got != want {
			t.Errorf("Host %s: got %d, want %d", host, got, want)
		}
	}
	p.Stop(t, syscall.SIGTERM)
	if code, _, errOut := harness.Call(t, nil, "health", "--metrics-addr", p.Metrics); code != 1 || !strings.Contains(errOut, "connection refused; is that the server's --metrics-addr?") {
		t.Errorf("health of a server that has ended: got %d, %q", code, errOut)
	}
}
