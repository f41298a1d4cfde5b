// Package target starts the server under test, and restarts it on its ports. It stops only what it started. A
// Server is for one goroutine.
package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Spec says how to start the server. In Argv these placeholders are replaced: {port}, {tls-port},
// {metrics-port}, {password}, {cert}, {key}, {ca}.
type Spec struct {
	Argv     []string // the path of the program is absolute
	Dir      string   // its working directory, where it may write
	Password string
	Files    Files
}

// Server is a running server on loopback.
type Server struct {
	Port, TLSPort int

	argv     []string
	dir      string
	password string
	cmd      *exec.Cmd
	ended    chan struct{} // closed when it has exited
	output   *tail
}

const (
	startTimeout = 5 * time.Minute
	stopTimeout  = 5 * time.Minute
	startRetries = 3 // with other ports, if another process has taken one
)

// Start returns once the server listens on its ports.
func Start(ctx context.Context, spec Spec) (*Server, error) {
	var err error
	for range startRetries {
		var s *Server
		if s, err = newServer(ctx, spec); err != nil {
			return nil, err
		}
		if err = s.start(ctx); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func newServer(ctx context.Context, spec Spec) (*Server, error) {
	ports, err := FreePorts(ctx, 3)
	if err != nil {
		return nil, err
	}
	s := &Server{Port: ports[0], TLSPort: ports[1], dir: spec.Dir, password: spec.Password}
	words := strings.NewReplacer(
		"{port}", strconv.Itoa(s.Port), "{tls-port}", strconv.Itoa(s.TLSPort), "{metrics-port}", strconv.Itoa(ports[2]),
		"{password}", spec.Password, "{cert}", spec.Files.Cert, "{key}", spec.Files.Key, "{ca}", spec.Files.CA)
	for _, arg := range spec.Argv {
		s.argv = append(s.argv, words.Replace(arg))
	}
	return s, nil
}

// Restart stops the server and starts it again on the same ports.
func (s *Server) Restart(ctx context.Context) error {
	s.Stop()
	return s.start(ctx)
}

// Stop stops the server and waits for it.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case <-s.ended:
	case <-time.After(stopTimeout):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

func (s *Server) start(ctx context.Context) error {
	s.ended, s.output = make(chan struct{}), new(tail)
	s.cmd = exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
	s.cmd.Dir, s.cmd.Env = s.dir, cleanEnviron()
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	s.cmd.WaitDelay = stopTimeout
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("target: start %s: %w", s.argv[0], err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("it does not listen after %s", startTimeout))
	defer cancel()
	for _, port := range []int{s.Port, s.TLSPort} {
		if err := s.awaitPort(ctx, port); err != nil {
			s.Stop()
			return fmt.Errorf("target: %s: %w: %s", strings.Join(s.argv, " "), err, s.output)
		}
	}
	return nil
}

// isLoaded reports whether the server takes connections, and on its plain port answers commands.
func (s *Server) isLoaded(ctx context.Context, port int) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if port != s.Port {
		return true
	}
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if s.password != "" {
		_, _ = fmt.Fprintf(conn, "AUTH %s\r\n", s.password)
	}
	_, _ = io.WriteString(conn, "DBSIZE\r\nQUIT\r\n")
	replies, _ := io.ReadAll(conn)
	return !bytes.Contains(replies, []byte("LOADING"))
}

func (s *Server) awaitPort(ctx context.Context, port int) error {
	for {
		if s.isLoaded(ctx, port) {
			return nil
		}
		select {
		case <-s.ended:
			return errors.New("it ended")
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// cleanEnviron returns the environment without variables that would configure the server.
func cleanEnviron() (env []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CELLSERVER_") {
			env = append(env, variable)
		}
	}
	return env
}

// The ports are below those of outgoing connections, because such a connection could otherwise take a
// server's port before it listens, or even connect to itself.
const (
	lowestPort  = 10_000
	highestPort = 32_000
)

// FreePorts returns several ports that were free a moment ago.
func FreePorts(ctx context.Context, n int) (ports []int, err error) {
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }() // only after all are found, so that they differ
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("target: no free port from %d to %d", lowestPort, highestPort)
}

// tailBytes of a server's output are kept for errors.
const tailBytes = 1000

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex // guards text
	text string
}

var _ io.Writer = (*tail)(nil)

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text += string(b)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.text)
}
