package window

import (
	"encoding/binary"
	"math/bits"

	"cellserver/internal/funnel"
)

// counters is an approximate window's payload: the units of this period and the last.
type counters struct {
	startNs           int64 // of the current period
	previous, current int64
}

const approxBytes = 24

// Approx requests quantity units of a sliding window in constant space. Periods follow one another from the
// first request on; the previous one's units count as if they had come evenly: by the share that the last
// period still covers, rounded up.
//
// Evenly spaced requests are counted exactly. Otherwise the error is at most the previous period's units: up
// to 2*maxCount-1 are allowed in a period if those came at its end, and none where an exact window allows
// maxCount if they came at its start. TestApproxError measures, on random traces, up to 5 % of maxCount too
// many at a time, 60 % in bursts, and overall 96 to 100 % of an exact window's.
//
// A refund is taken off the current period, and its excess off the previous one, by the weight of its units.
// Another period continues with the same counters, which have no more space: a shorter one forgets all before
// its last two as soon as it counts a request, also for longer ones. Keeping it would limit the shorter
// period, and so for hours a client that was given a smaller one.
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
		if o.CountDenied || o.Debit {
			c.current = more(c.current, quantity)
		}
	default:
		c.current += quantity
	}
	emptyNs := l.emptyNs(&c, nowNs)
	r.Remaining = max(0, l.maxCount-l.used(&c, nowNs))
	r.ResetAfter = o.Unit.Of(funnel.Since(nowNs, emptyNs))
	if o.Debit && r.Remaining == 0 && l.Fits(1) {
		r.RetryAfter = o.Unit.Of(funnel.Since(nowNs, l.roomNs(&c, 1)))
	} else if r.Limited && !o.Debit && l.Fits(quantity) {
		r.RetryAfter = o.Unit.Of(funnel.Since(nowNs, l.roomNs(&c, quantity)))
	}
	if c == before {
		return payload, expiresNs, r, false
	}
	return c.append(payload[:0]), emptyNs, r, true
}

// read reads a payload; a damaged one is empty.
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

// advance moves the counters to the current period.
func (c *counters) advance(nowNs int64, periodNs uint64) {
	switch elapsedNs := funnel.Since(c.startNs, nowNs); {
	case elapsedNs >= 2*periodNs || c.current == 0 && c.previous == 0:
		*c = counters{startNs: nowNs}
	case elapsedNs >= periodNs:
		*c = counters{startNs: funnel.After(c.startNs, periodNs), previous: c.current}
	}
}

// used returns the number of counting units.
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

// roomNs returns the earliest time for quantity units.
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

// emptyNs returns the time from which no unit counts.
func (l Limit) emptyNs(c *counters, nowNs int64) int64 {
	switch {
	case c.current > 0:
		return funnel.After(c.startNs, 2*l.periodNs)
	case c.previous > 0:
		return funnel.After(c.startNs, l.periodNs)
	}
	return nowNs
}

// ValidApprox reports whether a payload is an approximate window's with this expiry.
func ValidApprox(payload []byte, expiresNs int64) bool {
	if len(payload) != approxBytes {
		return false
	}
	var c counters
	c.read(payload)
	unchanged := string(c.append(nil)) == string(payload)
	return unchanged && c.startNs <= expiresNs && (c.previous > 0 || c.current > 0)
}

// TakeOffApprox lowers a counter of an approximate window in place, and returns the expiry.
func TakeOffApprox(payload []byte, expiresNs, units int64, previous bool) (newExpiresNs int64) {
	if len(payload) != approxBytes {
		return expiresNs
	}
	var c counters
	c.read(payload)
	l := Limit{periodNs: funnel.Since(c.startNs, expiresNs)} // until no unit counts: one period, or two
	if c.current > 0 {
		l.periodNs /= 2
	}
	of := &c.current
	if previous {
		of = &c.previous
	}
	*of = less(*of, -max(units, 0))
	c.append(payload[:0])
	return l.emptyNs(&c, c.startNs)
}

// ApproxStartNs returns the start of the current period.
func ApproxStartNs(payload []byte) int64 {
	var c counters
	c.read(payload)
	return c.startNs
}

// ShiftApprox adds byNs to the time of an approximate window.
func ShiftApprox(payload []byte, byNs int64) {
	if len(payload) == approxBytes {
		le := binary.LittleEndian
		le.PutUint64(payload, uint64(funnel.Shift(int64(le.Uint64(payload)), byNs)))
	}
}

// ApproxStartAt is the position of the current period's start in an approximate window's payload.
const ApproxStartAt = 0

// ApproxEndNs returns the end of an approximate window's period at nowNs, the counters' or the one after it.
func ApproxEndNs(payload []byte, expiresNs, nowNs int64) int64 {
	var c counters
	if c.read(payload); c.current > 0 { // emptyNs is two periods later
		if endNs := funnel.After(c.startNs, funnel.Since(c.startNs, expiresNs)/2); endNs > nowNs {
			return endNs
		}
	}
	return expiresNs
}
