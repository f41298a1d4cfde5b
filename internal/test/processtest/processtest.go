// Package processtest runs programs for tests and stops them when the test ends.
package processtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cellserver/internal/test/patience"
)

type Process struct {
	Cmd *exec.Cmd
	Log Log

	exited  chan struct{}
	stopped bool // by the test
}

// Log stores a process's output. It is safe for concurrent use.
type Log struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Command returns a command that ends as by Await shortly before go test's time-out, which runs no cleanups.
func Command(t *testing.T, path string, args ...string) *exec.Cmd {
	t.Helper()
	ctx := context.Background()
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-5*time.Second))
		t.Cleanup(cancel)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = killAfter
	return cmd
}

// killAfter is the time for a process to print its goroutines before it is killed.
const killAfter = 3 * time.Second

// Run starts a command, for programs. Its output goes to Log, unless the command has another place for it.
func Run(cmd *exec.Cmd) (*Process, error) {
	p := &Process{Cmd: cmd, exited: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout, cmd.Stderr = &p.Log, &p.Log
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// Start is Run for a test, which prints Log if it fails. The command must not exit before Stop, nor with an
// error.
func Start(t *testing.T, cmd *exec.Cmd) *Process {
	t.Helper()
	p, err := Run(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.HasExited() && !p.stopped {
			t.Errorf("%s exited unexpectedly, with %d", cmd.Path, cmd.ProcessState.ExitCode())
		} else if !p.stopped {
			if code := p.Stop(t, syscall.SIGTERM); code != 0 {
				t.Errorf("%s ended with %d after SIGTERM", cmd.Path, code)
			}
		}
		if t.Failed() {
			t.Logf("the log of %s:\n%s", cmd.Path, p.Log.String())
		}
	})
	return p
}

func (p *Process) HasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Kill ends the process, and returns once it has ended.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	<-p.exited
}

// Stop sends a signal and then calls Await.
func (p *Process) Stop(t *testing.T, sig os.Signal) (code int) {
	t.Helper()
	if err := p.Cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	return p.Await(t)
}

// Await waits for the process and returns its exit code, or -1 after a signal. A process that hangs is ended
// and prints its goroutines.
func (p *Process) Await(t *testing.T) (code int) {
	t.Helper()
	p.stopped = true
	if _, ok := patience.Receive(p.exited); !ok {
		t.Errorf("%s does not end", p.Cmd.Path)
		_ = p.Cmd.Process.Signal(syscall.SIGQUIT)
		kill := time.AfterFunc(killAfter, func() { _ = p.Cmd.Process.Kill() })
		<-p.exited
		kill.Stop()
	}
	return p.Cmd.ProcessState.ExitCode()
}

// Eventually waits for cond, and fails the test after a minute without movement.
func (p *Process) Eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	if !patience.Until(cond) {
		t.Fatalf("%s does not %s", p.Cmd.Path, what)
	}
}

// Logged waits for a text in the log, which may follow the reply of its cause, and returns the log.
func (p *Process) Logged(t *testing.T, text string) (log string) {
	t.Helper()
	p.Eventually(t, "log "+text, func() bool {
		log = p.Log.String()
		return strings.Contains(log, text)
	})
	return log
}
