package shadow

import (
	"cmp"
	"math"
	"slices"

	"cellserver/internal/funnel"
)

// span is an inclusive range of TATs.
type span struct{ lo, hi int64 }

// spans are a key's possible TATs: sorted and disjoint ranges.
type spans []span

// maxSpans bounds a key's ranges; more become one that spans them all.
const maxSpans = 16

// earlyNs is the most by which a key of redis-cell expires before its TAT: its expiry and Redis's clock are
// in milliseconds.
const earlyNs = 2_000_000

func anyTAT() spans { return spans{{math.MinInt64, math.MaxInt64}} }

// clock bounds the source's clock reading for a call.
type clock struct{ from, to int64 }

func around(atNs, toleranceNs int64) clock {
	return clock{funnel.Shift(atNs, -toleranceNs), funnel.Shift(atNs, toleranceNs)}
}

// verdict holds the possible answers to a request.
type verdict struct{ allowed, limited bool }

// request returns the TATs after a request, those of both answers where the clock leaves it open. The limit
// itself computes every TAT.
func (s spans) request(l funnel.Limit, at clock, quantity int64) (after spans, v verdict) {
	after = make(spans, 0, len(s)+1)
	for _, tats := range s {
		switch {
		case quantity < 0:
			v.allowed = true
			lo, _ := l.Throttle(tats.minTAT(at), at.from, quantity)
			hi, _ := l.Throttle(tats.hi, at.to, quantity)
			after = append(after, span{lo, hi})
		case !l.Fits(quantity):
			v.limited = true
			after = append(after, tats)
		default:
			roomNs := l.ToleranceNs() - l.DebitNs(quantity)
			if funnel.Since(at.to, tats.minTAT(at)) <= roomNs {
				v.allowed = true
				after = append(after, tats.allowed(l, at, quantity, roomNs))
			}
			if funnel.Since(at.from, tats.hi) > roomNs {
				v.limited = true
				after = append(after, span{max(tats.lo, funnel.After(at.from, roomNs)+1), tats.hi})
			}
		}
	}
	if quantity == 0 {
		return s, v
	}
	return after.merged(), v
}

// minTAT returns the lowest TAT that the source may have had; noTAT if the key may have expired.
func (s span) minTAT(at clock) int64 {
	if s.lo <= funnel.Shift(at.to, earlyNs) {
		return noTAT
	}
	return s.lo
}

// allowed returns the TATs after an allowed request: the lowest is that of the earliest possible time.
func (s span) allowed(l funnel.Limit, at clock, quantity int64, roomNs uint64) span {
	tat, first := s.minTAT(at), at.from
	if funnel.Since(at.from, tat) > roomNs {
		first = tat - int64(roomNs)
	}
	lo, _ := l.Throttle(tat, first, quantity)
	hi, _ := l.Throttle(min(s.hi, funnel.After(at.to, roomNs)), at.to, quantity)
	return span{lo, hi}
}

// has reports whether a seen TAT is possible. Past TATs and no key (math.MinInt64) are equivalent.
func (s spans) has(tatNs int64, at clock) bool {
	return slices.ContainsFunc(s, func(tats span) bool {
		return tats.lo <= tatNs && tatNs <= tats.hi || tatNs <= at.to && tats.minTAT(at) == noTAT
	})
}

func (s spans) merged() spans {
	slices.SortFunc(s, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	merged := s[:0]
	for _, next := range s {
		if last := len(merged) - 1; last >= 0 && next.lo <= merged[last].hi {
			merged[last].hi = max(merged[last].hi, next.hi)
			continue
		}
		merged = append(merged, next)
	}
	if len(merged) > maxSpans {
		return spans{{merged[0].lo, merged[len(merged)-1].hi}}
	}
	return merged
}
