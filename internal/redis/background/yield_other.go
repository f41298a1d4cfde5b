//go:build !linux

package background

import "runtime"

// Yield yields to other goroutines.
func Yield() { runtime.Gosched() }
