//go:build !linux

package lua

import "runtime"

// yield lets other goroutines have the processor.
func yield(bool) { runtime.Gosched() }
