package durability

import (
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
)

// TestRepliesAreBoundedInTime: on a disk that takes nothing each call that would be kept gets an error in its
// time, behind which its connection goes on; what it had charged is charged once, and kept when the disk
// takes it.
func TestRepliesAreBoundedInTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	for name, disk := range badDisks() {
		t.Run(name, func(t *testing.T) {
			harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
				disk := disk(t)
				p := startServer(t, "--data-dir", disk.dir,
					"--fsync-interval", "0", "--fsync-timeout", "10s")
				p.Eventually(t, "load its data", func() bool { return p.Ask(t, "/readyz", "", nil) == 200 })
				nc := p.Dial(t)
				// A long name follows, of which a full disk takes none: the first fills the file's page.
				const throttle = "CL.THROTTLE k:"
				harness.SayTo(t, nc, throttle+strings.Repeat("x", 3500)+" 9 1 100000\r\n", ":100000\r\n")
				name := strings.Repeat("y", 600)
				first := throttle + name + " 9 1 100000\r\n"
				disk.fail(t, p)
				calls := "PING\r\n" + strings.Repeat(first, 3) + "MULTI\r\n" + first + "EXEC\r\nECHO end\r\n"
				const late = "-MISCONF the disk has not taken the change within --fsync-timeout: "
				got := harness.SayTo(t, nc, calls, "$3\r\nend\r\n")
				if !strings.HasPrefix(got, "+PONG\r\n"+late) ||
					!strings.Contains(got, "\r\n+OK\r\n+QUEUED\r\n"+late) || strings.Count(got, late) != 4 ||
					strings.Count(got, "\r\n") != 9 {
					t.Errorf("got %.2000q", got)
				}
				p.AwaitFault(t, 1)
				const misconf = "-MISCONF the data directory cannot be written"
				if got := harness.SayTo(t, nc, first+"PING\r\n", "+PONG\r\n"); !strings.HasPrefix(got, misconf) {
					t.Errorf("then got %q", got)
				}
				disk.end(t, p)
				p.AwaitFault(t, 0)
				harness.Exchange(t, nc, throttle+"1 9 1 100000\r\nPING\r\n",
					"*5\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:100000\r\n+PONG\r\n")
				p.Stop(t, syscall.SIGKILL)
				p = startServer(t, "--data-dir", disk.dir)
				p.Eventually(t, "load its data", func() bool { return p.Ask(t, "/readyz", "", nil) == 200 })
				harness.Exchange(t, p.Dial(t), throttle+name+" 9 1 100000 0\r\n", "*5\r\n:0\r\n:10\r\n:6\r\n:")
			})
		})
	}
}
