package deploytest

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// root is the repository's.
const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, dir, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// need skips a test that lacks a tool; in CI it fails, for CI must have them all.
func need(t *testing.T, tool, debianPackage string) {
	t.Helper()
	if _, err := exec.LookPath(tool); err == nil {
		return
	}
	why := "needs " + tool + ", of Debian's package " + debianPackage + ": run scripts/deps.sh"
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// run returns what a command prints, and fails the test with it if the command fails.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func buildServer(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "cellserver")
	run(t, root, "go", "build", "-o", binary, "./cmd/cellserver")
	return binary
}

// process is a program that runs for a test.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	log    processLog
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

func start(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("the log of %s:\n%s", name, p.log.String())
		}
	})
	return p
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.exited:
	case <-time.After(20 * time.Second):
		t.Errorf("%s does not end", p.cmd.Path)
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// server is a running cellserver.
type server struct {
	*process
	addr, metrics string
}

func startServer(t *testing.T, binary, addr, metrics string, env ...string) *server {
	t.Helper()
	s := &server{process: start(t, append(env, "CELLSERVER_ADDR="+addr, "CELLSERVER_METRICS_ADDR="+metrics, "GOMEMLIMIT=900MiB"), binary)}
	ready := regexp.MustCompile(`msg=ready .*tcp=(\S+) metrics=(\S+)`)
	eventually(t, 20*time.Second, "cellserver is ready", func() bool {
		if m := ready.FindStringSubmatch(s.log.String()); m != nil {
			s.addr, s.metrics = m[1], m[2]
		}
		return s.addr != "" || s.hasExited()
	})
	if s.hasExited() {
		t.Fatalf("cellserver ended: %s", s.log.String())
	}
	return s
}

// eventually waits until cond is true, and fails the test if that takes too long.
func eventually(t *testing.T, timeout time.Duration, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !cond(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", timeout, what)
		}
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// isFlagVariable reports whether a variable sets a flag, by what the server's --help lists.
func isFlagVariable(help, name string) bool {
	flag, ours := strings.CutPrefix(name, "CELLSERVER_")
	flag = strings.ToLower(strings.ReplaceAll(flag, "_", "-"))
	return ours && regexp.MustCompile(`(?m)^ .*--`+regexp.QuoteMeta(flag)+`\b[^-]`).MatchString(help)
}
