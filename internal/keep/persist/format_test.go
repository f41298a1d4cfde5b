package persist

import (
	"bytes"
	"testing"

	"cellserver/internal/keep/changes"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestFramesAreReadBack: frames are read in order, and not with a changed bit or a missing end.
func TestFramesAreReadBack(t *testing.T) {
	var buf []byte
	want := []frame{{1, 2, 3}, {7, 1 << 60, -1}}
	payloads := [][]byte{nil, []byte("payload")}
	for i, f := range want {
		at := len(buf)
		buf = append(beginFrame(buf), payloads[i]...)
		endFrame(buf, at, f)
	}
	rest := buf
	for i := range want {
		f, payload, behind, err := readFrame(rest)
		if err != nil || f != want[i] || !bytes.Equal(payload, payloads[i]) {
			t.Fatalf("frame %d: %+v %q, %v", i, f, payload, err)
		}
		rest = behind
	}
	if len(rest) != 0 {
		t.Fatalf("%d bytes are left", len(rest))
	}
	second := buf[frameHeaderBytes:]
	for n := range second {
		if _, _, _, err := readFrame(second[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are a frame", n, len(second))
		}
	}
	for bit := range 8 * len(second) {
		flipped := bytes.Clone(second)
		flipped[bit/8] ^= 1 << (bit % 8)
		if f, _, _, err := readFrame(flipped); err == nil {
			t.Fatalf("with bit %d changed it is read as %+v", bit, f)
		}
	}
}

// someRecords returns one of each kind, and of each kind of limiter.
func someRecords() []byte {
	buf := changes.Append(nil, 0, &store.Change{Flushed: true})
	buf = changes.Append(buf, 0, &store.Change{Key: store.Key{Name: []byte("gone")}})
	for kind := range limiter.Kinds {
		s := stateOf([]byte{'0' + byte(kind)}, 1<<60)
		buf = changes.Append(buf, 0, &store.Change{Key: store.Key{DB: 7 * uint16(kind), Name: []byte("k")}, State: s})
	}
	return changes.Append(buf, 0, &store.Change{Spent: &store.Spent{SpentAt: store.SpentAt{Limit: "k", Day: 20_000}, Units: 7}})
}
