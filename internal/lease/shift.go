package lease

import "cellserver/internal/funnel"

// Shift brings a payload to another clock, by which all is so much later.
func Shift(payload []byte, byNs int64) {
	if !sound(payload) {
		return
	}
	for at := 0; at < len(payload); at += recordBytes {
		setEnd(payload, at, funnel.Shift(endAt(payload, at), byNs))
	}
}
