package main

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

// execEnv makes the test binary act as the program, so that tests can start real processes without building it. It does
// not look like a setting, of which the server would warn.
const execEnv = "TEST_CELLSERVER_EXEC"

func TestMain(m *testing.M) {
	if os.Getenv(execEnv) == "1" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is a server that runs for a test: cellserver or redis-server.
type process struct {
	*processtest.Process

	addr, unix, metrics string // what it listens on
	tlsAddr             string
	tls                 *tls.Config // for clients; nil without TLS
}

// programCommand returns a command that runs the program, ends before the test binary does, and does not inherit the
// user's own settings.
func programCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := processtest.Command(t, self, args...)
	cmd.Env = []string{execEnv + "=1"}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, envPrefix) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// parseOptions reads a command line of the server, and what it leaves out from the environment and the config file.
func parseOptions(args []string) (*options, error) {
	o := &options{}
	fs := o.flagSet(o.flagGroups())
	if err := fs.Parse(args); err != nil {
		return nil, usageError{flagMistake(fs.Name(), fs, err)}
	}
	return o, o.complete(fs, os.LookupEnv)
}

// startServer starts the program with args, waits until it is ready, and stops it when the test ends.
func startServer(t *testing.T, args ...string) *process {
	t.Helper()
	args = append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--log-format", "json"}, args...)
	p := startProcess(t, programCommand(t, args...))
	p.Eventually(t, "be ready", func() bool { return p.readReady() || p.HasExited() })
	if p.HasExited() {
		t.Fatalf("the server ended with %d", p.Cmd.ProcessState.ExitCode())
	}
	return p
}

func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	return &process{Process: processtest.Start(t, cmd)}
}

// starter is startServer with one of the connection drivers.
type starter func(t *testing.T, args ...string) *process

// onEachDriver runs a test with a goroutine per connection, with event loops where they are supported, and over TLS, which
// always uses goroutines. The tests run in parallel, because they mostly wait.
func onEachDriver(t *testing.T, test func(t *testing.T, startServer starter)) {
	t.Helper()
	onEachDriverInTurn(t, func(t *testing.T, startServer starter) {
		t.Parallel()
		test(t, startServer)
	})
}

// onEachDriverInTurn is onEachDriver for tests that must have ended when it returns.
func onEachDriverInTurn(t *testing.T, test func(t *testing.T, startServer starter)) {
	t.Helper()
	for _, ioThreads := range []string{"0", "1"} {
		t.Run("io-threads="+ioThreads, func(t *testing.T) {
			test(t, func(t *testing.T, args ...string) *process {
				t.Helper()
				return startServer(t, append([]string{"--io-threads", ioThreads}, args...)...)
			})
		})
	}
	t.Run("tls", func(t *testing.T) {
		test(t, func(t *testing.T, args ...string) *process {
			t.Helper()
			files, ca := newTLSFiles(t)
			p := startServer(t, append(files.flags(), args...)...)
			p.tls = &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
			return p
		})
	})
}

// readReady reads the listening addresses from the log.
func (p *process) readReady() bool {
	for line := range strings.Lines(p.Log.String()) {
		var ready struct{ Msg, TCP, TLS, Unix, Metrics string }
		if json.Unmarshal([]byte(line), &ready) == nil && ready.Msg == "ready" {
			p.addr, p.tlsAddr, p.unix, p.metrics = ready.TCP, ready.TLS, ready.Unix, ready.Metrics
			return true
		}
	}
	return false
}

// dial connects, over TLS if the process has it; the connection is closed when the test ends.
func (p *process) dial(t *testing.T) net.Conn {
	t.Helper()
	if p.tls != nil {
		return tls.Client(dialTCP(t, p.tlsAddr), p.tls)
	}
	return dialTCP(t, p.addr)
}

func dialTCP(t *testing.T, addr string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return patience.Conn{Conn: nc}
}

// socket returns what a connection of dial sends and receives by, below TLS.
func socket(nc net.Conn) *net.TCPConn {
	if over, ok := nc.(*tls.Conn); ok {
		nc = over.NetConn()
	}
	return nc.(patience.Conn).Conn.(*net.TCPConn)
}

// port returns the TCP port, for tools that take host and port separately.
func (p *process) port() string {
	_, port, _ := net.SplitHostPort(p.addr)
	return port
}

// rss returns the resident memory in bytes.
func (p *process) rss(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.Cmd.Process.Pid) + "/status")
	if err != nil {
		t.Skip("needs Linux's /proc:", err)
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kib, _ := strconv.Atoi(f[1])
			return kib << 10
		}
	}
	t.Fatal("no VmRSS in /proc")
	return 0
}

// metric returns the value of a metric, summed over its labels.
func (p *process) metric(t *testing.T, name string) (sum float64) {
	t.Helper()
	answer, err := http.Get("http://" + p.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for line := range strings.Lines(string(body)) {
		f := strings.Fields(line)
		if len(f) != 2 || f[0] != name && !strings.HasPrefix(f[0], name+"{") {
			continue
		}
		value, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum, found = sum+value, true
	}
	if !found {
		t.Fatalf("no %s in /metrics", name)
	}
	return sum
}

// startRedis starts a redis-server that writes nothing to disk.
func startRedis(t *testing.T, args ...string) *process {
	t.Helper()
	path := need(t, "redis-server")
	for range 5 { // another process may take the free port first
		addr := processtest.FreeAddr(t)
		_, port, _ := net.SplitHostPort(addr)
		p := startProcess(t, processtest.Command(t, path, append([]string{"--port", port, "--bind", "127.0.0.1",
			"--save", "", "--appendonly", "no", "--dir", t.TempDir()}, args...)...))
		p.addr = addr
		p.Eventually(t, "be ready", func() bool {
			return strings.Contains(p.Log.String(), "Ready to accept connections") || p.HasExited()
		})
		if !p.HasExited() {
			return p
		}
		p.Await(t)
		t.Logf("redis-server did not start:\n%s", p.Log.String())
	}
	t.Fatal("redis-server does not start")
	return nil
}

// need finds one of Redis's programs.
func need(t *testing.T, tool string) (path string) {
	t.Helper()
	if tool == "redis-server" {
		return processtest.Need(t, tool, tool)
	}
	return processtest.Need(t, tool, "redis-tools")
}

// isRace reports whether the tests, and so the servers they start, run under the race detector.
func isRace() bool {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			if s.Key == "-race" {
				return s.Value == "true"
			}
		}
	}
	return false
}

// exchange sends raw and expects exactly the reply want.
func exchange(t *testing.T, nc net.Conn, raw, want string) {
	t.Helper()
	if _, err := io.WriteString(nc, raw); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if n, err := io.ReadFull(nc, got); err != nil || string(got) != want {
		t.Fatalf("%q got %q (%v), want %q", raw, got[:n], err, want)
	}
}
