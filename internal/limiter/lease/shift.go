package lease

import (
	"encoding/binary"

	"cellserver/internal/funnel"
)

// Shift adds byNs to every time.
func Shift(payload []byte, byNs int64) {
	if !sound(payload) {
		return
	}
	for at := 0; at < len(payload); at += recordBytes {
		setEnd(payload, at, funnel.Shift(endAt(payload, at), byNs))
	}
}

// Written calls f for each lease given or renewed since before, with the position and value of its end.
func Written(before, payload []byte, f func(at int, endNs int64)) {
	if !sound(before) || !sound(payload) {
		before = nil
	}
	was := 0 // leases keep their order; new ones come last
	for at := 0; at+recordBytes <= len(payload); at += recordBytes {
		id := binary.LittleEndian.Uint64(payload[at:])
		for was < len(before) && binary.LittleEndian.Uint64(before[was:]) != id {
			was += recordBytes
		}
		if endNs := endAt(payload, at); was == len(before) || endAt(before, was) != endNs {
			f(at+8, endNs)
		}
	}
}
