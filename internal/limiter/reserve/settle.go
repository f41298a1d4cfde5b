package reserve

import (
	"cmp"
	"slices"

	"cellserver/internal/funnel"
)

// Settle returns expired charges, each as of its expiry, so that the result does not depend on the time of
// the look. It reports whether there were any.
func (l *Ledger) Settle(nowNs int64) bool {
	if !l.expired(nowNs) {
		return false
	}
	var order [MaxOpen]uint16
	expired := order[:0]
	for i := range l.Len() {
		if r := l.at(i); r.expiresNs() <= nowNs {
			r.setDebit(r.wholeDebit())
			expired = append(expired, uint16(i))
		}
	}
	slices.SortFunc(expired, func(a, b uint16) int {
		return cmp.Or(cmp.Compare(l.at(int(a)).expiresNs(), l.at(int(b)).expiresNs()), cmp.Compare(a, b))
	})
	l.settle(nowNs, expired)
	return true
}

// settle returns charges in order and removes their reservations. Each charge flows through the chain from
// its own place, and the first in order goes first where the chain narrows, so one walk serves all.
func (l *Ledger) settle(nowNs int64, order []uint16) {
	var placeOf [MaxOpen]uint16 // in order, from 1
	for at, i := range order {
		placeOf[i%MaxOpen] = uint16(at + 1)
	}
	var space [MaxOpen]uint16
	flowing, sumNs := space[:0], uint64(0) // places met and not stopped, sorted, and the sum of their rests
	for i := range l.Len() {
		r := l.at(i)
		if at := placeOf[i]; at > 0 && r.debit() > 0 {
			before, _ := slices.BinarySearch(flowing, at)
			flowing = slices.Insert(flowing, before, at)
			sumNs += r.debit() // below maxLeastNs plus a charge
		}
		leastNs := r.least()
		passesNs := min(sumNs, leastNs)
		for overNs := sumNs - passesNs; overNs > 0; {
			last := l.at(int(order[flowing[len(flowing)-1]-1]))
			stoppedNs := min(last.debit(), overNs)
			last.setDebit(last.debit() - stoppedNs)
			if overNs -= stoppedNs; last.debit() == 0 {
				flowing = flowing[:len(flowing)-1]
			}
		}
		sumNs = passesNs
		r.setLeast(leastNs - passesNs)
	}
	for _, i := range order {
		r := l.at(int(i))
		l.tatNs = funnel.GiveBack(l.tatNs, min(r.expiresNs(), nowNs), r.debit())
	}
	l.remove(&placeOf)
}

// remove removes the reservations with a place. Their followers' charges then meet their predecessors.
func (l *Ledger) remove(placeOf *[MaxOpen]uint16) {
	kept := 0
	for i := range l.Len() {
		r := l.at(i)
		if placeOf[i] == 0 {
			copy(l.at(kept), r)
			kept++
		} else if kept > 0 {
			before := l.at(kept - 1)
			before.setLeast(min(before.least(), r.least()))
		}
	}
	if kept == 0 {
		l.b = l.b[:0]
		return
	}
	l.b = l.b[:headerBytes+kept*recordBytes]
	l.bound()
}

// bound finds the first and the last expiry.
func (l *Ledger) bound() {
	l.firstNs = l.at(0).expiresNs()
	l.lastNs = l.firstNs
	for i := range l.Len() {
		at := l.at(i).expiresNs()
		l.firstNs, l.lastNs = min(l.firstNs, at), max(l.lastNs, at)
	}
}
