package window

import (
	"encoding/binary"

	"cellserver/internal/funnel"
)

// ring is an exact window's payload: the oldest record's index, the number of records and units, the oldest
// and the newest time, in front so that few calls wait for a record's memory, then space for a power of two
// of records, each a time and units, by time.
type ring struct {
	b        []byte
	head     int
	length   int
	capacity int
	units    int64
	oldestNs int64
	newestNs int64
}

const (
	ringHeader   = 32
	recordBytes  = 16
	leastRecords = 2

	oldestAt, newestAt = 16, 24 // of the header

	// MaxExactBytes is the longest payload of an exact window.
	MaxExactBytes = ringHeader + MaxExact*recordBytes
)

// openRing returns a payload's ring, empty if it is damaged.
func openRing(b []byte) ring {
	if len(b) >= ringHeader {
		g := ring{
			b:        b,
			head:     int(binary.LittleEndian.Uint32(b)),
			length:   int(binary.LittleEndian.Uint32(b[4:])),
			capacity: (len(b) - ringHeader) / recordBytes,
			units:    int64(binary.LittleEndian.Uint64(b[8:])),
			oldestNs: int64(binary.LittleEndian.Uint64(b[oldestAt:])),
			newestNs: int64(binary.LittleEndian.Uint64(b[newestAt:])),
		}
		if g.sound() {
			return g
		}
	}
	return ring{b: b[:0]}
}

func (g *ring) sound() bool {
	return len(g.b) == ringHeader+g.capacity*recordBytes && g.capacity > 0 && g.capacity <= MaxExact && g.capacity&(g.capacity-1) == 0 &&
		g.head < g.capacity && g.length > 0 && g.length <= g.capacity && g.units > 0 && g.units <= MaxExact
}

// close returns the payload with an updated header.
func (g *ring) close() []byte {
	if len(g.b) >= ringHeader {
		binary.LittleEndian.PutUint32(g.b, uint32(g.head))
		binary.LittleEndian.PutUint32(g.b[4:], uint32(g.length))
		binary.LittleEndian.PutUint64(g.b[8:], uint64(g.units))
		binary.LittleEndian.PutUint64(g.b[oldestAt:], uint64(g.oldestNs))
		binary.LittleEndian.PutUint64(g.b[newestAt:], uint64(g.newestNs))
	}
	return g.b
}

// record returns the i-th oldest record.
func (g *ring) record(i int) []byte {
	at := g.recordAt(i)
	return g.b[at : at+recordBytes]
}

func (g *ring) recordAt(i int) int { return ringHeader + (g.head+i)&(g.capacity-1)*recordBytes }

func (g *ring) timeNs(i int) int64 {
	switch i {
	case 0:
		return g.oldestNs
	case g.length - 1:
		return g.newestNs
	}
	return g.recordedNs(i)
}

func (g *ring) recordedNs(i int) int64 { return int64(binary.LittleEndian.Uint64(g.record(i))) }

// unitsOf returns a record's units, capped.
func (g *ring) unitsOf(i int) int64 {
	return int64(min(binary.LittleEndian.Uint64(g.record(i)[8:]), uint64(g.units)))
}

func (g *ring) setUnits(i int, units int64) {
	binary.LittleEndian.PutUint64(g.record(i)[8:], uint64(units))
}

// olderThan returns the number of records a period old, and their units.
func (g *ring) olderThan(nowNs int64, periodNs uint64) (n int, units int64) {
	for n < g.length && g.timeNs(n) < nowNs && funnel.Since(g.timeNs(n), nowNs) >= periodNs {
		units += g.unitsOf(n)
		n++
	}
	if n == g.length {
		return n, g.units
	}
	return n, min(units, g.units)
}

func (g *ring) dropOldest(n int) {
	if n == 0 {
		return
	}
	for ; n > 0; n-- {
		g.units -= g.unitsOf(0)
		g.head = (g.head + 1) & (g.capacity - 1)
		g.length--
	}
	if g.length > 0 {
		g.oldestNs = g.recordedNs(0)
	}
	g.clearIfEmpty()
}

// takeNewest removes units, the newest first.
func (g *ring) takeNewest(units int64) {
	for units > 0 && g.length > 0 {
		last := g.length - 1
		n := g.unitsOf(last)
		taken := min(n, units)
		units -= taken
		g.units -= taken
		if taken < n {
			g.setUnits(last, n-taken)
		} else if g.length--; g.length > 0 {
			g.newestNs = g.recordedNs(g.length - 1)
		}
	}
	g.clearIfEmpty()
}

// keepNewest removes the oldest units beyond a number.
func (g *ring) keepNewest(units int64) {
	for g.units > units && g.length > 0 {
		over, n := g.units-units, g.unitsOf(0)
		if n > over {
			g.setUnits(0, n-over)
			g.units = units
			break
		}
		g.dropOldest(1)
	}
}

// clearIfEmpty corrects the units of damaged records.
func (g *ring) clearIfEmpty() {
	if g.length == 0 {
		g.head, g.units, g.oldestNs, g.newestNs = 0, 0, 0, 0
	}
}

// add adds units to the newest record if it has the same time (or the ring is damaged), else as a new one.
func (g *ring) add(nowNs, units int64) {
	if last := g.length - 1; last >= 0 && (g.timeNs(last) >= nowNs || g.length == MaxExact) {
		g.setUnits(last, g.unitsOf(last)+units)
		g.units += units
		return
	}
	if g.length == g.capacity {
		g.grow()
	}
	if g.length == 0 {
		g.oldestNs = nowNs
	}
	g.newestNs = nowNs
	g.length++
	g.units += units
	r := g.record(g.length - 1)
	binary.LittleEndian.PutUint64(r, uint64(nowNs))
	binary.LittleEndian.PutUint64(r[8:], uint64(units))
}

// grow doubles the space and moves the records before the oldest behind the others.
func (g *ring) grow() {
	if g.capacity == 0 {
		g.b = append(g.b[:0], make([]byte, ringHeader+leastRecords*recordBytes)...)
		g.capacity = leastRecords
		return
	}
	g.b = append(g.b, make([]byte, g.capacity*recordBytes)...)
	records := g.b[ringHeader:]
	copy(records[g.capacity*recordBytes:], records[:g.head*recordBytes])
	g.capacity *= 2
}

// shrink halves the space while three quarters are free.
func (g *ring) shrink() {
	for g.capacity > leastRecords && g.length <= g.capacity/4 {
		records := g.b[ringHeader:]
		first := records[g.head*recordBytes : min(g.head+g.length, g.capacity)*recordBytes]
		rest := g.length*recordBytes - len(first)
		copy(records[len(first):], records[:rest]) // cannot overlap, as three quarters are free
		copy(records, first)
		g.head = 0
		g.capacity /= 2
		g.b = g.b[:ringHeader+g.capacity*recordBytes]
	}
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

// ShiftSliding adds byNs to every time of an exact sliding window.
func ShiftSliding(payload []byte, byNs int64) {
	g := openRing(payload)
	for i := range g.length {
		binary.LittleEndian.PutUint64(g.record(i), uint64(funnel.Shift(g.recordedNs(i), byNs)))
	}
	g.oldestNs, g.newestNs = funnel.Shift(g.oldestNs, byNs), funnel.Shift(g.newestNs, byNs)
	g.close()
}

// EachNewest calls f with each position of the newest record's time in an exact window's payload.
func EachNewest(payload []byte, f func(at int)) {
	g := openRing(payload)
	if g.length == 0 {
		return
	}
	if g.length == 1 {
		f(oldestAt)
	}
	f(newestAt)
	f(g.recordAt(g.length - 1))
}
