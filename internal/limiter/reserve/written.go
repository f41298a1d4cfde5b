package reserve

import "math"

// Course tracks a funnel's debt during changes at one time.
type Course struct {
	FirstDebtNs, LeastDebtNs int64 // at the start, and the least since
	Debited                  bool
}

// Written reports the numbers of a payload that would differ if the changes since before had happened later.
// It calls later for times that would be later, from a delay of fromNs on, and other for numbers that would
// change by at most mostNs. In doubt, a reservation's least debt decreases, so it returns slightly less.
func (c *Course) Written(before, payload []byte, later func(at int, ns, fromNs int64),
	other func(at int, number, fromNs, mostNs int64, less bool)) {
	l, ok := Open(payload)
	if !ok {
		return
	}
	was, _ := Open(before)
	old := l.placesIn(&was)
	firstOldNs, firstNewNs, lastNewNs := int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MinInt64)
	lastOld := -1
	for i, place := range old {
		if ns := l.at(i).expiresNs(); place < 0 {
			firstNewNs, lastNewNs = min(firstNewNs, ns), max(lastNewNs, ns)
		} else {
			firstOldNs, lastOld = min(firstOldNs, ns), i
		}
	}
	later(0, l.tatNs, c.LeastDebtNs)
	if lastNewNs > math.MinInt64 {
		other(8, firstNewNs, 0, max(0, firstOldNs-firstNewNs), false)
		later(16, l.lastNs, l.lastNs-lastNewNs)
	}
	for i, place := range old {
		r, at := l.at(i), headerBytes+i*recordBytes
		leastNs := int64(min(r.least(), math.MaxInt64))
		fromNs := int64(0)
		switch {
		case place < 0:
			later(at+8, r.expiresNs(), 0)
		case i != lastOld || !c.Debited: // charges were recorded at the last one
			continue
		case was.at(place).least() == r.least():
			fromNs = max(0, c.LeastDebtNs-leastNs)
		}
		other(at+32, leastNs, fromNs, min(c.FirstDebtNs-fromNs, leastNs), true)
	}
}

// placesIn returns the reservations' indexes in an earlier ledger, or -1. Reservations keep their order; new
// ones come last.
func (l *Ledger) placesIn(was *Ledger) []int {
	places, next := make([]int, l.Len()), 0
	for i := range places {
		r := l.at(i)
		for next < was.Len() && was.at(next).id() != r.id() {
			next++
		}
		places[i] = -1
		if next < was.Len() && was.at(next).expiresNs() == r.expiresNs() {
			places[i] = next
		}
	}
	return places
}
