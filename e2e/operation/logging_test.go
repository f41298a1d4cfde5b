package operation

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
)

// fullPipe returns both ends of a full pipe, the writing one first.
func fullPipe(t *testing.T) (full, end *os.File) {
	t.Helper()
	end, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = end.Close()
		_ = full.Close()
	})
	if err := full.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Skip("pipes have no deadlines on this system:", err)
	}
	for err == nil {
		_, err = full.Write(make([]byte, 1))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return full, end
}

// startWithLog starts a server on a fixed address that logs to a file.
func startWithLog(t *testing.T, log *os.File, args ...string) (p *harness.Process) {
	t.Helper()
	addr := processtest.FreeAddr(t)
	cmd := harness.Command(t, append([]string{"--addr", addr, "--metrics-addr", "", "--log-level", "debug"}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	p = &harness.Process{Process: processtest.Start(t, cmd), Addr: addr}
	p.Eventually(t, "listen", func() bool {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			_ = nc.Close()
		}
		return err == nil || p.HasExited()
	})
	return p
}

// TestLogThatNobodyReads: a blocked log delays neither clients nor the shutdown; once read again it reports
// the number of lost lines.
func TestLogThatNobodyReads(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	for _, ioThreads := range []string{"0", "1"} {
		for _, readAtLast := range []bool{false, true} {
			log, end := fullPipe(t)
			p := startWithLog(t, log, "--io-threads", ioThreads)
			nc := p.Dial(t)
			harness.Exchange(t, nc, "AUTH wrong\r\n", "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n")
			harness.Exchange(t, p.Dial(t), "AUTH nobody wrong\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n")
			for range 190 { // more than the queue holds
				harness.Exchange(t, nc, strings.Repeat("CONFIG SET maxclients 100\r\n", 100), strings.Repeat("+OK\r\n", 100))
			}
			harness.Exchange(t, nc, "CL.THROTTLE k 15 30 60\r\n", "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n")
			var text processtest.Log
			read := make(chan struct{})
			if readAtLast {
				_ = log.Close()
				go func() {
					_, _ = io.Copy(&text, end)
					close(read)
				}()
				p.Eventually(t, "tell of lost lines", func() bool {
					return strings.Contains(text.String(), "log lines were lost")
				})
			}
			if code := p.Stop(t, syscall.SIGTERM); code != 0 {
				t.Errorf("io-threads %s: ended with %d", ioThreads, code)
			}
			if !readAtLast {
				continue
			}
			<-read
			for _, want := range []string{"msg=ready", "msg=stopped"} {
				if !strings.Contains(text.String(), want) {
					t.Errorf("io-threads %s: the log has no %q in %d bytes", ioThreads, want, len(text.String()))
				}
			}
		}
	}
}

// TestLogBeginsWithThePage: the first line has an address that a browser opens on this host.
func TestLogBeginsWithThePage(t *testing.T) {
	t.Parallel()
	files, ca := harness.NewTLSFiles(t)
	limits := harness.WriteFile(t, "limits:\n  login: {rules: [{algorithm: funnel, max_burst: 4, count: 5, period: 1m}]}\n")
	users := harness.WriteFile(t, "user default on nopass ~* +@all\n")
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool}, DisableKeepAlives: true}}
	for _, tt := range []struct {
		args  []string
		first string
	}{
		{[]string{"--metrics-addr", "127.0.0.1:0"}, `level=INFO msg="live page" url=(http://127.0.0.1:\d+/)`},
		{[]string{"--log-format", "json"}, `"level":"INFO","msg":"live page","url":"(http://127.0.0.1:\d+/)"}`},
		{[]string{"--data-dir", t.TempDir(), "--maxmemory", "1gb", "--maxclients", "1000000000", "--limits-file", limits, "--aclfile", users}, `url=(http://127.0.0.1:\d+/)`},
		{[]string{"--metrics-addr", "0.0.0.0:0"}, `url=(http://localhost:\d+/)`},
		{[]string{"--metrics-tls-cert", files.Cert, "--metrics-tls-key", files.Key}, `url=(https://127.0.0.1:\d+/)`},
		{[]string{"--no-dashboard"}, `msg="memory is unbounded, .*\n.* msg=ready .* metrics=\S+`},
		{[]string{"--metrics-addr", ""}, `msg="memory is unbounded, .*\n.* msg=ready .* tcp=\S+`},
	} {
		cmd := harness.Command(t, append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"}, tt.args...)...)
		log := harness.Start(t, cmd).Logged(t, "ready")
		first := regexp.MustCompile(`^.*` + tt.first + `\n`).FindStringSubmatch(log)
		switch {
		case first == nil:
			t.Errorf("%q: the log does not begin with %s:\n%s", tt.args, tt.first, log)
		case len(first) > 1:
			answer, err := browser.Get(first[1])
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Errorf("%q: %s answers %s", tt.args, first[1], answer.Status)
			}
		}
	}
}

func TestLogWhoseReaderEnds(t *testing.T) {
	t.Parallel()
	end, log, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = end.Close()
	p := startWithLog(t, log)
	_ = log.Close()
	nc := p.Dial(t)
	harness.Exchange(t, nc, "CONFIG SET maxclients 100\r\n", "+OK\r\n")
	p.Eventually(t, "count lost lines", func() bool {
		_, lost, found := strings.Cut(harness.SayTo(t, nc, "INFO stats\r\n", "\r\n\r\n"), "cell_dropped_log_lines:")
		return found && !strings.HasPrefix(lost, "0\r\n")
	})
	if code := p.Stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("ended with %d", code)
	}
}

func TestMistakeThatNobodyReads(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--nope"}, {"--addr", "no port"}} {
		log, _ := fullPipe(t)
		cmd := harness.Command(t, args...)
		cmd.Stdout, cmd.Stderr = log, log
		p := processtest.Start(t, cmd)
		if code := p.Await(t); code == 0 {
			t.Errorf("%q: ended with %d", args, code)
		}
	}
}
