// Package hold keeps the holds of a key of a named limit: units that are charged to the states of its rules,
// and whose true number is known later.
//
// A hold is open until its end, and then overdue for a day, in which it can still be settled. While its units
// are charged it has a part for each state: where in a window they are, or, for a funnel, what can be
// returned of them; see package reserve for the chain of a funnel's parts.
//
// A Ledger has no clock, belongs to one goroutine, allocates only to grow its bytes, and is total: damaged
// ones end it early.
package hold

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"
)

// Bounds of a key's holds.
const (
	MaxOpen    = 4096
	MaxOverdue = 1024
	MaxBytes   = 288 << 10

	// RememberNs is for how long a hold is overdue.
	RememberNs = 24 * 3600 * 1_000_000_000
)

// The bytes of a ledger are, in little endian:
//
//	next: i64 | last: u32 | open: u16 | overdue: u16 | number of states: u8 | states | holds
//
// next is the first time at which a hold ends or is forgotten, and last the position of the last hold. The
// states are the ids, u64, to which parts refer. The holds, in the order of their charges, are:
//
//	bytes: u16 | flags: u8 | id: 16 bytes | end: i64 | units: u64 | pairs: u32 | all: u32 | begin: i64 |
//	parts
//
// The begin is there by a flag, as holds of the first format have none. A part is a byte with the number of
// its state and a Place, and for a funnel
//
//	interval: u64 | least debt: u64
const (
	lastAt      = 8
	openAt      = 12
	overdueAt   = 14
	numStatesAt = 16
	headerBytes = 17
	stateBytes  = 8
	maxStates   = 1 << (8 - placeBits)
)

// Place is where units of a hold are in a state.
type Place uint8

const (
	Nowhere  Place = iota // the window they were in is over
	Present               // in the present window or period
	Previous              // in the previous period of an approximate window
	InFunnel

	placeBits = 2
	placeMask = 1<<placeBits - 1
)

// ID tells the holds of a key apart.
type ID = [16]byte

// Hold is what was asked for.
type Hold struct {
	ID         ID
	Pairs, All uint32 // hashes of the call's arguments
	BeganNs    int64  // 0 if it is not known
	EndNs      int64
	Units      int64
	Charge     bool // units stay charged when its time is over
}

// Part is a hold's share of a state.
type Part struct {
	State      uint64
	Place      Place
	IntervalNs uint64 // of a funnel's unit
	LeastNs    uint64 // least debt of a funnel since
}

// Return is units to be returned to a state, by a funnel's debit.
type Return struct {
	State   uint64
	Place   Place
	Units   int64
	AtNs    int64
	DebitNs uint64
}

// Ledger is the holds of a key. At each time, End must be called first.
type Ledger struct {
	b      []byte
	lastNs int64 // when the last hold is forgotten
}

// Open returns the ledger of some bytes, which it changes, and whose last hold is forgotten at lastNs. It
// returns false if they are damaged.
func Open(b []byte, lastNs int64) (l Ledger, ok bool) {
	l = Ledger{b, lastNs}
	if len(b) <= headerBytes || len(b) > MaxBytes {
		return Ledger{}, false
	}
	first := l.first()
	if last := l.last(); first >= len(b) || last < first || last+recordBytes > len(b) {
		return Ledger{}, false
	}
	return l, true
}

// New returns an empty ledger that overwrites b.
func New(b []byte) Ledger { return Ledger{b[:0], math.MinInt64} }

// Bytes returns the bytes, none of an empty ledger.
func (l *Ledger) Bytes() []byte { return l.b }

// LastNs returns the time at which the last hold is forgotten.
func (l *Ledger) LastNs() int64 { return l.lastNs }

func (l *Ledger) Len() int { return l.Open() + l.Overdue() }

func (l *Ledger) Open() int { return l.count(openAt) }

func (l *Ledger) Overdue() int { return l.count(overdueAt) }

func (l *Ledger) count(at int) int {
	if len(l.b) == 0 {
		return 0
	}
	return int(binary.LittleEndian.Uint16(l.b[at:]))
}

