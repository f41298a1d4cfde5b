package harness

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

// Process is a server that runs for a test: cellserver or redis-server.
type Process struct {
	*processtest.Process

	Addr, unix, Metrics string // the listening addresses
	TLSAddr             string
	HTTP, HTTPS         string
	GRPC, GRPCS         string
	Ratelimit           RatelimitAddrs
	TLS                 *tls.Config // for clients; nil without TLS
}

// StartServer starts the program with args, waits until it is ready, and stops it when the test ends.
func StartServer(t *testing.T, args ...string) *Process {
	t.Helper()
	args = append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--log-format", "json"}, args...)
	p := Start(t, Command(t, args...))
	p.Eventually(t, "be ready", func() bool { return p.ReadReady() || p.HasExited() })
	if p.HasExited() {
		t.Fatalf("the server ended with %d", p.Cmd.ProcessState.ExitCode())
	}
	return p
}

// Start starts a program, and ends it when the test does.
func Start(t *testing.T, cmd *exec.Cmd) *Process {
	t.Helper()
	return &Process{Process: processtest.Start(t, cmd)}
}

// ReadReady reads the listening addresses from the log.
func (p *Process) ReadReady() bool {
	for line := range strings.Lines(p.Log.String()) {
		var ready struct {
			Msg, TCP, TLS, Unix, HTTP, HTTPS, GRPC, GRPCS, Metrics string
			RatelimitAddrs
		}
		if json.Unmarshal([]byte(line), &ready) == nil && ready.Msg == "ready" {
			p.Addr, p.TLSAddr, p.unix, p.Metrics = ready.TCP, ready.TLS, ready.Unix, ready.Metrics
			p.HTTP, p.HTTPS, p.GRPC, p.GRPCS = ready.HTTP, ready.HTTPS, ready.GRPC, ready.GRPCS
			p.Ratelimit = ready.RatelimitAddrs
			return true
		}
	}
	return false
}

// Dial connects, over TLS if the process has it; the connection is closed when the test ends.
func (p *Process) Dial(t *testing.T) net.Conn {
	t.Helper()
	if p.TLS != nil {
		return tls.Client(DialTCP(t, p.TLSAddr), p.TLS)
	}
	return DialTCP(t, p.Addr)
}

func DialTCP(t *testing.T, addr string) net.Conn {
	t.Helper()
	return patience.Conn{Conn: dial(t, "tcp", addr)}
}

func DialUnix(t *testing.T, path string) net.Conn {
	t.Helper()
	return dial(t, "unix", path)
}

// dial connects, and closes the connection when the test ends.
func dial(t *testing.T, network, addr string) net.Conn {
	t.Helper()
	nc, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return nc
}

// Socket returns the TCP connection below TLS.
func Socket(nc net.Conn) *net.TCPConn {
	if over, ok := nc.(*tls.Conn); ok {
		nc = over.NetConn()
	}
	return nc.(patience.Conn).Conn.(*net.TCPConn)
}

// Port returns the TCP port, for tools that take host and port separately.
func (p *Process) Port() string {
	_, port, _ := net.SplitHostPort(p.Addr)
	return port
}

// RSS returns the resident memory in bytes.
func (p *Process) RSS(t *testing.T) int {
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
