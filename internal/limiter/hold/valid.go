package hold

import (
	"encoding/binary"
	"slices"
)

// Valid reports whether calls can make the bytes of a ledger that is forgotten at lastNs.
func Valid(b []byte, lastNs int64) bool {
	l, ok := Open(b, lastNs)
	if !ok || l.b[numStatesAt] > maxStates {
		return false
	}
	end := l.first()
	for at := range l.each() {
		r := l.at(at)
		if !l.valid(r) {
			return false
		}
		end = at + len(r)
	}
	if end != len(b) {
		return false
	}
	own := Ledger{b: slices.Clone(b)}
	own.measure()
	return slices.Equal(own.b, b) && own.lastNs == lastNs && l.Open() <= MaxOpen && l.Overdue() <= MaxOverdue
}

// valid reports whether a call can make a hold.
func (l *Ledger) valid(r record) bool {
	in := r.partsAt()
	for {
		p := r.part(in)
		if len(p) == 0 {
			break
		}
		if p.state() >= int(l.b[numStatesAt]) {
			return false
		}
		if p.place() == InFunnel && (p.intervalNs() == 0 || binary.LittleEndian.Uint64(p[leastAt:]) > maxLeastNs) {
			return false
		}
		in += len(p)
	}
	return in == len(r) && r[flagsAt]&^keptFlags == 0 && binary.LittleEndian.Uint64(r[unitsAt:]) == uint64(r.units()) && r.units() > 0
}

// Same reports whether two ledgers have the same holds, whatever their times.
func (l *Ledger) Same(other *Ledger) bool {
	if l.Len() != other.Len() {
		return false
	}
	if l.Len() == 0 {
		return true
	}
	for at, with := l.first(), other.first(); ; {
		a, b := l.at(at), other.at(with)
		if len(a) == 0 || len(a) != len(b) || a.id() != b.id() || a[flagsAt] != b[flagsAt] {
			return len(a) == 0 && len(b) == 0
		}
		at, with = at+len(a), with+len(b)
	}
}

// What is what a number of a ledger is.
type What uint8

const (
	Next  What = iota + 1 // the first end
	End                   // of a hold
	Begin                 // of a hold
	Least                 // debt of a hold's part; those of its further parts count on
)

// Each calls f for each number that depends on the time of changes, with the first bytes of the hold's ID.
func (l *Ledger) Each(f func(of uint64, at int, what What)) {
	if len(l.b) == 0 {
		return
	}
	f(0, 0, Next)
	for at := range l.each() {
		r := l.at(at)
		of := binary.LittleEndian.Uint64(r[idAt:])
		f(of, at+endAt, End)
		if r.is(hasBegan) {
			f(of, at+recordBytes, Begin)
		}
		for in, what := r.partsAt(), Least; ; what++ {
			p := r.part(in)
			if len(p) == 0 {
				break
			}
			if p.place() == InFunnel {
				f(of, at+in+leastAt, what)
			}
			in += len(p)
		}
	}
}
