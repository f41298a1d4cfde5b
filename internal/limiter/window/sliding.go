package window

import "cellserver/internal/funnel"

// MaxExact is the largest max_count of an exact window, and its largest number of records.
const MaxExact = 4096

// Sliding requests quantity units of an exact sliding window: no half-open period ever has more than maxCount
// allowed units. It costs the records that left since, and when limited up to quantity more, for an exact
// time to retry. The key expires when its newest record leaves.
//
// A refund takes the newest units back. With CountDenied, the newest maxCount units are kept, allowed or not.
// Another period or maxCount looks at its part of the records and drops none that the earlier ones would see,
// which would be a refund. Units are kept for the longest period since the window was empty, unless newer
// ones need their place.
func (l Limit) Sliding(payload []byte, expiresNs, nowNs, quantity int64, o Options) (newPayload []byte, newExpiresNs int64, r funnel.Result, changed bool) {
	if expiresNs <= nowNs {
		payload = payload[:0]
	}
	g, maxCount := openRing(payload), min(l.maxCount, MaxExact)
	old, oldUnits := g.olderThan(nowNs, l.periodNs)
	count, gone, keptNs := g.units-oldUnits, old, l.periodNs
	if g.length > 0 && l.periodNs < funnel.Since(g.newestNs, expiresNs) {
		keptNs = funnel.Since(g.newestNs, expiresNs)
		gone, _ = g.olderThan(nowNs, keptNs)
	}
	r = funnel.Result{Limit: maxCount, RetryAfter: -1, Limited: quantity >= 0 && quantity > maxCount-count}
	switch {
	case quantity < 0 && count > 0:
		g.dropOldest(gone)
		g.takeNewest(count - less(count, quantity))
	case quantity > 0 && (!r.Limited || o.CountDenied && maxCount > 0):
		g.dropOldest(gone)
		counted, most := min(quantity, maxCount), int64(MaxExact)
		if r.Limited {
			most = max(maxCount, g.units)
		}
		g.keepNewest(most - counted)
		g.add(nowNs, counted)
	default: // old records stay, as an earlier limit counts them
		return payload, expiresNs, l.outlook(&g, old, count, nowNs, quantity, r, o.Unit), false
	}
	expiresNs = g.settle(nowNs, keptNs)
	old, oldUnits = 0, 0
	if keptNs != l.periodNs {
		old, oldUnits = g.olderThan(nowNs, l.periodNs)
	}
	return g.close(), expiresNs, l.outlook(&g, old, g.units-oldUnits, nowNs, quantity, r, o.Unit), true
}

// settle shrinks a changed ring and returns the key's expiry.
func (g *ring) settle(nowNs int64, keptNs uint64) (expiresNs int64) {
	if g.length == 0 {
		g.b = g.b[:0]
		return nowNs
	}
	g.shrink()
	return funnel.After(g.newestNs, keptNs)
}

// outlook adds the remaining units, and the times when enough and all records will have left. The records
// from first on have count units.
func (l Limit) outlook(g *ring, first int, count, nowNs, quantity int64, r funnel.Result, unit funnel.Unit) funnel.Result {
	r.Remaining = max(0, r.Limit-count)
	if first >= g.length {
		return r
	}
	r.ResetAfter = unit.Of(funnel.Since(nowNs, funnel.After(g.timeNs(g.length-1), l.periodNs)))
	if !r.Limited || quantity > r.Limit {
		return r
	}
	r.RetryAfter = r.ResetAfter
	left := int64(0)
	for i := first; i < g.length; i++ {
		if left += g.unitsOf(i); left >= count-(r.Limit-quantity) {
			r.RetryAfter = unit.Of(funnel.Since(nowNs, funnel.After(g.timeNs(i), l.periodNs)))
			break
		}
	}
	return r
}
