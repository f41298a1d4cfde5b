package server

import (
	"testing"
	"unsafe"
)

// TestConnectionIsSmall bounds the memory of an idle client.
func TestConnectionIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(loopConn{}); size > 240 {
		t.Errorf("got %d bytes, want at most 240", size)
	}
}
