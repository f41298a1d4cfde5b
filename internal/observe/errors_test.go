package observe

import (
	"strings"
	"testing"
)

// TestErrorCodesAreBounded: a client that makes codes up cannot fill the memory.
func TestErrorCodesAreBounded(t *testing.T) {
	var e ErrorReplies
	for i := range 10_000 {
		e.Count(strings.Repeat("x", i) + " error")
	}
	n := 0
	e.Each(func(code string, _ int64) {
		if n++; len(code) > maxCodeBytes {
			t.Errorf("a code of %d bytes", len(code))
		}
	})
	if n > maxCodes || e.Total() != 10_000 {
		t.Errorf("%d codes, of %d errors", n, e.Total())
	}
}
