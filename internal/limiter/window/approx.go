package window

import (
	"encoding/binary"
	"math/bits"

	"cellserver/internal/funnel"
)

// counters are the payload of an approximate window: the units of the period that is under way, and of the one before.
type counters struct {
	startNs           int64 // of the period under way
	previous, current int64
}

const approxBytes = 24

// Approx requests quantity units of a sliding window in constant space. Periods follow each other from the first request on; of
// the previous one's units so many count as if they had come evenly: the share of it that the last period still covers,
// rounded up.
//
// Where requests do come evenly it is exact. Otherwise it errs by at most the previous period's units: up to
// 2*maxCount-1 are allowed in a period if those came at its end, and none where an exact window had room for maxCount if they
// came at its beginning. TestApproxError measures, on random traces: up to 5 % of maxCount too many at a time, and 60 % if they
// come in bursts; and over the whole trace from 96 to 100 % of what an exact window allows.
//
// A refund is taken off the period under way, and what is more than that off the one before, whose units
// count as much of it as they counted themselves. Another period than before goes on with the same counters,
// for there is no room for others: what is older than two of a shorter one is forgotten as soon as that
// counts a request, for who asks by a longer one as well. To keep it for them would limit the shorter ones by
// it, and so for hours whoever was given a smaller period.
func (l Limit) Approx(payload []byte, expiresNs, nowNs, quantity int64, o Options) (newPayload []byte, newExpiresNs int64, r funnel.Result, changed bool) {
	c := counters{startNs: nowNs}
	if expiresNs > nowNs {
		c.read(payload)
		c.advance(nowNs, l.periodNs)
	}
	r = funnel.Result{Limit: l.maxCount, RetryAfter: -1}
	before := c
	switch used := l.used(&c, nowNs); {
	case quantity < 0:
		if current := less(c.current, quantity); current > 0 {
			c.current = current
		} else {
			c.previous, c.current = less(c.previous, quantity+c.current), 0
		}
	case quantity > l.maxCount-used:
		r.Limited = true
		if o.CountDenied {
			c.current = more(c.current, quantity)
		}
	default:
		c.current += quantity
	}
	emptyNs := l.emptyNs(&c, nowNs)
	r.Remaining = max(0, l.maxCount-l.used(&c, nowNs))
	r.ResetAfter = o.Unit.Of(funnel.Since(nowNs, emptyNs))
	if r.Limited && l.Fits(quantity) {
		r.RetryAfter = o.Unit.Of(funnel.Since(nowNs, l.roomNs(&c, quantity)))
	}
	if c == before {
		return payload, expiresNs, r, false
	}
	return c.append(payload[:0]), emptyNs, r, true
}

// read reads a payload, and nothing if it is damaged.
func (c *counters) read(payload []byte) {
	if len(payload) == approxBytes {
		c.startNs = int64(binary.LittleEndian.Uint64(payload))
		c.previous = max(0, int64(binary.LittleEndian.Uint64(payload[8:])))
		c.current = max(0, int64(binary.LittleEndian.Uint64(payload[16:])))
	}
}

func (c *counters) append(payload []byte) []byte {
	payload = binary.LittleEndian.AppendUint64(payload, uint64(c.startNs))
	payload = binary.LittleEndian.AppendUint64(payload, uint64(c.previous))
	return binary.LittleEndian.AppendUint64(payload, uint64(c.current))
}

// advance brings the counters to the period that is under way.
func (c *counters) advance(nowNs int64, periodNs uint64) {
	switch elapsedNs := funnel.Since(c.startNs, nowNs); {
	case elapsedNs >= 2*periodNs || c.current == 0 && c.previous == 0:
		*c = counters{startNs: nowNs}
	case elapsedNs >= periodNs:
		*c = counters{startNs: funnel.After(c.startNs, periodNs), previous: c.current}
	}
}

// used returns how many units count.
func (l Limit) used(c *counters, nowNs int64) int64 {
	if c.previous == 0 {
		return c.current
	}
	leftNs := l.periodNs - min(l.periodNs, funnel.Since(c.startNs, nowNs))
	hi, lo := bits.Mul64(uint64(c.previous), leftNs)
	share, rest := bits.Div64(hi, lo, l.periodNs) // at most c.previous
	if rest != 0 {
		share++
	}
	return more(c.current, int64(share))
}

// roomNs returns when there will be room for quantity units.
func (l Limit) roomNs(c *counters, quantity int64) int64 {
	fromNs, units, room := c.startNs, c.previous, l.maxCount-quantity-c.current
	if room < 0 { // not before the next period
		fromNs, units, room = funnel.After(fromNs, l.periodNs), c.current, l.maxCount-quantity
	}
	if room >= units {
		return fromNs
	}
	hi, lo := bits.Mul64(uint64(room), l.periodNs)
	leftNs, _ := bits.Div64(hi, lo, uint64(units)) // less than the period
	return funnel.After(fromNs, l.periodNs-leftNs)
}

// emptyNs returns when no unit will count any more.
func (l Limit) emptyNs(c *counters, nowNs int64) int64 {
	switch {
	case c.current > 0:
		return funnel.After(c.startNs, 2*l.periodNs)
	case c.previous > 0:
		return funnel.After(c.startNs, l.periodNs)
	}
	return nowNs
}
