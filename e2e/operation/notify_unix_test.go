//go:build unix

package operation

import (
	"syscall"
	"testing"
	"time"
)

// TestWatchdogOfAStoppedProcess: the watchdog is not fed while the process is stopped, and fed again
// afterwards.
func TestWatchdogOfAStoppedProcess(t *testing.T) {
	m := newServiceManager(t)
	p := m.start(t, "100000")
	m.expect(t, "WATCHDOG=1")
	if err := p.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for silent := false; !silent; { // drain messages from before the stop
		select {
		case <-m.told:
		case <-time.After(300 * time.Millisecond):
			silent = true
		}
	}
	if err := p.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	m.expect(t, "WATCHDOG=1")
}
