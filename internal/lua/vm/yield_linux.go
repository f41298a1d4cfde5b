package vm

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Yield yields to other goroutines, and with toThreads to other threads: otherwise Linux lets a computing
// thread run for a millisecond or more beside a woken one.
func Yield(toThreads bool) {
	runtime.Gosched()
	if toThreads {
		_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // cannot fail
	}
}

// ThreadClock returns a clock of the calling thread's processor time in nanoseconds.
func ThreadClock() func() int64 {
	return func() int64 {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // cannot fail
		return t.Nano()
	}
}
