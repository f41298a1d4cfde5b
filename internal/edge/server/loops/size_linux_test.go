package loops

import (
	"testing"
	"unsafe"
)

// TestConnectionIsSmall bounds the memory of an idle client.
func TestConnectionIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(connection{}); size > 240 {
		t.Errorf("got %d bytes, want at most 240", size)
	}
}