// NextNs returns the first time at which a hold ends or is forgotten.
func (l *Ledger) NextNs() int64 {
	if len(l.b) == 0 {
		return math.MaxInt64
	}
	return int64(binary.LittleEndian.Uint64(l.b))
}

// NextAfterNs is NextNs after a time, also where End was not called.
func (l *Ledger) NextAfterNs(nowNs int64) int64 {
	nextNs := l.NextNs()
	if nextNs > nowNs {
		return nextNs
	}
	nextNs = math.MaxInt64
	for at := range l.each() {
		for _, ns := range [...]int64{l.at(at).endNs(), l.at(at).forgottenNs()} {
			if ns > nowNs {
				nextNs = min(nextNs, ns)
			}
		}
	}
	return nextNs
}

func (l *Ledger) last() int { return int(binary.LittleEndian.Uint32(l.b[lastAt:])) }

// first returns the position of the first hold.
func (l *Ledger) first() int { return headerBytes + int(l.b[numStatesAt])*stateBytes }

func (l *Ledger) state(i int) uint64 {
	if i >= int(l.b[numStatesAt]) {
		return 0
	}
	return binary.LittleEndian.Uint64(l.b[headerBytes+i*stateBytes:])
}

// numberOf returns the number by which parts refer to a state, or -1.
func (l *Ledger) numberOf(state uint64) int {
	if len(l.b) == 0 {
		return -1
	}
	for i := range int(l.b[numStatesAt]) {
		if l.state(i) == state {
			return i
		}
	}
	return -1
}

// Knows reports whether a hold has had a part in a state.
func (l *Ledger) Knows(state uint64) bool { return l.numberOf(state) >= 0 }

// Found is a hold of a ledger, until that changes.
type Found struct {
	Hold
	Overdue bool
	at      int
}

// Find returns the hold of an id, open or overdue.
func (l *Ledger) Find(id ID) (f Found, ok bool) {
	for at := range l.each() {
		if r := l.at(at); r.id() == id {
			return r.found(at), true
		}
	}
	return f, false
}

// Held is a hold as one looks at it.
type Held struct {
	BeganNs int64 // 0 if it is not known
	EndNs   int64
	Units   int64
	Overdue bool
	Charge  bool // its units stay charged when its time is over
}

// Look returns the holds in the order of their charges.
func (l *Ledger) Look() (all []Held) {
	for at := range l.each() {
		r := l.at(at)
		all = append(all, Held{r.beganNs(), r.endNs(), r.units(), r.is(isOverdue), r.is(charges)})
	}
	return all
}

// In returns the units that are charged to a state and not settled.
func (l *Ledger) In(state uint64) (units int64) {
	i := l.numberOf(state)
	if i < 0 {
		return 0
	}
	for at := range l.each() {
		r := l.at(at)
		if p := r.partOf(i); len(p) == 0 || p.place() == Nowhere || r.is(isOverdue) && !r.is(charges) {
			continue
		}
		if units += r.units(); units < 0 {
			return math.MaxInt64
		}
	}
	return units
}

// Fits reports whether a hold with a part in each of some states can be added.
func (l *Ledger) Fits(states int) bool {
	return l.Open() < MaxOpen && max(len(l.b), headerBytes)+recordBytes+beganBytes+states*(stateBytes+funnelBytes) <= MaxBytes
}

