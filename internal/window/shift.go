package window

import (
	"encoding/binary"

	"cellserver/internal/funnel"
)

// ShiftSliding brings the payload of an exact sliding window to another clock, by which all is so much later.
func ShiftSliding(payload []byte, byNs int64) {
	g := openRing(payload)
	for i := range g.length {
		binary.LittleEndian.PutUint64(g.record(i), uint64(funnel.Shift(g.recordedNs(i), byNs)))
	}
	g.oldestNs, g.newestNs = funnel.Shift(g.oldestNs, byNs), funnel.Shift(g.newestNs, byNs)
	g.close()
}

// ShiftApprox is ShiftSliding for an approximate window.
func ShiftApprox(payload []byte, byNs int64) {
	if len(payload) == approxBytes {
		le := binary.LittleEndian
		le.PutUint64(payload, uint64(funnel.Shift(int64(le.Uint64(payload)), byNs)))
	}
}
