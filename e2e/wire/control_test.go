package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
)

func TestConfigSetTakesEffect(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t)
		operator := p.Dial(t)
		set := func(args string) {
			t.Helper()
			harness.Exchange(t, operator, "CONFIG SET "+args+"\r\n", "+OK\r\n")
		}
		t.Run("all or none", func(t *testing.T) {
			harness.Exchange(t, operator, "CONFIG SET maxclients 5 timeout no\r\n",
				"-ERR CONFIG SET failed (possibly related to argument 'timeout') - argument couldn't be parsed into an integer\r\n")
			harness.Exchange(t, operator, "CONFIG GET maxclients\r\n", "*2\r\n$10\r\nmaxclients\r\n")
			harness.Exchange(t, p.Dial(t), "PING\r\n", "+PONG\r\n")
		})
		operator = p.Dial(t)
		t.Run("requirepass", func(t *testing.T) {
			stays := p.Dial(t)
			harness.Exchange(t, stays, "PING\r\n", "+PONG\r\n")
			set("requirepass secret")
			harness.Exchange(t, p.Dial(t), "PING\r\nAUTH secret\r\nPING\r\n", noAuth+"+OK\r\n+PONG\r\n")
			harness.Exchange(t, stays, "PING\r\n", "+PONG\r\n") // as in Redis
			set("requirepass \"\"")
			harness.Exchange(t, p.Dial(t), "PING\r\n", "+PONG\r\n")
		})
		t.Run("max-output-bytes", func(t *testing.T) {
			set("max-output-bytes 65536 output-timeout 1")
			floodUntilClosed(t, p.Dial(t))
		})
		t.Run("maxclients", func(t *testing.T) {
			p.Eventually(t, "be left by the others", func() bool {
				return p.Metric(t, "cellserver_connections") <= 6
			})
			set("maxclients 1")
			refused := wireCase{want: "-ERR max number of clients reached\r\n", closed: true}
			if p.TLS != nil {
				refused.want = ""
			}
			refused.run(t, p)
			harness.Exchange(t, operator, "PING\r\n", "+PONG\r\n")
			set("maxclients 1000")
			harness.Exchange(t, p.Dial(t), "PING\r\n", "+PONG\r\n")
		})
		t.Run("timeout", func(t *testing.T) {
			silent := p.Dial(t)
			harness.Exchange(t, silent, "PING\r\n", "+PONG\r\n")
			set("timeout 1")
			if rest, err := io.ReadAll(silent); len(rest) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("a silent client got %q, %v", rest, err)
			}
		})
	})
}

func TestConfigSetProtectedMode(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--addr", "0.0.0.0:0")
	_, port, _ := net.SplitHostPort(p.Addr)
	loopback, other := net.JoinHostPort("127.0.0.1", port), net.JoinHostPort(harness.Outside(t), port)
	operator := harness.DialTCP(t, loopback)
	harness.Exchange(t, harness.DialTCP(t, other), "PING\r\n", "-DENIED cellserver is running in protected mode")
	harness.Exchange(t, operator, "CONFIG SET protected-mode no\r\n", "+OK\r\n")
	harness.Exchange(t, harness.DialTCP(t, other), "PING\r\n", "+PONG\r\n")
	harness.Exchange(t, operator, "CONFIG SET protected-mode yes\r\n", "+OK\r\n")
	harness.Exchange(t, harness.DialTCP(t, other), "PING\r\n", "-DENIED ")
	harness.Exchange(t, operator, "CONFIG SET requirepass secret\r\n", "+OK\r\n")
	harness.Exchange(t, harness.DialTCP(t, other), "AUTH secret\r\nPING\r\n", "+OK\r\n+PONG\r\n")
}

// TestShutdownByAClient: SHUTDOWN is graceful: all pending replies are sent.
func TestShutdownByAClient(t *testing.T) {
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t)
		nc, other := p.Dial(t), p.Dial(t)
		harness.Exchange(t, nc, "SHUTDOWN ABORT\r\nSHUTDOWN SOON\r\n", "-ERR No shutdown in progress.\r\n-ERR syntax error\r\n")
		const replies = 20_000
		harness.Send(t, other, strings.Repeat("PING\r\n", replies))
		p.Eventually(t, "execute what the other client sent", func() bool {
			return strings.Contains(harness.Reply(t, nc, "INFO commandstats"), fmt.Sprintf("cmdstat_ping:calls=%d,", replies))
		})
		harness.Send(t, nc, strings.Repeat("PING\r\n", replies)+"SHUTDOWN NOSAVE NOW FORCE\r\n"+"PING\r\n")
		if rest, _ := io.ReadAll(nc); string(rest) != strings.Repeat("+PONG\r\n", replies) {
			t.Errorf("its client got %d bytes of replies, want %d", len(rest), replies*len("+PONG\r\n"))
		}
		if rest, _ := io.ReadAll(other); string(rest) != strings.Repeat("+PONG\r\n", replies) {
			t.Errorf("another client got %d bytes of replies, want %d", len(rest), replies*len("+PONG\r\n"))
		}
		if code := p.Await(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

func TestDebugIsForWhomTheFlagSays(t *testing.T) {
	t.Parallel()
	host := harness.Outside(t)
	const refused = "-ERR DEBUG command not allowed."
	for flag, want := range map[string]struct{ local, other string }{
		"no": {refused, refused}, "local": {"+OK\r\n", refused}, "yes": {"+OK\r\n", "+OK\r\n"},
	} {
		args := []string{"--addr", "0.0.0.0:0", "--protected-mode", "no"}
		if flag != "no" { // the default
			args = append(args, "--enable-debug-command", flag)
		}
		p := harness.StartServer(t, args...)
		_, port, _ := net.SplitHostPort(p.Addr)
		harness.Exchange(t, harness.DialTCP(t, net.JoinHostPort("127.0.0.1", port)), "DEBUG SLEEP 0\r\n", want.local)
		harness.Exchange(t, harness.DialTCP(t, net.JoinHostPort(host, port)), "DEBUG SLEEP 0\r\n", want.other)
	}
}

// TestRestartAfterAKill starts a server on the addresses of a killed one with clients.
func TestRestartAfterAKill(t *testing.T) {
	t.Parallel()
	files, ca := harness.NewTLSFiles(t)
	socket := filepath.Join(t.TempDir(), "cell.sock")
	args := append(files.Flags(), "--unixsocket", socket, "--unixsocketperm", "700")
	config := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
	connect := func(p *harness.Process) []net.Conn {
		return []net.Conn{harness.DialTCP(t, p.Addr), tls.Client(harness.DialTCP(t, p.TLSAddr), config), harness.DialUnix(t, socket)}
	}
	args = append(args, "--addr", processtest.FreeAddr(t), "--tls-addr", processtest.FreeAddr(t))
	p := harness.StartServer(t, args...)
	for range 3 {
		clients := connect(p)
		for _, nc := range clients {
			harness.Exchange(t, nc, "CL.THROTTLE k 15 30 60 0\r\n", "*5\r\n:0\r\n:16\r\n:16\r\n:-1\r\n:0\r\n")
		}
		p.Stop(t, syscall.SIGKILL)
		for _, nc := range clients {
			if rest, _ := io.ReadAll(nc); len(rest) > 0 {
				t.Errorf("a killed server sent %q", rest)
			}
		}
		p = harness.StartServer(t, args...)
	}
	connect(p)
}
