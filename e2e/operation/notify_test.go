package operation

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/patience"
)

// serviceManager simulates systemd: it reads what a service sends to NOTIFY_SOCKET.
type serviceManager struct {
	path string
	told chan string // the kernel queues only about ten, then the service blocks
}

func newServiceManager(t *testing.T) *serviceManager {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // t.TempDir's path may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &serviceManager{path: filepath.Join(dir, "s"), told: make(chan string, 10_000)}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"})
	if err != nil {
		t.Skip("needs unix datagram sockets:", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 4096)
		for n, err := conn.Read(buf); err == nil; n, err = conn.Read(buf) {
			m.told <- string(buf[:n])
		}
	}()
	return m
}

// start starts the program under the manager, with a watchdog unless it is 0, and waits for READY.
func (m *serviceManager) start(t *testing.T, watchdog string, args ...string) *harness.Process {
	t.Helper()
	cmd := harness.Command(t, append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "", "--log-format", "json"}, args...)...)
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+m.path, "WATCHDOG_USEC="+watchdog, "WATCHDOG_PID=")
	p := harness.Start(t, cmd)
	m.expect(t, "READY=1")
	p.Eventually(t, "log that it is ready", p.ReadReady)
	return p
}

// expect waits for a matching message and ignores the watchdog's.
func (m *serviceManager) expect(t *testing.T, pattern string) {
	t.Helper()
	for {
		got, ok := patience.Receive(m.told)
		if !ok {
			t.Fatalf("no %s", pattern)
		}
		if regexp.MustCompile("^(?:" + pattern + ")$").MatchString(got) {
			return
		}
		if got != "WATCHDOG=1" {
			t.Fatalf("got %q, want %s", got, pattern)
		}
	}
}

func TestServiceManagerIsTold(t *testing.T) {
	for _, ioThreads := range []string{"0", "1"} {
		m := newServiceManager(t)
		p := m.start(t, "100000", "--io-threads", ioThreads)
		for range 5 {
			m.expect(t, "WATCHDOG=1")
		}
		p.Signal(t, syscall.SIGHUP)
		m.expect(t, `RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]*\n`)
		m.expect(t, "READY=1")
		m.expect(t, "WATCHDOG=1")
		if code := p.Stop(t, syscall.SIGTERM); code != 0 {
			t.Errorf("ended with %d", code)
		}
		m.expect(t, "STOPPING=1")
	}
}

func TestNoServiceManager(t *testing.T) {
	m := newServiceManager(t)
	for env, complaint := range map[string]string{
		"NOTIFY_SOCKET=":                     "",
		"WATCHDOG_USEC=":                     "",
		"NOTIFY_SOCKET=" + m.path + ".gone":  "cannot notify the service manager",
		"WATCHDOG_USEC=soon":                 "the service manager's watchdog is not fed",
		"NOTIFY_SOCKET=" + m.path + "/file":  "cannot notify the service manager",
		"WATCHDOG_USEC=1000\x20":             "the service manager's watchdog is not fed",
		"NOTIFY_SOCKET=@cellserver-no-such-": "cannot notify the service manager",
	} {
		cmd := harness.Command(t, "--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--log-format", "json")
		cmd.Env = append(cmd.Env, env)
		p := harness.Start(t, cmd)
		p.Eventually(t, "be ready", p.ReadReady)
		p.Stop(t, syscall.SIGTERM)
		if log := p.Log.String(); complaint == "" && strings.Contains(log, `"WARN"`) || !strings.Contains(log, complaint) {
			t.Errorf("%s: want %q in the log:\n%s", env, complaint, log)
		}
	}
}
