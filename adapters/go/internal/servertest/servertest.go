// Package servertest runs cellserver for tests, on loopback and free ports. A Server is for one goroutine.
package servertest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Run runs a package's tests with a server built from this repository, whose root is a path from there.
func Run(m *testing.M, root string, binary *string) (code int) {
	dir, err := os.MkdirTemp("", "cellserver")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		*binary, err = build(root, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	logging.Disable() // go-redis logs each connection that fails
	return m.Run()
}

// Need skips a test without its programs. make test lists them by the file TEST_SKIPPED; TEST_VERIFY lets
// nothing be skipped.
func Need(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if os.Getenv("TEST_VERIFY") != "" {
			t.Fatal("requires " + program)
		}
		if f, err := os.OpenFile(os.Getenv("TEST_SKIPPED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_, _ = fmt.Fprintln(f, program)
			_ = f.Close()
		}
		t.Skip("requires " + program)
	}
}

// Seed returns the number in CELLSERVER_TEST_SEED, or else the given one, and logs it, so that a failure
// names it.
func Seed(t *testing.T, otherwise uint64) (seed uint64) {
	t.Helper()
	const env = "CELLSERVER_TEST_SEED"
	seed = otherwise
	if text := os.Getenv(env); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", env, err)
		}
	}
	t.Logf("%s=%d", env, seed)
	return seed
}

func build(root, dir string) (binary string, err error) {
	binary = filepath.Join(dir, "cellserver")
	args := []string{"build", "-pgo=off", "-trimpath", "-o", binary, "./cmd/cellserver"}
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("servertest: build cellserver: %w: %s", err, out)
	}
	return binary, nil
}

// Server is a running server.
type Server struct {
	Addr string

	process *os.Process
	ended   chan struct{}
}

var lastPort atomic.Int32 //nolint:gochecknoglobals // of FreeAddr, which returns each once

var ready = regexp.MustCompile(`msg=ready .*tcp=(\S+)`)

// Start starts a server, on a free port unless the arguments have --addr, and ends it with the test.
func Start(t *testing.T, binary string, args ...string) *Server {
	t.Helper()
	args = append([]string{"--addr=127.0.0.1:0", "--metrics-addr=127.0.0.1:0"}, args...)
	cmd := exec.CommandContext(context.Background(), binary, args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CELLSERVER_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{process: cmd.Process, ended: make(chan struct{})}
	t.Cleanup(s.Stop)
	var log strings.Builder
	lines := bufio.NewScanner(stderr)
	for s.Addr == "" && lines.Scan() {
		fmt.Fprintln(&log, lines.Text())
		if m := ready.FindStringSubmatch(lines.Text()); m != nil {
			s.Addr = m[1]
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, stderr)
		_ = cmd.Wait()
		close(s.ended)
	}()
	if s.Addr == "" {
		t.Fatalf("cellserver ended: %s", log.String())
	}
	return s
}

// FreeAddr returns a free address, for what listens again or no more: its port is below those of outgoing
// connections, which could otherwise take it, or even connect to themselves.
func FreeAddr(t *testing.T) string {
	t.Helper()
	const lowest, count = 2_000, 30_000
	lastPort.CompareAndSwap(0, 1+rand.Int32N(count))
	for {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+int(lastPort.Add(1))%count))
		if l, err := net.Listen("tcp", addr); err == nil { //nolint:noctx // it does not wait
			_ = l.Close()
			return addr
		}
	}
}

// Stop kills the server.
func (s *Server) Stop() {
	_ = s.process.Kill()
	<-s.ended
}

// Hang has the server's kernel accept connections that nobody answers.
func (s *Server) Hang(t *testing.T) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
	for !s.hasStopped() {
		time.Sleep(time.Millisecond)
	}
}

// hasStopped reports whether all threads have, where the system tells it.
func (s *Server) hasStopped() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.process.Pid))
	return !slices.ContainsFunc(threads, func(file string) bool {
		stat, err := os.ReadFile(file)
		return err == nil && !strings.Contains(string(stat), ") T ")
	})
}

// Continue ends Hang.
func (s *Server) Continue(t *testing.T) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := s.process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// Long is a time-out that does not pass.
const Long = time.Hour

// Patient gives options time-outs that do not pass.
func Patient(o *redis.Options) *redis.Options {
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = Long, Long, Long, Long
	return o
}

// Do sends a command, such as "cl.limit set api funnel 0 1 60", and has no time-outs.
func (s *Server) Do(t *testing.T, command string) any {
	t.Helper()
	c := redis.NewClient(Patient(&redis.Options{Addr: s.Addr, Protocol: 2, MaxRetries: -1}))
	defer func() { _ = c.Close() }()
	args := []any{}
	for word := range strings.FieldsSeq(command) {
		args = append(args, word)
	}
	v, err := c.Do(t.Context(), args...).Result()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return v
}
