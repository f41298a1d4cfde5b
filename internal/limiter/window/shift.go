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

// WrittenAt calls f with each place where the payload of an exact sliding window has atNs, if that is the
// newest record's time: then units were counted at it.
func WrittenAt(payload []byte, atNs int64, f func(at int)) {
	g := openRing(payload)
	if g.length == 0 || g.newestNs != atNs {
		return
	}
	if g.oldestNs == atNs {
		f(oldestAt)
	}
	f(newestAt)
	f(g.recordAt(g.length - 1))
}

// ApproxStart returns when the current period of an approximate window began, and how long after now its
// last moment is, which is 0 if the period begins now. It is false if no units were counted in the period.
func ApproxStart(payload []byte, expiresNs, nowNs int64) (startNs, leftNs int64, ok bool) {
	var c counters
	if c.read(payload); c.current == 0 || expiresNs <= c.startNs {
		return 0, 0, false
	}
	if c.startNs == nowNs {
		return nowNs, 0, true
	}
	periodNs := funnel.Since(c.startNs, expiresNs) / 2 // as emptyNs is two periods later
	return c.startNs, int64(funnel.Since(nowNs+1, funnel.After(c.startNs, periodNs))), true
}
