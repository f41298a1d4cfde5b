// Package reserve is the arithmetic of reservations in a funnel: charges whose true size is known later.
// Returns are exact: afterwards the funnel is as if only the used units had been charged.
//
// Charges are forgotten as the funnel drains, so only the least debt, by which the TAT was ahead of the time
// at every later charge and is now, can be returned. A chain of reservations records it: each has the least
// debt before any charge between its own and the next reservation. A returned charge lowers these by what
// each still lets through, like a flow through pipes of that width.
//
// A Ledger has no clock, belongs to one goroutine, allocates only to grow its payload, and is total: no
// argument makes it panic or overflow. A damaged payload counts as none.
package reserve

import (
	"encoding/binary"
	"math"
	"math/bits"

	"cellserver/internal/funnel"
)

// MaxOpen bounds the open reservations of a key.
const MaxOpen = 4096

// A payload is the TAT, the first and the last expiry, and the reservations in order of creation.
const (
	headerBytes = 24
	recordBytes = 40
)

// Bounds of a reservation, for sums in 64 bits.
const (
	maxDebitNs = 1 << 62
	maxLeastNs = 1 << 63
)

// Ledger is a funnel with open reservations. At each time, Settle must be called first.
type Ledger struct {
	tatNs   int64
	firstNs int64  // first expiry
	lastNs  int64  // last expiry
	b       []byte // payload, perhaps with an old header
}

// Open returns a payload's ledger, and false if it is damaged.
func Open(payload []byte) (l Ledger, ok bool) {
	n := (len(payload) - headerBytes) / recordBytes
	if n < 1 || n > MaxOpen || len(payload) != headerBytes+n*recordBytes {
		return Ledger{}, false
	}
	return Ledger{
		tatNs:   int64(binary.LittleEndian.Uint64(payload)),
		firstNs: int64(binary.LittleEndian.Uint64(payload[8:])),
		lastNs:  int64(binary.LittleEndian.Uint64(payload[16:])),
		b:       payload,
	}, true
}

// New returns the ledger of a funnel without reservations; it overwrites payload.
func New(payload []byte, tatNs int64) Ledger { return Ledger{tatNs: tatNs, b: payload[:0]} }

// Close returns the payload, empty without reservations, and the expiry, when the funnel is as new. Settle
// does not change the expiry.
func (l *Ledger) Close() (payload []byte, expiresNs int64) {
	if l.Len() == 0 {
		return l.b[:0], l.tatNs
	}
	binary.LittleEndian.PutUint64(l.b, uint64(l.tatNs))
	binary.LittleEndian.PutUint64(l.b[8:], uint64(l.firstNs))
	binary.LittleEndian.PutUint64(l.b[16:], uint64(l.lastNs))
	return l.b, l.asNewNs()
}

// asNewNs returns the time after the last expiry at which the funnel is empty.
func (l *Ledger) asNewNs() int64 { return l.TATAt(l.lastNs) }

// Len returns the number of open reservations.
func (l *Ledger) Len() int { return max(0, len(l.b)-headerBytes) / recordBytes }

// SetTAT records a request's change of the TAT.
func (l *Ledger) SetTAT(nowNs, tatNs int64) {
	// a refund needs no record: the debt falls until the next charge
	if n := l.Len(); n > 0 && tatNs > l.tatNs {
		r := l.at(n - 1)
		r.setLeast(min(r.least(), funnel.Since(nowNs, l.tatNs)))
	}
	l.tatNs = tatNs
}

// TATAt returns the TAT after a Settle, or nowNs if the funnel is empty, without changing anything. One walk
// suffices: while the funnel is not empty, each charge is returned as far as the chain lets it through, in
// any order.
func (l *Ledger) TATAt(nowNs int64) int64 {
	if l.tatNs <= nowNs || !l.expired(nowNs) {
		return max(l.tatNs, nowNs)
	}
	backNs := uint64(0) // below maxLeastNs plus a charge
	for i := range l.Len() {
		r := l.at(i)
		if r.expiresNs() <= nowNs {
			backNs += r.wholeDebit()
		}
		backNs = min(backNs, r.least())
	}
	return funnel.GiveBack(l.tatNs, nowNs, backNs)
}

func (l *Ledger) expired(nowNs int64) bool { return l.Len() > 0 && l.firstNs <= nowNs }

func (l *Ledger) Has(nowNs int64, id uint64) bool {
	for i := range l.Len() {
		if r := l.at(i); r.id() == id && r.expiresNs() > nowNs {
			return true
		}
	}
	return false
}

// Reserve records units charged for a reservation and the resulting tatNs.
func (l *Ledger) Reserve(nowNs, tatNs int64, id uint64, ttlNs, units int64, intervalNs uint64) {
	l.SetTAT(nowNs, tatNs)
	if len(l.b) == 0 {
		l.b = append(l.b, make([]byte, headerBytes)...)
	}
	expiresNs := funnel.After(nowNs, uint64(max(ttlNs, 0)))
	if l.Len() == 0 {
		l.firstNs, l.lastNs = expiresNs, expiresNs
	}
	l.firstNs, l.lastNs = min(l.firstNs, expiresNs), max(l.lastNs, expiresNs)
	l.b = append(l.b, make([]byte, recordBytes)...)
	r := l.at(l.Len() - 1)
	binary.LittleEndian.PutUint64(r, id)
	binary.LittleEndian.PutUint64(r[8:], uint64(expiresNs))
	binary.LittleEndian.PutUint64(r[16:], uint64(units))
	binary.LittleEndian.PutUint64(r[24:], intervalNs)
	r.setLeast(min(funnel.Since(nowNs, tatNs), maxLeastNs))
}

