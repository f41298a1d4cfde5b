package background

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Yield yields the processor to other goroutines and threads. Long work calls it every 100 microseconds or
// so: otherwise Linux lets a computing thread run for milliseconds beside a woken event loop.
func Yield() {
	runtime.Gosched()
	_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // cannot fail
}
