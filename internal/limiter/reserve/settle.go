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

// settle returns charges in order and removes their reservations.
func (l *Ledger) settle(nowNs int64, order []uint16) {
	var few [fewLinks]Link
	chain := few[:0]
	for i := range l.Len() {
		r := l.at(i)
		chain = append(chain, Link{LeastNs: r.least()})
	}
	for _, i := range order {
		chain[i].DebitNs = l.at(int(i)).debit()
	}
	Return(chain, order)
	for i := range chain {
		l.at(i).setLeast(chain[i].LeastNs)
	}
	for _, i := range order {
		l.tatNs = funnel.GiveBack(l.tatNs, min(l.at(int(i)).expiresNs(), nowNs), chain[i].DebitNs)
	}
	var placeOf [MaxOpen]uint16
	for at, i := range order {
		placeOf[i%MaxOpen] = uint16(at + 1)
	}
	l.remove(&placeOf)
}

// fewLinks are kept on the stack.
const fewLinks = 64

// Link is a charge in a chain: what of it is to be returned, and the least debt before any charge between it
// and the next link.
type Link struct{ DebitNs, LeastNs uint64 }

// Return returns the charges of links in order: DebitNs of each becomes what comes through the chain. Each
// charge flows from its own place, and the first in order goes first where the chain narrows, so one walk
// serves all.
func Return(chain []Link, order []uint16) {
	if len(order) == 1 {
		returnOne(chain[order[0]:])
		return
	}
	placeOf := make([]uint16, len(chain)) // in order, from 1
	for at, i := range order {
		placeOf[i] = uint16(at + 1)
	}
	flowing, sumNs := make([]uint16, 0, len(order)), uint64(0) // places met and not stopped, sorted, and the sum of their rests
	for i := range chain {
		r := &chain[i]
		if at := placeOf[i]; at > 0 && r.DebitNs > 0 {
			before, _ := slices.BinarySearch(flowing, at)
			flowing = slices.Insert(flowing, before, at)
			sumNs += r.DebitNs // below maxLeastNs plus a charge
		}
		passesNs := min(sumNs, r.LeastNs)
		for overNs := sumNs - passesNs; overNs > 0; {
			last := &chain[order[flowing[len(flowing)-1]-1]]
			stoppedNs := min(last.DebitNs, overNs)
			last.DebitNs -= stoppedNs
			if overNs -= stoppedNs; last.DebitNs == 0 {
				flowing = flowing[:len(flowing)-1]
			}
		}
		sumNs = passesNs
		r.LeastNs -= passesNs
	}
}

// returnOne is Return for the first link.
func returnOne(chain []Link) {
	debitNs := chain[0].DebitNs
	for i := range chain {
		debitNs = min(debitNs, chain[i].LeastNs)
		chain[i].LeastNs -= debitNs
	}
	chain[0].DebitNs = debitNs
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
