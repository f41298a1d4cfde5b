package server

import (
	"testing"
	"unsafe"
)

// TestConnectionIsSmall: there may be very many.
func TestConnectionIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(loopConn{}); size > 240 {
		t.Errorf("%d bytes", size)
	}
}
