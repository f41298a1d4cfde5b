//go:build unix

package operation

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/app"
	"cellserver/internal/test/processtest"
)

// TestSIGHUPAsThePortOpens: a service manager may send SIGHUP as soon as the port is open.
func TestSIGHUPAsThePortOpens(t *testing.T) {
	t.Parallel()
	for range 8 {
		addr := processtest.FreeAddr(t)
		p := harness.Start(t, harness.Command(t, "--addr", addr, "--metrics-addr", "", "--log-format", "json",
			"--data-dir", t.TempDir()))
		p.Addr = addr
		p.Eventually(t, "listen", func() bool {
			nc, err := net.Dial("tcp", addr)
			if err == nil {
				_ = nc.Close()
			}
			return err == nil
		})
		p.Signal(t, syscall.SIGHUP)
		log := p.Logged(t, `"reloading on SIGHUP"`)
		if ready := strings.Index(log, `"msg":"ready"`); ready < 0 ||
			ready > strings.Index(log, "reloading on SIGHUP") {
			t.Errorf("reloaded before clients were served:\n%s", log)
		}
		nc := p.Dial(t)
		harness.Exchange(t, nc, "PING\r\n", "+PONG\r\n")
		_ = nc.Close() // else the shutdown lingers for a second
		if code := p.Stop(t, syscall.SIGTERM); code != 0 {
			t.Errorf("ended with %d", code)
		}
	}
}

// pipeFile makes a named pipe. read waits for a reader, calls then, and writes text.
func pipeFile(t *testing.T) (path string, read func(then func(), text string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, func(then func(), text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		then()
		if _, err := io.WriteString(f, text); err != nil {
			t.Error(err)
		}
		_ = f.Close()
	}
}

// TestSIGHUPWhileStarting: files changed during the start are read again once clients are served, and the
// service manager is notified in that order.
func TestSIGHUPWhileStarting(t *testing.T) {
	t.Parallel()
	config := harness.WriteFile(t, "maxclients: 100\n")
	limits, read := pipeFile(t)
	m := newServiceManager(t)
	cmd := harness.Command(t, "--addr", "127.0.0.1:0", "--metrics-addr", "", "--log-format", "json",
		"--config", config, "--limits-file", limits)
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+m.path)
	p := harness.Start(t, cmd)
	read(func() {
		if err := os.WriteFile(config, []byte("maxclients: 200\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p.Signal(t, syscall.SIGHUP)
	}, "limits: {}\n")
	m.expect(t, "READY=1")
	m.expect(t, `RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]*\n`)
	read(func() {}, "limits: {}\n")
	m.expect(t, "READY=1")
	p.Logged(t, `"settings":"maxclients"`)
	p.Eventually(t, "be ready", p.ReadReady)
	p.Get(t, "maxclients", "200")
}

func TestEndBeforeClientsAreServed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var log bytes.Buffer
	args := []string{"--addr", "127.0.0.1:0", "--metrics-addr", ""}
	if err := app.Run(ctx, args, nil, io.Discard, &log); err != nil ||
		!strings.Contains(log.String(), "stopped") {
		t.Errorf("%v; the log is %s", err, log.String())
	}
}

// silentAt forwards connections to a server until a client sends word, then nothing more.
func silentAt(t *testing.T, to, word string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				return
			}
			go func() { _, _ = io.Copy(client, server) }()
			go func() {
				defer server.Close()
				buf := make([]byte, 64<<10)
				for silent := false; ; {
					n, err := client.Read(buf)
					if err != nil {
						return
					}
					if silent = silent || bytes.Contains(bytes.ToLower(buf[:n]), []byte(word)); !silent {
						_, _ = server.Write(buf[:n])
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestHangupEndsSubcommands: a dump whose terminal closes leaves no partial file; one under nohup goes on.
func TestHangupEndsSubcommands(t *testing.T) {
	t.Parallel()
	taken := make(chan os.Signal, 1)
	signal.Notify(taken, syscall.SIGHUP) // else children would ignore it whenever these tests do
	t.Cleanup(func() { signal.Stop(taken) })
	p := harness.StartServer(t)
	harness.Charge(t, p, "k")
	addr := silentAt(t, p.Addr, "scan")
	for _, nohup := range []bool{false, true} {
		t.Run(fmt.Sprint("nohup=", nohup), func(t *testing.T) {
			t.Parallel()
			checkHangup(t, addr, nohup)
		})
	}
}

func checkHangup(t *testing.T, addr string, nohup bool) {
	t.Helper()
	dir := t.TempDir()
	files := func() int {
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	cmd := harness.Command(t, "dump", "--from", "redis://"+addr, filepath.Join(dir, "keys.dump"))
	if nohup {
		cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, cmd.Args...)
		cmd.Path = "/bin/sh"
	}
	dump := harness.Start(t, cmd)
	dump.Eventually(t, "begin", func() bool { return files() == 1 || dump.HasExited() })
	end := syscall.SIGHUP
	if nohup {
		dump.Signal(t, syscall.SIGHUP)
		end = syscall.SIGTERM
	}
	if code := dump.Stop(t, end); code != 1 || files() != 0 {
		t.Errorf("ended with %d, and left %d files", code, files())
	}
	if log := dump.Log.String(); !strings.Contains(log, "dump: interrupted; no dump was written") {
		t.Errorf("got %q", log)
	}
}
