package redistest

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endWithParent kills the server with this process, whose cleanups may not run.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// cpuSeconds reads the CPU clock of a process: the complement of its id, shifted past CPUCLOCK_SCHED (2); see
// clock_getcpuclockid.
func cpuSeconds(pid int) (float64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil { //nolint:gosec // ids of processes are 22 bits at most
		return 0, fmt.Errorf("redistest: CPU time of %d: %w", pid, err)
	}
	return time.Duration(t.Nano()).Seconds(), nil
}
