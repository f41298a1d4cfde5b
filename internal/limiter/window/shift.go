package window

import (
	"encoding/binary"

	"cellserver/internal/funnel"
)

// ShiftSliding adds byNs to every time of an exact sliding window.
func ShiftSliding(payload []byte, byNs int64) {
	g := openRing(payload)
	for i := range g.length {
		binary.LittleEndian.PutUint64(g.record(i), uint64(funnel.Shift(g.recordedNs(i), byNs)))
	}
	g.oldestNs, g.newestNs = funnel.Shift(g.oldestNs, byNs), funnel.Shift(g.newestNs, byNs)
	g.close()
}

// ShiftApprox adds byNs to the time of an approximate window.
func ShiftApprox(payload []byte, byNs int64) {
	if len(payload) == approxBytes {
		le := binary.LittleEndian
		le.PutUint64(payload, uint64(funnel.Shift(int64(le.Uint64(payload)), byNs)))
	}
}

// WrittenAt calls f with each position of atNs in an exact window's payload if it is the newest record's
// time, as units were counted then.
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

// ApproxStart returns the start of an approximate window's current period, and the time from now to its last
// moment, 0 if it begins now. It returns false if no units were counted in it.
func ApproxStart(payload []byte, expiresNs, nowNs int64) (startNs, leftNs int64, ok bool) {
	var c counters
	if c.read(payload); c.current == 0 || expiresNs <= c.startNs {
		return 0, 0, false
	}
	if c.startNs == nowNs {
		return nowNs, 0, true
	}
	periodNs := funnel.Since(c.startNs, expiresNs) / 2 // emptyNs is two periods later
	return c.startNs, int64(funnel.Since(nowNs+1, funnel.After(c.startNs, periodNs))), true
}