// Commit ends a reservation with actual units used: it returns the excess or charges the rest. It returns
// false if there is none.
func (l *Ledger) Commit(nowNs int64, id uint64, actual int64) bool {
	for i := range l.Len() {
		r := l.at(i)
		if r.id() != id {
			continue
		}
		units := r.units()
		if actual = max(actual, 0); actual > units {
			l.SetTAT(nowNs, funnel.After(max(l.tatNs, nowNs), funnel.MulSaturated(r.intervalNs(), uint64(actual-units))))
			units = actual
		}
		r.setDebit(r.intervalNs() * uint64(units-actual))
		l.settle(nowNs, []uint16{uint16(i)})
		return true
	}
	return false
}

// reservation is an ID, an expiry, units, a unit's interval and the least debt. While it is settled, the
// returned charge replaces the units.
type reservation []byte

func (l *Ledger) at(i int) reservation {
	at := headerBytes + i*recordBytes
	return reservation(l.b[at : at+recordBytes])
}

func (r reservation) id() uint64         { return binary.LittleEndian.Uint64(r) }
func (r reservation) expiresNs() int64   { return int64(binary.LittleEndian.Uint64(r[8:])) }
func (r reservation) intervalNs() uint64 { return binary.LittleEndian.Uint64(r[24:]) }

// units returns the units, capped at the possible ones.
func (r reservation) units() int64 {
	return int64(min(binary.LittleEndian.Uint64(r[16:]), maxDebitNs/max(1, r.intervalNs())))
}

func (r reservation) wholeDebit() uint64 {
	if hi, lo := bits.Mul64(r.intervalNs(), binary.LittleEndian.Uint64(r[16:])); hi == 0 && lo <= maxDebitNs {
		return lo // avoids a division
	}
	return r.intervalNs() * uint64(r.units())
}

func (r reservation) debit() uint64           { return binary.LittleEndian.Uint64(r[16:]) }
func (r reservation) setDebit(debitNs uint64) { binary.LittleEndian.PutUint64(r[16:], debitNs) }
func (r reservation) least() uint64           { return min(binary.LittleEndian.Uint64(r[32:]), maxLeastNs) }
func (r reservation) setLeast(debtNs uint64)  { binary.LittleEndian.PutUint64(r[32:], debtNs) }

// AsNewNs returns a payload's expiry, as Close does.
func AsNewNs(payload []byte) int64 {
	l, _ := Open(payload)
	return l.asNewNs()
}

// Valid reports whether a key with this expiry can have the payload.
func Valid(payload []byte, expiresNs int64) bool {
	l, ok := Open(payload)
	if !ok || l.asNewNs() != expiresNs {
		return false
	}
	firstNs, lastNs := l.firstNs, l.lastNs
	l.bound()
	for i := range l.Len() {
		r := l.at(i)
		if r.intervalNs() == 0 || r.debit() == 0 || r.debit() != uint64(r.units()) || binary.LittleEndian.Uint64(r[32:]) > maxLeastNs {
			return false
		}
	}
	return l.firstNs == firstNs && l.lastNs == lastNs
}

// Shift adds byNs to every time.
func Shift(payload []byte, byNs int64) {
	l, ok := Open(payload)
	if !ok {
		return
	}
	le := binary.LittleEndian
	shift := func(b []byte) { le.PutUint64(b, uint64(funnel.Shift(int64(le.Uint64(b)), byNs))) }
	for at := 0; at < headerBytes; at += 8 { // three times
		shift(payload[at:])
	}
	for i := range l.Len() {
		shift(l.at(i)[8:]) // the expiry
	}
}

// Part is what a number of a payload is.
type Part uint8

const (
	TAT Part = iota
	First
	Last
	Expiry    // of a reservation
	LeastDebt // of a reservation
)

// Each calls f for each number that depends on the time of changes, with the ID of a reservation's.
func Each(payload []byte, f func(id uint64, at int, part Part)) {
	l, ok := Open(payload)
	if !ok {
		return
	}
	for part := TAT; part <= Last; part++ {
		f(0, int(part)*8, part)
	}
	for i := range l.Len() {
		at := headerBytes + i*recordBytes
		f(l.at(i).id(), at+8, Expiry)
		f(l.at(i).id(), at+32, LeastDebt)
	}
}

// NextExpiryNs returns the first expiry after nowNs, math.MaxInt64 for none.
func NextExpiryNs(payload []byte, nowNs int64) int64 {
	nextNs := int64(math.MaxInt64)
	l, _ := Open(payload)
	for i := range l.Len() {
		if ns := l.at(i).expiresNs(); ns > nowNs {
			nextNs = min(nextNs, ns)
		}
	}
	return nextNs
}
