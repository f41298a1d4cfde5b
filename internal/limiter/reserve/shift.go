package reserve

import (
	"encoding/binary"

	"cellserver/internal/funnel"
)

// Shift adds byNs to every time.
func Shift(payload []byte, byNs int64) {
	l, ok := Open(payload)
	if !ok {
		return
	}
	le := binary.LittleEndian
	shift := func(b []byte) { le.PutUint64(b, uint64(funnel.Shift(int64(le.Uint64(b)), byNs))) }
	for at := 0; at < headerBytes; at += 8 { // three times
		shift(payload[at:])
	}
	for i := range l.Len() {
		shift(l.at(i)[8:]) // the expiry
	}
}