// Add adds a hold, for which there is room, behind all others.
func (l *Ledger) Add(h *Hold, parts []Part) {
	le := binary.LittleEndian
	if len(l.b) == 0 {
		l.b = append(l.b, make([]byte, headerBytes)...)
		le.PutUint64(l.b, math.MaxInt64)
	}
	for i := range parts {
		l.know(parts[i].State)
	}
	at := len(l.b)
	flags := byte(hasBegan)
	if h.Charge {
		flags |= charges
	}
	l.b = append(l.b, 0, 0, flags)
	l.b = append(l.b, h.ID[:]...)
	l.b = le.AppendUint64(l.b, uint64(h.EndNs))
	l.b = le.AppendUint64(l.b, uint64(h.Units))
	l.b = le.AppendUint32(l.b, h.Pairs)
	l.b = le.AppendUint32(l.b, h.All)
	l.b = le.AppendUint64(l.b, uint64(h.BeganNs))
	for _, p := range parts {
		i := l.numberOf(p.State)
		if i < 0 {
			continue // as of a state that is gone
		}
		l.b = append(l.b, byte(i)<<placeBits|byte(p.Place))
		if p.Place == InFunnel {
			l.b = le.AppendUint64(l.b, p.IntervalNs)
			l.b = le.AppendUint64(l.b, min(p.LeastNs, maxLeastNs))
		}
	}
	le.PutUint16(l.b[at:], uint16(len(l.b)-at))
	le.PutUint32(l.b[lastAt:], uint32(at))
	le.PutUint16(l.b[openAt:], uint16(l.Open()+1))
	le.PutUint64(l.b, uint64(min(l.NextNs(), h.EndNs)))
	l.lastNs = max(l.lastNs, l.at(at).forgottenNs())
}

// know adds a state to those that parts refer to. With too many it drops those without parts.
func (l *Ledger) know(state uint64) {
	if l.numberOf(state) >= 0 {
		return
	}
	if l.b[numStatesAt] == maxStates {
		l.dropStates()
	}
	if l.b[numStatesAt] == maxStates {
		return
	}
	first, last := l.first(), l.last()
	l.b = slices.Insert(l.b, first, binary.LittleEndian.AppendUint64(nil, state)...)
	l.b[numStatesAt]++
	binary.LittleEndian.PutUint32(l.b[lastAt:], uint32(last+stateBytes))
}

// dropStates drops the states to which no part refers.
func (l *Ledger) dropStates() {
	var used [maxStates]bool
	l.eachPart(func(p part) { used[p.state()] = true })
	var numberOf [maxStates]byte
	kept, first := 0, l.first()
	for i := range int(l.b[numStatesAt]) {
		if used[i] {
			copy(l.b[headerBytes+kept*stateBytes:], l.b[headerBytes+i*stateBytes:][:stateBytes])
			numberOf[i] = byte(kept)
			kept++
		}
	}
	l.eachPart(func(p part) { p[0] = numberOf[p.state()]<<placeBits | byte(p.place()) })
	l.b[numStatesAt] = byte(kept)
	l.b = slices.Delete(l.b, l.first(), first)
	l.measure()
}

// each yields the positions of the holds, which may change the holds.
func (l *Ledger) each() iter.Seq[int] {
	return func(yield func(at int) bool) {
		if len(l.b) == 0 {
			return
		}
		for at := l.first(); ; {
			r := l.at(at)
			if len(r) == 0 || !yield(at) {
				return
			}
			at += len(r)
		}
	}
}

// eachPart calls f for all parts.
func (l *Ledger) eachPart(f func(p part)) {
	for at := range l.each() {
		r := l.at(at)
		for in := r.partsAt(); ; {
			p := r.part(in)
			if len(p) == 0 {
				break
			}
			f(p)
			in += len(p)
		}
	}
}

// measure computes the header, and when the last hold is forgotten.
func (l *Ledger) measure() {
	l.lastNs = math.MinInt64
	open, overdue, last, nextNs := 0, 0, 0, int64(math.MaxInt64)
	for at := range l.each() {
		r := l.at(at)
		if r.is(isOverdue) {
			overdue++
		} else {
			open++
		}
		nextNs, last = min(nextNs, r.nextNs()), at
		l.lastNs = max(l.lastNs, r.forgottenNs())
	}
	if last == 0 {
		l.b = l.b[:0]
		return
	}
	le := binary.LittleEndian
	le.PutUint64(l.b, uint64(nextNs))
	le.PutUint32(l.b[lastAt:], uint32(last))
	le.PutUint16(l.b[openAt:], uint16(open))
	le.PutUint16(l.b[overdueAt:], uint16(overdue))
}
