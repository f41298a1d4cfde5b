//go:build !linux

package guard

import "runtime"

// yield lets other goroutines have the processor.
func yield(bool) { runtime.Gosched() }

// Yield lets others go first for once, as a run does now and then.
func Yield() { yield(true) }

// ThreadClock returns nil: the processor time of a thread is not known here.
func ThreadClock() func() int64 { return nil }
