package durability

import (
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/killtest"
)

const (
	diskLost      = "degraded: changes do not reach the disk, and would be forgotten by a restart; the log says why\n"
	diskRefuses   = "degraded: changes do not reach the disk, and calls that would change a key get MISCONF; the log says why\n"
	memoryEvicts  = "degraded: keys were evicted in the last minute, and have their full burst again; raise --maxmemory\n"
	memoryRefuses = "degraded: new keys were refused in the last minute; raise --maxmemory\n"

	// floodKeys are more than what a maximum of 48 MiB has room for.
	floodKeys = 400_000
)

// isDegraded waits until cellserver health lists that many ways in which a ready server is degraded, and
// compares them, and /readyz.
func isDegraded(t *testing.T, p *harness.Process, ways string) {
	t.Helper()
	var out, errOut string
	var code int
	p.Eventually(t, "be degraded", func() bool {
		code, out, errOut = harness.Call(t, nil, "health", "--metrics-addr", p.Metrics)
		return strings.Count(out, "\n") == 1+strings.Count(ways, "\n") || p.HasExited()
	})
	if code != 0 || out != "ok\n"+ways {
		t.Errorf("health: got %d, %q, %q, want %q", code, out, errOut, "ok\n"+ways)
	}
	if code, text := p.Readiness(t); code != 200 || text+"\n" != "ok\n"+ways {
		t.Errorf("/readyz: got %d, %q, want %q", code, text, ways)
	}
}

// TestFullDiskAndMemoryAreDegraded: a server that goes on deciding is ready, and says what it lacks.
func TestFullDiskAndMemoryAreDegraded(t *testing.T) {
	t.Parallel()
	bad := badDisks()["no space"](t)
	p := harness.StartKeeping(t, bad.dir, "--fsync-interval", "50ms", "--maxmemory", "48mb")
	isDegraded(t, p, "")
	bad.fail(t, p)
	harness.Charge(t, p, harness.ManyKeys("during")...)
	p.AwaitFault(t, 1)
	isDegraded(t, p, diskLost)
	harness.Flood(t, p, "f", floodKeys)
	isDegraded(t, p, diskLost+memoryEvicts)
	p.Stop(t, syscall.SIGKILL) // the disk has no room for the keys
}

// TestRefusalsAreDegraded: so is a server that refuses what the disk, or the memory, does not take.
func TestRefusalsAreDegraded(t *testing.T) {
	t.Parallel()
	bad := badDisks()["no space"](t)
	p := harness.StartKeeping(t, bad.dir, "--fsync-interval", "0")
	bad.fail(t, p)
	held := make(chan struct{})
	go func() {
		defer close(held)
		// It is answered once the disk has room.
		_ = killtest.Charge(t.Context(), p.Addr, harness.ManyKeys("held")...)
	}()
	p.AwaitFault(t, 1)
	isDegraded(t, p, diskRefuses)
	bad.end(t, p)
	p.AwaitFault(t, 0)
	isDegraded(t, p, "")
	<-held

	p = harness.StartServer(t, "--maxmemory", "48mb", "--maxmemory-policy", "noeviction")
	harness.Flood(t, p, "f", floodKeys)
	isDegraded(t, p, memoryRefuses)
}
