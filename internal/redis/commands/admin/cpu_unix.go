//go:build unix

package admin

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func infoCPU(t *infoText) {
	var self, children unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &self) // cannot fail on these two
	_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &children)
	sec := func(v unix.Timeval) string { return fmt.Sprintf("%.6f", float64(v.Nano())/1e9) }
	t.fields("used_cpu_sys", sec(self.Stime), "used_cpu_user", sec(self.Utime),
		"used_cpu_sys_children", sec(children.Stime), "used_cpu_user_children", sec(children.Utime))
}
