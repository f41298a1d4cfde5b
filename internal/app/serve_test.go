package app

import (
	"runtime"
	"testing"
)

// TestRoomBesideTheLoops: scripts never wait for an event loop to be preempted, whatever --io-threads says.
func TestRoomBesideTheLoops(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, tt := range []struct{ processors, ioThreads, background, places int }{
		{1, 0, 0, 1},
		{1, 1, 1, 2},
		{2, 0, 1, 2},
		{2, 1, 1, 2},
		{2, 2, 1, 3},
		{4, 1, 3, 4},
		{4, 4, 1, 5},
		{2, 8, 1, 9},
	} {
		runtime.GOMAXPROCS(tt.processors)
		if n, places := backgroundThreads(tt.ioThreads), runtime.GOMAXPROCS(0); n != tt.background || places != tt.places {
			t.Errorf("%d processors, %d loops: %d in the background, of %d in all; want %+v", tt.processors, tt.ioThreads, n, places, tt)
		}
	}
}
