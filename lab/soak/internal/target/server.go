// Package target starts the attacked server and observes its log, metrics and process.
package target

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"cellserver/internal/test/patience"
)

type Spec struct {
	Binary string
	Dir    string // for its files, empty at first
	Args   []string

	// LogUnread leaves the log's pipe full and unread once the server is ready.
	LogUnread bool
	// Password is the default user's, or empty for none: clients without it are strangers.
	Password string
	// Plain is a server on TCP only.
	Plain bool
	Log   io.Writer // gets the log; may be nil
}

// Server is a running cellserver, on free ports.
type Server struct {
	TCP, TLS, Unix, Metrics, HTTP, GRPC string

	LogBytes atomic.Int64

	cmd       *exec.Cmd
	tlsConfig *tls.Config
	log       io.Writer // may be nil
	ready     chan error
	logEnded  chan struct{}

	mu      sync.Mutex // guards trouble
	trouble []string
	exited  chan struct{}
	exitErr error
	http    http.Client
}

// AppUser is a user whose password attackers guess; one of them knows it.
const (
	AppUser     = "app"
	AppPassword = "a-secret-that-nobody-guesses"
)

// prepare writes the server's files and returns its arguments and the clients' trust.
func (spec Spec) prepare() (args []string, trust *tls.Config, err error) {
	if spec.Plain {
		return append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "", "--log-format", "json"}, spec.Args...), nil, nil
	}
	files, err := writeCertificates(spec.Dir)
	if err != nil {
		return nil, nil, err
	}
	users := filepath.Join(spec.Dir, "users.acl")
	password := "nopass"
	if spec.Password != "" {
		password = ">" + spec.Password
	}
	rules := "user default on " + password + " ~* &* +@all\nuser " + AppUser + " on >" + AppPassword + " ~* +@all\n"
	if err := os.WriteFile(users, []byte(rules), 0o600); err != nil {
		return nil, nil, err
	}
	args = append([]string{
		"--addr", "127.0.0.1:0", "--tls-addr", "127.0.0.1:0", "--unixsocket", filepath.Join(spec.Dir, "socket"),
		"--tls-cert", files.cert, "--tls-key", files.key, "--tls-auth-clients", "no", "--aclfile", users,
		"--metrics-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--pprof", "--log-format", "json",
	}, spec.Args...)
	return args, &tls.Config{RootCAs: files.roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}, nil
}

