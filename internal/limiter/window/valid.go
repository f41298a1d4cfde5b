package window

import "encoding/binary"

func ValidFixed(payload []byte) bool {
	return len(payload) == fixedBytes && int64(binary.LittleEndian.Uint64(payload)) >= 0
}

// ValidSliding reports whether a payload is an exact sliding window's with this expiry.
func ValidSliding(payload []byte, expiresNs int64) bool {
	g := openRing(payload)
	if g.length == 0 {
		return false
	}
	if g.recordedNs(0) != g.oldestNs || g.recordedNs(g.length-1) != g.newestNs {
		return false
	}
	sum := uint64(0)
	for i := range g.length {
		units := binary.LittleEndian.Uint64(g.record(i)[8:])
		if units == 0 || units > MaxExact || i > 0 && g.timeNs(i) < g.timeNs(i-1) {
			return false
		}
		sum += units
	}
	return sum == uint64(g.units) && g.timeNs(g.length-1) <= expiresNs
}

// ValidApprox reports whether a payload is an approximate window's with this expiry.
func ValidApprox(payload []byte, expiresNs int64) bool {
	if len(payload) != approxBytes {
		return false
	}
	var c counters
	c.read(payload)
	unchanged := string(c.append(nil)) == string(payload)
	return unchanged && c.startNs <= expiresNs && (c.previous > 0 || c.current > 0)
}
