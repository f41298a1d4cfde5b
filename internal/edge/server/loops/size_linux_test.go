package loops

import (
	"testing"
	"unsafe"
)

// TestConnectionIsSmall: there may be very many.
func TestConnectionIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(connection{}); size > 240 {
		t.Errorf("%d bytes", size)
	}
}
