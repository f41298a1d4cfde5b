//go:build !linux

package vm

import "runtime"

// Yield yields to other goroutines.
func Yield(bool) { runtime.Gosched() }

// ThreadClock returns nil: processor time is unknown here.
func ThreadClock() func() int64 { return nil }
