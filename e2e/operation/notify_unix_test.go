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
	p.Signal(t, syscall.SIGSTOP)
	for silent := false; !silent; { // drain messages from before the stop
		select {
		case <-m.told:
		case <-time.After(300 * time.Millisecond):
			silent = true
		}
	}
	p.Signal(t, syscall.SIGCONT)
	m.expect(t, "WATCHDOG=1")
}
