package hold

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/reserve"
)

// Ended counts holds whose time was over.
type Ended struct {
	Returned uint64 // their units were
	Charged  uint64 // their units stay charged
	Dropped  uint64 // overdue ones that are no longer remembered, as there are too many
}

// Notes are what a step finds to have become of holds, and what it has spent.
type Notes struct {
	Ended
	latest Spent // the sum of the last ones of one time, as the list may be shared with a copy of the Notes
	before []Spent
}

// Spent is units that were charged for a hold that began at a time, or returned, then negative.
type Spent struct {
	AtNs  int64
	Units int64
}

// Spend notes units. n may be nil.
func (n *Notes) Spend(atNs, units int64) {
	switch {
	case n == nil || units == 0:
	case n.latest.Units == 0 || n.latest.AtNs == atNs:
		n.latest = Spent{atNs, funnel.Shift(n.latest.Units, units)}
	default:
		n.before = append(n.before, n.latest)
		n.latest = Spent{atNs, units}
	}
}

// Spent visits what was spent.
func (n *Notes) Spent(yield func(Spent) bool) {
	for _, of := range n.before {
		if !yield(of) {
			return
		}
	}
	if n.latest.Units != 0 {
		yield(n.latest)
	}
}

// HasSpent reports whether Spent visits any.
func (n *Notes) HasSpent() bool { return n.latest.Units != 0 || len(n.before) > 0 }

// IsZero reports whether nothing was noted.
func (n *Notes) IsZero() bool { return n.Ended == (Ended{}) && !n.HasSpent() }

// Reset forgets all, and keeps room.
func (n *Notes) Reset() { *n = Notes{before: n.before[:0]} }

// End makes holds overdue whose time is over, and forgets others after their day. give gets the units that go
// back, each as of its hold's end, so that the result does not depend on the time of the look.
func (l *Ledger) End(nowNs int64, n *Notes, give func(Return)) {
	if len(l.b) == 0 || l.NextNs() > nowNs {
		return
	}
	returned := 0
	for at := range l.each() {
		switch r := l.at(at); {
		case r.nextNs() > nowNs:
		case r.is(isOverdue):
			r.set(drops)
		default:
			r.set(isOverdue)
			if r.is(charges) {
				n.Charged++
			} else {
				returned++
				r.set(strips)
				n.Spend(cmp.Or(r.beganNs(), r.endNs()), -r.units())
			}
			if r.forgottenNs() <= nowNs {
				r.set(drops)
			}
		}
	}
	if returned > 0 {
		n.Returned += uint64(returned)
		l.giveBack(give)
	}
	if l.rewrite(); l.Overdue() > MaxOverdue {
		n.Dropped += uint64(l.Overdue() - MaxOverdue)
		l.dropOldest(l.Overdue() - MaxOverdue)
	}
}

// dropOldest drops overdue holds that ended first.
func (l *Ledger) dropOldest(n int) {
	var overdue []int
	for at := range l.each() {
		if l.at(at).is(isOverdue) {
			overdue = append(overdue, at)
		}
	}
	slices.SortStableFunc(overdue, func(a, b int) int { return cmp.Compare(l.at(a).endNs(), l.at(b).endNs()) })
	for _, at := range overdue[:n] {
		l.at(at).set(drops)
	}
	l.rewrite()
}

// giveBack gives back all units of the holds that lose their parts.
func (l *Ledger) giveBack(give func(Return)) {
	for state := range int(l.b[numStatesAt]) {
		var c chain
		for at := range l.each() {
			r := l.at(at)
			p := r.partOf(state)
			switch {
			case len(p) == 0 || p.place() == Nowhere:
			case p.place() == InFunnel:
				c.add(at, r, p)
			case r.is(strips):
				give(Return{State: l.state(state), Place: p.place(), Units: r.units(), AtNs: r.endNs()})
			}
		}
		if len(c.order) > 0 {
			l.giveChain(state, &c, give)
		}
	}
}

// chain is the parts of a funnel in the order of their charges.
type chain struct {
	links []reserve.Link
	at    []int    // positions of the holds
	order []uint16 // links that are returned
}

func (c *chain) add(at int, r record, p part) {
	link := reserve.Link{LeastNs: p.least()}
	if r.is(strips) {
		link.DebitNs = p.debit(r.units())
		c.order = append(c.order, uint16(len(c.links)))
	}
	c.links, c.at = append(c.links, link), append(c.at, at)
}

// giveChain gives back what comes through a chain, the holds that ended first before others.
func (l *Ledger) giveChain(state int, c *chain, give func(Return)) {
	slices.SortStableFunc(c.order, func(a, b uint16) int { return cmp.Compare(l.at(c.at[a]).endNs(), l.at(c.at[b]).endNs()) })
	reserve.Return(c.links, c.order)
	for i, at := range c.at {
		l.at(at).partOf(state).setLeast(c.links[i].LeastNs)
	}
	for _, i := range c.order {
		give(Return{State: l.state(state), Place: InFunnel, AtNs: l.at(c.at[i]).endNs(), DebitNs: c.links[i].DebitNs})
	}
}

// Settle ends a hold, and gives back units that are still charged, at most all.
func (l *Ledger) Settle(f Found, nowNs, units int64, give func(Return)) {
	r := l.at(f.at)
	units = min(units, r.units())
	for in := r.partsAt(); units > 0; {
		p := r.part(in)
		if len(p) == 0 {
			break
		}
		of := Return{State: l.state(p.state()), Place: p.place(), Units: units, AtNs: nowNs}
		if of.Place == InFunnel {
			of.DebitNs = l.flow(f.at, p.state(), p.debit(units))
		}
		if of.Place != Nowhere {
			give(of)
		}
		in += len(p)
	}
	l.remove(f.at)
}

