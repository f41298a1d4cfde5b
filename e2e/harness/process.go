package main

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

// process is a server that runs for a test: cellserver or redis-server.
type process struct {
	*processtest.Process

	addr, unix, metrics string // what it listens on
	tlsAddr             string
	tls                 *tls.Config // for clients; nil without TLS
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
