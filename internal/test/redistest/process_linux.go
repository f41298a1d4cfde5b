package redistest

import (
	"os/exec"
	"syscall"
)

// endWithParent kills the server with this process, whose cleanups may not run.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