// Start starts a server that listens on TCP, TLS and a unix socket, with its doors, and waits until it is
// ready.
func Start(ctx context.Context, spec Spec) (*Server, error) {
	args, tlsConfig, err := spec.prepare()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cmd:       exec.Command(spec.Binary, args...), //nolint:noctx,gosec // ends by Stop; the user named the binary
		tlsConfig: tlsConfig, log: spec.Log,
		ready: make(chan error, 1), logEnded: make(chan struct{}), exited: make(chan struct{}),
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stderr = writer
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	defer writer.Close()
	go s.readLog(reader, spec.LogUnread)
	context.AfterFunc(ctx, func() { _ = s.cmd.Process.Kill() }) // nobody waits for it
	go func() {
		s.exitErr = s.cmd.Wait()
		close(s.exited)
	}()
	starting, started := patience.Context(ctx)
	defer started()
	select {
	case err = <-s.ready:
	case <-s.exited:
		_ = writer.Close()
		<-s.logEnded
		err = fmt.Errorf("the server ended before it was ready: %w: %s", s.exitErr, strings.Join(s.Trouble(), "; "))
	case <-starting.Done():
		err = fmt.Errorf("the server is not ready: %w", context.Cause(starting))
	}
	if err == nil && spec.LogUnread {
		err = fillPipe(writer)
	}
	if err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

// fillPipe opens the pipe again, as only that end may be nonblocking.
func fillPipe(writer *os.File) error {
	fd, err := syscall.Open(fmt.Sprintf("/proc/self/fd/%d", writer.Fd()), syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("fill the log's pipe: %w", err)
	}
	defer syscall.Close(fd) //nolint:errcheck // nothing is lost
	for size := 4096; size > 0; {
		if _, err := syscall.Write(fd, make([]byte, size)); errors.Is(err, syscall.EAGAIN) {
			size /= 2
		} else if err != nil {
			return fmt.Errorf("fill the log's pipe: %w", err)
		}
	}
	return nil
}

// readLog finds the addresses, and keeps lines that are not JSON, such as reports of the race detector and
// the runtime. It ends with the server, or after the ready line.
func (s *Server) readLog(pipe *os.File, unread bool) {
	defer close(s.logEnded)
	defer pipe.Close()
	lines := bufio.NewReaderSize(pipe, 1<<20)
	for {
		// longer lines come in parts, of which only the first begins with {
		line, err := lines.ReadSlice('\n')
		s.LogBytes.Add(int64(len(line)))
		if s.log != nil {
			_, _ = s.log.Write(line)
		}
		if s.readLine(bytes.TrimSpace(line), errors.Is(err, bufio.ErrBufferFull)) && unread {
			<-s.exited
			return
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = lines.ReadSlice('\n')
			s.LogBytes.Add(int64(len(line)))
		}
		if err != nil {
			return
		}
	}
}

// readLine reports whether the server became ready.
func (s *Server) readLine(line []byte, cut bool) bool {
	switch {
	case len(line) == 0 || cut:
		return false
	case line[0] != '{' || bytes.Contains(line, []byte(`"panic":`)):
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.trouble) < 200 {
			s.trouble = append(s.trouble, string(line))
		}
		return false
	case s.TCP != "" || !bytes.Contains(line, []byte(`"msg":"ready"`)):
		return false
	}
	var at struct{ TCP, TLS, Unix, Metrics, HTTP, GRPC string }
	err := json.Unmarshal(line, &at)
	s.TCP, s.TLS, s.Unix, s.Metrics, s.HTTP, s.GRPC = at.TCP, at.TLS, at.Unix, at.Metrics, at.HTTP, at.GRPC
	s.ready <- err
	return true
}

// Trouble returns lines that no healthy server writes. It is complete after the server's end.
func (s *Server) Trouble() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.trouble...)
}

// PID returns the process ID.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Signal sends a signal.
func (s *Server) Signal(sig os.Signal) error { return s.cmd.Process.Signal(sig) }

// Stop sends SIGTERM and waits for the server and its log. It returns the time taken, and an error beyond
// patience or after a bad end.
func (s *Server) Stop(patience time.Duration) (time.Duration, error) {
	began := time.Now()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.Kill()
		return patience, fmt.Errorf("the server did not end within %s of SIGTERM", patience)
	}
	took := time.Since(began)
	<-s.logEnded
	return took, s.exitErr
}

// Kill ends the server by SIGKILL.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// Build builds cellserver from the directory above, with the race detector or without.
func Build(ctx context.Context, dir string, race bool) (string, error) {
	binary, err := filepath.Abs(filepath.Join(dir, "cellserver"))
	if err != nil {
		return "", err
	}
	// The race detector's build omits the profile, which takes minutes.
	args, cgo := []string{"build", "-trimpath", "-o", binary, "./cmd/cellserver"}, "CGO_ENABLED=0"
	if race {
		args, cgo = []string{"build", "-race", "-pgo=off", "-o", binary, "./cmd/cellserver"}, "CGO_ENABLED=1"
	}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // fixed arguments
	root, err := sourceRoot()
	if err != nil {
		return "", err
	}
	cmd.Dir, cmd.Env = root, append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cellserver, in lab/soak of its source: %w: %s", err, out)
	}
	return binary, nil
}

// sourceRoot finds the repository above the working directory.
func sourceRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "cmd", "cellserver")); missing == nil {
			return dir, nil
		}
	}
	return "", errors.Join(err, errors.New("run soak in lab/soak of cellserver's source"))
}

// Known returns the options, name and value in turn, that the server has.
func Known(ctx context.Context, binary string, options ...string) ([]string, error) {
	help, err := exec.CommandContext(ctx, binary, "--help").Output() //nolint:gosec // the user named the binary
	if err != nil {
		return nil, fmt.Errorf("%s --help: %w", binary, err)
	}
	var known []string
	for i := 0; i < len(options); i += 2 {
		if strings.Contains(string(help), options[i]+" ") {
			known = append(known, options[i], options[i+1])
		}
	}
	return known, nil
}
