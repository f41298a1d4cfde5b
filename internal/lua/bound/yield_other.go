//go:build !linux

package bound

import "runtime"

// yield lets other goroutines have the processor.
func yield(bool) { runtime.Gosched() }
