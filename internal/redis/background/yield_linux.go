package background

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Yield lets other goroutines and the system's other threads have the processor. Work that takes long calls it every 100
// microseconds or so: Linux otherwise leaves a thread that computes its processor for milliseconds while an event loop has
// been woken for it.
func Yield() {
	runtime.Gosched()
	_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // cannot fail
}
