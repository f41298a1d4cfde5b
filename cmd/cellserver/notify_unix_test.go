//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

// The watchdog is not fed while the process is stopped, and fed again when it continues.
func TestWatchdogOfAStoppedProcess(t *testing.T) {
	m := newServiceManager(t)
	p := m.start(t, "100000")
	m.expect(t, "WATCHDOG=1")
	if err := p.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil { // messages from before the stop
		_, err = m.read(300 * time.Millisecond)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if err := p.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	m.expect(t, "WATCHDOG=1")
}
