package guard

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// yield lets other goroutines have the processor, and if toThreads says so the system's other threads, too: Linux
// otherwise leaves one that computes its processor for a millisecond or more while others have been woken for it.
func yield(toThreads bool) {
	runtime.Gosched()
	if toThreads {
		_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // cannot fail
	}
}

// Yield lets others go first for once, as a run does now and then.
func Yield() { yield(true) }

// ThreadClock returns a clock of the processor time that the calling thread has had, in nanoseconds.
func ThreadClock() func() int64 {
	return func() int64 {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // cannot fail
		return t.Nano()
	}
}
