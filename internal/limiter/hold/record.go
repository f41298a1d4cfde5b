package hold

import (
	"encoding/binary"
	"math/bits"

	"cellserver/internal/funnel"
)

// Positions in a hold and a part, and their sizes.
const (
	flagsAt     = 2
	idAt        = 3
	endAt       = 19
	unitsAt     = 27
	pairsAt     = 35
	allAt       = 39
	recordBytes = 43 // without the begin
	beganBytes  = 8

	intervalAt  = 1
	leastAt     = 9
	windowBytes = 1
	funnelBytes = 17
)

// Flags of a hold.
const (
	charges   = 1 << iota // units stay charged when its time is over
	isOverdue             // its time is over
	hasBegan              // there is a begin
	drops                 // it goes with the next rewrite
	strips                // its parts go with the next rewrite

	keptFlags = charges | isOverdue | hasBegan
)

// Bounds of a part, for sums in 64 bits, as in package reserve.
const (
	maxDebitNs = 1 << 62
	maxLeastNs = 1 << 63
)

// record is a hold in its bytes.
type record []byte

// at returns the hold at a position, empty for a damaged one, which is the end.
func (l *Ledger) at(at int) record {
	if at+recordBytes > len(l.b) {
		return nil
	}
	size := int(binary.LittleEndian.Uint16(l.b[at:]))
	if size < recordBytes || at+size > len(l.b) {
		return nil
	}
	if r := record(l.b[at : at+size : at+size]); r.partsAt() <= size {
		return r
	}
	return nil
}

// partsAt returns the position of the first part.
func (r record) partsAt() int {
	if r.is(hasBegan) {
		return recordBytes + beganBytes
	}
	return recordBytes
}

// beganNs returns the begin, 0 if it is not known.
func (r record) beganNs() int64 {
	if !r.is(hasBegan) {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(r[recordBytes:]))
}

func (r record) id() ID             { return ID(r[idAt:]) }
func (r record) endNs() int64       { return int64(binary.LittleEndian.Uint64(r[endAt:])) }
func (r record) units() int64       { return max(0, int64(binary.LittleEndian.Uint64(r[unitsAt:]))) }
func (r record) is(flag byte) bool  { return r[flagsAt]&flag != 0 }
func (r record) set(flag byte)      { r[flagsAt] |= flag }
func (r record) setEnd(endNs int64) { binary.LittleEndian.PutUint64(r[endAt:], uint64(endNs)) }
func (r record) forgottenNs() int64 { return funnel.After(r.endNs(), RememberNs) }

// nextNs returns the time at which the hold ends or is forgotten.
func (r record) nextNs() int64 {
	if r.is(isOverdue) {
		return r.forgottenNs()
	}
	return r.endNs()
}

// part is a hold's part in its bytes.
type part []byte

// part returns the part at a position of the hold, empty behind the last one.
func (r record) part(at int) part {
	if at >= len(r) {
		return nil
	}
	n := windowBytes
	if Place(r[at]&placeMask) == InFunnel {
		n = funnelBytes
	}
	if at+n > len(r) {
		return nil
	}
	return part(r[at : at+n : at+n])
}

func (p part) state() int         { return int(p[0] >> placeBits) }
func (p part) place() Place       { return Place(p[0] & placeMask) }
func (p part) setPlace(to Place)  { p[0] = p[0]&^placeMask | byte(to) }
func (p part) intervalNs() uint64 { return binary.LittleEndian.Uint64(p[intervalAt:]) }
func (p part) least() uint64      { return min(binary.LittleEndian.Uint64(p[leastAt:]), maxLeastNs) }
func (p part) setLeast(ns uint64) { binary.LittleEndian.PutUint64(p[leastAt:], ns) }

// partOf returns the hold's part of a state by its number, empty for none.
func (r record) partOf(state int) part {
	for at := r.partsAt(); ; {
		p := r.part(at)
		if len(p) == 0 || p.state() == state {
			return p
		}
		at += len(p)
	}
}

// debit returns a funnel's debit by units, at most a possible one.
func (p part) debit(units int64) uint64 {
	hi, lo := bits.Mul64(p.intervalNs(), uint64(units))
	if hi > 0 {
		return maxDebitNs
	}
	return min(lo, maxDebitNs)
}

func (r record) found(at int) Found {
	le := binary.LittleEndian
	return Found{at: at, Overdue: r.is(isOverdue), Hold: Hold{
		ID: r.id(), Pairs: le.Uint32(r[pairsAt:]), All: le.Uint32(r[allAt:]), BeganNs: r.beganNs(), EndNs: r.endNs(), Units: r.units(), Charge: r.is(charges),
	}}
}
