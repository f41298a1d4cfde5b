//go:build !linux

package background

import "runtime"

// Yield lets other goroutines have the processor.
func Yield() { runtime.Gosched() }
