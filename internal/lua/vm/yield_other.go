//go:build !linux

package vm

import "runtime"

func yield(bool) { runtime.Gosched() }

// Yield yields once, as a run does regularly.
func Yield() { yield(true) }

// ThreadClock returns nil: processor time is unknown here.
func ThreadClock() func() int64 { return nil }
