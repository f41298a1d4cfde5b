//go:build unix

package durability

import (
	"syscall"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/randtest"
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
			dir, load := t.TempDir(), killLoad(randtest.New(t), interval == "0")
			p := harness.StartKeeping(t, dir, "--fsync-interval", interval)
			run := load.Begin(t.Context(), p.Addr)
			time.Sleep(300 * time.Millisecond)
			p.Signal(t, syscall.SIGSTOP)
			time.Sleep(3 * time.Second)
			p.Signal(t, syscall.SIGCONT)
			patience.Until(func() bool { return load.Confirmed() > 0 })
			endLoad(t, run, p, syscall.SIGKILL)
			if found := checkLoad(t, load, harness.StartKeeping(t, dir, "--fsync-interval", interval)); found.Confirmed == 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}
