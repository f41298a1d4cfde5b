//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"
)

// TestPausedServer: SIGSTOP stops syncs, too, and SIGCONT lets them go on.
func TestPausedServer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	for _, interval := range []string{"1s", "0"} {
		t.Run(interval, func(t *testing.T) {
			t.Parallel()
			dir, load := t.TempDir(), killLoad(interval == "0")
			p := startKeeping(t, dir, "--fsync-interval", interval)
			run := load.Begin(t.Context(), p.addr)
			time.Sleep(300 * time.Millisecond)
			p.signal(t, syscall.SIGSTOP)
			time.Sleep(3 * time.Second)
			p.signal(t, syscall.SIGCONT)
			time.Sleep(1500 * time.Millisecond)
			endLoad(t, run, p, syscall.SIGKILL)
			if found := checkLoad(t, load, startKeeping(t, dir, "--fsync-interval", interval)); found.Confirmed == 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}
