package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// execEnv makes the test binary be the program itself, so that tests can start real processes without a build.
const execEnv = "CELLSERVER_TEST_EXEC"

func TestMain(m *testing.M) {
	if os.Getenv(execEnv) == "1" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	startTimeout = 20 * time.Second
	stopTimeout  = 15 * time.Second // more than --shutdown-timeout
	// ioTimeout is a bound for any conversation, so that a server that hangs fails the test.
	ioTimeout = 60 * time.Second
)

// process is a server that runs for a test: ours or a redis-server.
type process struct {
	cmd                 *exec.Cmd
	log                 processLog
	addr, unix, metrics string // what it listens on
	tlsAddr             string
	tls                 *tls.Config // the clients', where they are to speak TLS
	exited              chan struct{}
	stopped             bool // by the test
}

// processLog keeps what a process writes.
type processLog struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (l *processLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *processLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// programCommand is the program as a command that ends before the test binary does, and that does not see the
// settings of whoever runs the tests.
func programCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := testCommand(t, self, args...)
	cmd.Env = []string{execEnv + "=1"}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, envPrefix) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// testCommand is killed a little before the tests run out of time, when no cleanup would end it.
func testCommand(t *testing.T, path string, args ...string) *exec.Cmd {
	ctx := context.Background()
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-5*time.Second))
		t.Cleanup(cancel)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// startServer starts the program with args, waits until it is ready, and has it end with the test.
func startServer(t *testing.T, args ...string) *process {
	t.Helper()
	args = append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--log-format", "json"}, args...)
	p := startProcess(t, programCommand(t, args...))
	p.eventually(t, startTimeout, "be ready", func() bool { return p.readReady() || p.hasExited() })
	if p.hasExited() {
		t.Fatalf("the server ended with %d", p.cmd.ProcessState.ExitCode())
	}
	return p
}

// starter is startServer, with one of the connection drivers.
type starter func(t *testing.T, args ...string) *process

// onEachDriver runs a test with a goroutine a connection, and with event loops where there are any; and over TLS,
// which is served by goroutines in either case. They run beside one another and the other tests that are parallel:
// most of them wait most of the time.
func onEachDriver(t *testing.T, test func(t *testing.T, startServer starter)) {
	t.Helper()
	onEachDriverInTurn(t, func(t *testing.T, startServer starter) {
		t.Parallel()
		test(t, startServer)
	})
}

// onEachDriverInTurn is onEachDriver for what must be over when it returns.
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

// startProcess starts a command whose output is kept, and shown if the test fails.
func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		if p.hasExited() && !p.stopped {
			t.Errorf("%s ended before its time, with %d", cmd.Path, cmd.ProcessState.ExitCode())
		} else if !p.stopped {
			if code := p.stop(t, syscall.SIGTERM); code != 0 {
				t.Errorf("%s ended with %d after SIGTERM", cmd.Path, code)
			}
		}
		if t.Failed() {
			t.Logf("the log of %s:\n%s", cmd.Path, p.log.String())
		}
	})
	return p
}

// readReady looks for the line of the log that says where the server listens.
func (p *process) readReady() bool {
	for line := range strings.Lines(p.log.String()) {
		var ready struct{ Msg, TCP, TLS, Unix, Metrics string }
		if json.Unmarshal([]byte(line), &ready) == nil && ready.Msg == "ready" {
			p.addr, p.tlsAddr, p.unix, p.metrics = ready.TCP, ready.TLS, ready.Unix, ready.Metrics
			return true
		}
	}
	return false
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// stop sends a signal and returns the exit code, -1 if the process had to be killed or a signal ended it.
func (p *process) stop(t *testing.T, sig os.Signal) int {
	t.Helper()
	p.stopped = true
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		t.Errorf("%s did not end within %s after %s", p.cmd.Path, stopTimeout, sig)
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	return p.cmd.ProcessState.ExitCode()
}

// dial connects, over TLS where that is what the test is about; the connection ends with the test.
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
	if err := nc.SetDeadline(time.Now().Add(ioTimeout)); err != nil {
		t.Fatal(err)
	}
	return nc
}

// port is the TCP port, for tools that take it apart.
func (p *process) port() string {
	_, port, _ := net.SplitHostPort(p.addr)
	return port
}

// rss is the resident memory in bytes.
func (p *process) rss(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid()) + "/status")
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

// metric is a figure of /metrics, summed over its labels.
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

// eventually waits until cond is true, and fails the test if that takes too long.
func (p *process) eventually(t *testing.T, timeout time.Duration, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not %s within %s", p.cmd.Path, what, timeout)
		}
	}
}

// startRedis starts a redis-server that keeps nothing on disk.
func startRedis(t *testing.T, args ...string) *process {
	t.Helper()
	path := need(t, "redis-server")
	for range 5 { // another may take the free port first
		port := strconv.Itoa(freePort(t))
		p := startProcess(t, testCommand(t, path, append([]string{"--port", port, "--bind", "127.0.0.1",
			"--save", "", "--appendonly", "no", "--dir", t.TempDir()}, args...)...))
		p.addr = "127.0.0.1:" + port
		p.eventually(t, startTimeout, "be ready", func() bool {
			return strings.Contains(p.log.String(), "Ready to accept connections") || p.hasExited()
		})
		if !p.hasExited() {
			return p
		}
		p.stopped = true
		t.Logf("redis-server did not start:\n%s", p.log.String())
	}
	t.Fatal("redis-server does not start")
	return nil
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// need finds a tool of Redis. Without it the test is skipped, but fails in CI, which must have it.
func need(t *testing.T, tool string) (path string) {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		pkg := "redis-tools"
		if tool == "redis-server" {
			pkg = tool
		}
		skipUnlessCI(t, "needs "+tool+", of Debian's package "+pkg)
	}
	return path
}

func skipUnlessCI(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// isRace reports whether the tests, and so the servers that they start, run under the race detector.
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

// appendCommand appends a command as clients send it.
func appendCommand(b []byte, args ...string) []byte {
	b = append(strconv.AppendInt(append(b, '*'), int64(len(args)), 10), '\r', '\n')
	for _, arg := range args {
		b = append(strconv.AppendInt(append(b, '$'), int64(len(arg)), 10), '\r', '\n')
		b = append(append(b, arg...), '\r', '\n')
	}
	return b
}

// exchange sends raw and expects the answer want, byte for byte.
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
