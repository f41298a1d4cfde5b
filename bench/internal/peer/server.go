// Package peer starts the servers to measure, has their commands, and reads their CPU time and memory. It
// stops only what it started. Its types are for one goroutine.
package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cellserver/internal/test/patience"
)

// Server is a process that listens on loopback.
type Server struct {
	Name string
	Addr netip.AddrPort

	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended
	output *output
	beside *Server // a process that it needs, or nil
}

// spec is how a server is started.
type spec struct {
	name string
	argv []string
	port int            // to listen on; 0 if the server chooses and prints one
	told *regexp.Regexp // finds the chosen port in a line of the output
	dir  string
	env  []string // further variables
}

// stopTimeout is when a server that was told to end as this program does is killed.
const stopTimeout = 15 * time.Second

// start returns once the server answers.
func start(ctx context.Context, s spec) (*Server, error) {
	server := &Server{Name: s.name, ended: make(chan struct{}), output: newOutput(s.told)}
	cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, server.output, server.output
	cmd.Env = append(cleanEnviron(), s.env...)
	// The kernel kills it if this process is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("peer: start %s: %w", s.name, err)
	}
	server.cmd = cmd
	go func() {
		_ = cmd.Wait()
		close(server.ended)
	}()
	if err := server.awaitReady(ctx, s); err != nil {
		server.Stop()
		return nil, fmt.Errorf("peer: %s does not start: %w", strings.Join(s.argv, " "), err)
	}
	return server, nil
}

// cleanEnviron returns the environment without variables that would configure a server under test.
func cleanEnviron() (env []string) {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "CELLSERVER_") || strings.HasPrefix(name, "THROTTLECRAB_") ||
			name == "GOMAXPROCS" || name == "GOGC" || name == "GOMEMLIMIT" || name == "GODEBUG" {
			continue
		}
		env = append(env, variable)
	}
	return env
}

func (s *Server) awaitReady(ctx context.Context, spec spec) error {
	port := spec.port
	var wait patience.Patience
	for {
		if port != 0 {
			s.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
			if conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr.String()); err == nil {
				return conn.Close()
			}
		}
		if wait.Over() {
			return fmt.Errorf("it does not answer: %w: %s", patience.ErrIdle, s.output.last())
		}
		retry := time.After(20 * time.Millisecond)
		told := s.output.port
		if port != 0 {
			told = nil
		}
		select {
		case port = <-told:
		case <-retry:
		case <-s.ended:
			return fmt.Errorf("it ended: %s", s.output.last())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Stop stops the server and waits for it.
func (s *Server) Stop() {
	if s.beside != nil {
		defer s.beside.Stop()
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if _, ended := patience.Receive(s.ended); !ended {
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

// Err returns an error if the server has ended.
func (s *Server) Err() error {
	select {
	case <-s.ended:
		return fmt.Errorf("peer: %s has ended: %s", s.Name, s.output.last())
	default:
		return nil
	}
}

// CPU returns the user and system time of the processes so far, to the nanosecond.
func (s *Server) CPU() (time.Duration, error) {
	own, err := cpuTime(s.cmd.Process.Pid)
	if err != nil {
		return 0, fmt.Errorf("peer: CPU time of %s: %w", s.Name, errors.Join(err, s.Err()))
	}
	if s.beside == nil {
		return own, nil
	}
	other, err := s.beside.CPU()
	return own + other, err
}

// cpuTime reads the CPU clock of a process: the complement of its id, shifted past CPUCLOCK_SCHED (2); see
// clock_getcpuclockid.
func cpuTime(pid int) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid)<<3|2, &t)
	return time.Duration(t.Nano()), err
}

// RSS returns the resident bytes of the processes.
func (s *Server) RSS() (int, error) {
	own, err := residentBytes(s.cmd.Process.Pid)
	if err != nil || s.beside == nil {
		return own, err
	}
	other, err := s.beside.RSS()
	return own + other, err
}

func residentBytes(pid int) (int, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0, fmt.Errorf("peer: memory: %w", err)
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0, fmt.Errorf("peer: memory: /proc/%d/statm is %q", pid, b)
	}
	pages, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0, fmt.Errorf("peer: memory: %w", err)
	}
	return pages * os.Getpagesize(), nil
}

// PeakRSS returns the most bytes of the process that were resident at once.
func (s *Server) PeakRSS() (int, error) {
	file := filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "status")
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("peer: memory: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("peer: memory: no VmHWM in %s", file)
}

// freePort returns a port that was free a moment ago, for servers that cannot choose one themselves.
func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("peer: free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// output reads what a server prints: its port, and the last line for errors.
type output struct {
	told *regexp.Regexp
	port chan int

	mu      sync.Mutex // guards all below
	partial strings.Builder
	line    string
}

func newOutput(told *regexp.Regexp) *output { return &output{told: told, port: make(chan int, 1)} }

var _ io.Writer = (*output)(nil)

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partial.Write(b)
	text := o.partial.String()
	end := strings.LastIndexByte(text, '\n') + 1
	o.partial.Reset()
	o.partial.WriteString(text[end:])
	for lines := bufio.NewScanner(strings.NewReader(text[:end])); lines.Scan(); {
		if strings.TrimSpace(lines.Text()) != "" {
			o.line = lines.Text()
		}
		if o.told == nil {
			continue
		}
		if m := o.told.FindStringSubmatch(lines.Text()); m != nil {
			port, _ := strconv.Atoi(m[1])
			o.told = nil
			o.port <- port
		}
	}
	return len(b), nil
}

func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.line == "" {
		return "it said nothing"
	}
	return o.line
}