// remove removes a hold. The charges of those behind its parts then meet the parts before.
func (l *Ledger) remove(at int) {
	r := l.at(at)
	for in := r.partsAt(); ; {
		p := r.part(in)
		if len(p) == 0 {
			break
		}
		if p.place() == InFunnel {
			if was := l.before(at, p.state()); len(was) > 0 {
				was.setLeast(min(was.least(), p.least()))
			}
		}
		in += len(p)
	}
	isBound := at == l.last() || r.nextNs() == l.NextNs() || r.forgottenNs() == l.lastNs
	le, count := binary.LittleEndian, openAt
	if r.is(isOverdue) {
		count = overdueAt
	}
	le.PutUint16(l.b[count:], uint16(l.count(count)-1))
	if at < l.last() {
		le.PutUint32(l.b[lastAt:], uint32(l.last()-len(r)))
	}
	if l.b = slices.Delete(l.b, at, at+len(r)); isBound {
		l.measure()
	}
}

// before returns the last part of a funnel before a hold, empty for none.
func (l *Ledger) before(end, state int) (last part) {
	for at := range l.each() {
		if at >= end {
			break
		}
		if p := l.at(at).partOf(state); len(p) > 0 && p.place() == InFunnel {
			last = p
		}
	}
	return last
}

// flow returns what comes of a debit through a funnel's chain from a hold on.
func (l *Ledger) flow(from, state int, debitNs uint64) uint64 {
	for at := from; ; {
		r := l.at(at)
		if len(r) == 0 {
			return debitNs
		}
		if p := r.partOf(state); len(p) > 0 && p.place() == InFunnel {
			debitNs = min(debitNs, p.least())
			p.setLeast(p.least() - debitNs)
		}
		at += len(r)
	}
}

// rewrite drops holds and parts. The charges of those behind a part in its chain then meet the one before.
func (l *Ledger) rewrite() {
	var before [maxStates]int // position of a funnel's last part
	to := l.first()
	for at := to; ; {
		r := l.at(at)
		if len(r) == 0 {
			break
		}
		at += len(r)
		kept := r
		switch {
		case r.is(drops):
			kept = nil
		case r.is(strips):
			kept = r[:r.partsAt()]
			binary.LittleEndian.PutUint16(kept, uint16(len(kept)))
		}
		for in := r.partsAt(); ; {
			p := r.part(in)
			if len(p) == 0 {
				break
			}
			switch last := &before[p.state()]; {
			case p.place() != InFunnel:
			case len(kept) == len(r):
				*last = to + in
			case *last > 0:
				was := part(l.b[*last : *last+funnelBytes])
				was.setLeast(min(was.least(), p.least()))
			}
			in += len(p)
		}
		if len(kept) > 0 {
			kept[flagsAt] &= keptFlags
		}
		to += copy(l.b[to:], kept)
	}
	l.b = l.b[:to]
	l.measure()
}

// Extend moves the end of a hold.
func (l *Ledger) Extend(f Found, endNs int64) {
	l.at(f.at).setEnd(endNs)
	l.measure()
}

// Raised notes that a funnel is charged beyond a debt.
func (l *Ledger) Raised(state uint64, debtNs uint64) {
	i := l.numberOf(state)
	if i < 0 {
		return
	}
	p := l.at(l.last()).partOf(i) // most likely
	if len(p) == 0 {
		for at := range l.each() {
			if of := l.at(at).partOf(i); len(of) > 0 {
				p = of
			}
		}
	}
	if len(p) > 0 && p.place() == InFunnel {
		p.setLeast(min(p.least(), debtNs))
	}
}

// Begun notes that a window begins anew, which has none of the units.
func (l *Ledger) Begun(state uint64) { l.move(state, func(Place) Place { return Nowhere }) }

// Advanced notes the next period of an approximate window.
func (l *Ledger) Advanced(state uint64) {
	l.move(state, func(from Place) Place {
		if from == Present {
			return Previous
		}
		return Nowhere
	})
}

func (l *Ledger) move(state uint64, to func(from Place) Place) {
	i := l.numberOf(state)
	if i < 0 {
		return
	}
	for at := range l.each() {
		if p := l.at(at).partOf(i); len(p) > 0 && p.place() != InFunnel {
			p.setPlace(to(p.place()))
		}
	}
}

// Rebased notes that a funnel's debt is now of units of another interval.
func (l *Ledger) Rebased(state, fromNs, toNs uint64) {
	i := l.numberOf(state)
	if i < 0 || fromNs == 0 {
		return
	}
	for at := range l.each() {
		p := l.at(at).partOf(i)
		if len(p) == 0 || p.place() != InFunnel {
			continue
		}
		least := uint64(maxLeastNs)
		if hi, lo := bits.Mul64(p.least(), toNs); hi < fromNs {
			ns, rest := bits.Div64(hi, lo, fromNs)
			if least = ns; rest > 0 {
				least++ // as a debt is rounded
			}
		}
		p.setLeast(min(least, maxLeastNs))
		binary.LittleEndian.PutUint64(p[intervalAt:], toNs)
	}
}

// Shift adds byNs to every time.
func (l *Ledger) Shift(byNs int64) {
	for at := range l.each() {
		r := l.at(at)
		r.setEnd(funnel.Shift(r.endNs(), byNs))
		if r.is(hasBegan) {
			binary.LittleEndian.PutUint64(r[recordBytes:], uint64(funnel.Shift(r.beganNs(), byNs)))
		}
	}
	l.measure()
}
