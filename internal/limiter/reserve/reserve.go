// Package reserve is the arithmetic of reservations in a funnel: debits whose true size is known only later. What is given back
// then is exact: the funnel is as if no more had been reserved than was used.
//
// A debit is forgotten as far as the funnel has been empty since, so not all of it may be given back: only what the TAT was
// ahead of the time at every later debit, and is now. A chain of reservations keeps that: each has the least debt, the time by
// which the TAT was ahead, that there was before a debit since it was made and before the next one was made. A debit
// that is taken back lowers these for as much of it as each still lets through, as a flow through pipes of that width.
//
// A Ledger has no clock, belongs to one goroutine, and allocates only where its payload grows. It is total: no argument
// makes it panic or overflow. A payload that is damaged is as good as none.
package reserve

import (
	"encoding/binary"
	"math/bits"

	"cellserver/internal/funnel"
)

// MaxOpen is how many reservations of a key may be open.
const MaxOpen = 4096

// A payload is the TAT, when the first reservation expires, and when the last one does; then the reservations in the order in
// which they were made.
const (
	headerBytes = 24
	recordBytes = 40
)

// Bounds of what a reservation may have, so that sums fit into 64 bits.
const (
	maxDebitNs = 1 << 62
	maxLeastNs = 1 << 63
)

// Ledger is a funnel and its open reservations. Settle must be called before anything else is done at a time.
type Ledger struct {
	tatNs   int64
	firstNs int64  // when the first reservation expires
	lastNs  int64  // and the last
	b       []byte // the payload, of which the header may be out of date
}

// Open returns the ledger of a payload, and false if it is damaged.
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

// New returns the ledger of a funnel without reservations, which will overwrite the payload.
func New(payload []byte, tatNs int64) Ledger { return Ledger{tatNs: tatNs, b: payload[:0]} }

// Close returns the payload, which is empty if there are no reservations, and when the key expires, which
// is when the funnel will be as new. Settle does not change that.
func (l *Ledger) Close() (payload []byte, expiresNs int64) {
	if l.Len() == 0 {
		return l.b[:0], l.tatNs
	}
	binary.LittleEndian.PutUint64(l.b, uint64(l.tatNs))
	binary.LittleEndian.PutUint64(l.b[8:], uint64(l.firstNs))
	binary.LittleEndian.PutUint64(l.b[16:], uint64(l.lastNs))
	return l.b, l.asNewNs()
}

// asNewNs returns when the last reservation has expired and the funnel is empty, unless something is done
// until then.
func (l *Ledger) asNewNs() int64 { return l.TATAt(l.lastNs) }

// Len returns how many reservations are open.
func (l *Ledger) Len() int { return max(0, len(l.b)-headerBytes) / recordBytes }

// TAT returns the funnel's TAT.
func (l *Ledger) TAT() int64 { return l.tatNs }

// SetTAT notes that a request has changed the TAT.
func (l *Ledger) SetTAT(nowNs, tatNs int64) {
	if n := l.Len(); n > 0 && tatNs > l.tatNs { // a refund needs no note, as the debt falls until there is a debit
		r := l.at(n - 1)
		r.setLeast(min(r.least(), funnel.Since(nowNs, l.tatNs)))
	}
	l.tatNs = tatNs
}

// TATAt returns the TAT that Settle would come to, or nowNs if the funnel is empty by then. It changes
// nothing, and needs only one walk: as long as the funnel is not empty, each debit is given back as far as
// the chain lets it through, and how much the chain lets through of several does not depend on their order.
func (l *Ledger) TATAt(nowNs int64) int64 {
	if l.tatNs <= nowNs || !l.expired(nowNs) {
		return max(l.tatNs, nowNs)
	}
	backNs := uint64(0) // at most maxLeastNs before, and a debit
	for i := range l.Len() {
		r := l.at(i)
		if r.expiresNs() <= nowNs {
			backNs += r.wholeDebit()
		}
		backNs = min(backNs, r.least())
	}
	return funnel.GiveBack(l.tatNs, nowNs, backNs)
}

// expired reports whether something is to be settled.
func (l *Ledger) expired(nowNs int64) bool { return l.Len() > 0 && l.firstNs <= nowNs }

// Has reports whether a reservation is open.
func (l *Ledger) Has(nowNs int64, id uint64) bool {
	for i := range l.Len() {
		if r := l.at(i); r.id() == id && r.expiresNs() > nowNs {
			return true
		}
	}
	return false
}

// Reserve notes that units have been debited for a reservation, and that tatNs is the TAT by that.
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

// Commit ends a reservation of which so many units were used. What was reserved beyond that is given back, and what was used
// beyond what was reserved is debited. It is false if there is no such reservation.
func (l *Ledger) Commit(nowNs int64, id uint64, actual int64) bool {
	for i := range l.Len() {
		r := l.at(i)
		if r.id() != id {
			continue
		}
		units := r.units()
		if actual = max(actual, 0); actual > units {
			l.SetTAT(nowNs, funnel.After(max(l.tatNs, nowNs), mulSaturated(r.intervalNs(), uint64(actual-units))))
			units = actual
		}
		r.setDebit(r.intervalNs() * uint64(units-actual))
		l.settle(nowNs, []uint16{uint16(i)})
		return true
	}
	return false
}

func mulSaturated(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi != 0 {
		return 1<<64 - 1
	}
	return lo
}

// reservation is an ID, when it expires, its units, the interval of a unit, and the least debt. While it is settled the debit
// that is taken back stands in the place of the units.
type reservation []byte

func (l *Ledger) at(i int) reservation {
	at := headerBytes + i*recordBytes
	return reservation(l.b[at : at+recordBytes])
}

func (r reservation) id() uint64         { return binary.LittleEndian.Uint64(r) }
func (r reservation) expiresNs() int64   { return int64(binary.LittleEndian.Uint64(r[8:])) }
func (r reservation) intervalNs() uint64 { return binary.LittleEndian.Uint64(r[24:]) }

// units returns no more than can have been reserved.
func (r reservation) units() int64 {
	return int64(min(binary.LittleEndian.Uint64(r[16:]), maxDebitNs/max(1, r.intervalNs())))
}

// wholeDebit returns what all units have debited.
func (r reservation) wholeDebit() uint64 {
	if hi, lo := bits.Mul64(r.intervalNs(), binary.LittleEndian.Uint64(r[16:])); hi == 0 && lo <= maxDebitNs {
		return lo // without a division
	}
	return r.intervalNs() * uint64(r.units())
}

func (r reservation) debit() uint64           { return binary.LittleEndian.Uint64(r[16:]) }
func (r reservation) setDebit(debitNs uint64) { binary.LittleEndian.PutUint64(r[16:], debitNs) }
func (r reservation) least() uint64           { return min(binary.LittleEndian.Uint64(r[32:]), maxLeastNs) }
func (r reservation) setLeast(debtNs uint64)  { binary.LittleEndian.PutUint64(r[32:], debtNs) }

// AsNewNs returns when a key with a payload expires, as Close does.
func AsNewNs(payload []byte) int64 {
	l, _ := Open(payload)
	return l.asNewNs()
}

// Valid reports whether a payload is that of a funnel with reservations, and a key with it expires then.
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
