// Package window is the arithmetic of windows: how many units were allowed in a period. A fixed window begins with the first
// request and ends a period later. A sliding one is the last period at any time: exact, with a record of each request, or
// approximate, with two numbers.
//
// It has no clock and no state, and allocates only where a payload grows. Every function is safe for concurrent use
// and total: no argument makes it panic or overflow. A payload that is damaged is as good as none.
//
// The functions have one manner: they take the payload of a key, and the time at which the key expires, and return what
// these are then. A key that has expired is as good as none. The payload is changed in place, and appended to. What is limited,
// and a quantity of zero, does not change the key, but with Options.CountDenied; a negative quantity is a refund. The limit may be
// another one in each call: maxCount is what the units that are kept are compared with, and what becomes of the period each
// function says.
package window

import (
	"encoding/binary"
	"math"
	"math/bits"

	"cellserver/internal/funnel"
)

// Limit is how many units are allowed in a period. The zero Limit allows none; NewLimit returns the others.
type Limit struct {
	maxCount int64
	periodNs uint64
}

// NewLimit returns the limit of maxCount units in a period, which is in the unit. The error is a *funnel.ArgumentError or
// ErrTooLong.
func NewLimit(unit funnel.Unit, maxCount, period int64) (Limit, error) {
	if err := checkArguments(maxCount, period); err != nil {
		return Limit{}, err
	}
	hi, periodNs := bits.Mul64(uint64(period), unit.Ns())
	if hi != 0 || periodNs > funnel.MaxToleranceNs {
		return Limit{}, ErrTooLong
	}
	return Limit{maxCount: maxCount, periodNs: periodNs}, nil
}

// NewExactLimit is NewLimit for Sliding, which needs room for a record of each unit: beyond MaxExact the error is a
// *TooManyError.
func NewExactLimit(unit funnel.Unit, maxCount, period int64) (Limit, error) {
	if maxCount > MaxExact {
		return Limit{}, &TooManyError{maxCount}
	}
	return NewLimit(unit, maxCount, period)
}

// MaxCount is how many units are allowed in a period.
func (l Limit) MaxCount() int64 { return l.maxCount }

// PeriodNs is how long the period is.
func (l Limit) PeriodNs() uint64 { return l.periodNs }

// Packed returns the limit in the two words of a rule.
func (l Limit) Packed() [2]int64 { return [2]int64{l.maxCount, int64(l.periodNs)} }

// Unpack returns the limit that Packed has packed.
func Unpack(words [2]int64) Limit { return Limit{maxCount: words[0], periodNs: uint64(words[1])} }

// Fits reports whether an empty window has room for quantity units.
func (l Limit) Fits(quantity int64) bool { return quantity <= l.maxCount }

// Options are readings of a request.
type Options struct {
	Unit        funnel.Unit // of the results
	CountDenied bool        // a request that is limited is counted, too
}

const fixedBytes = 8 // the count

// Count returns how many units a fixed window has counted.
func Count(payload []byte) int64 {
	if len(payload) != fixedBytes {
		return 0
	}
	return max(0, int64(binary.LittleEndian.Uint64(payload)))
}

// Fixed requests quantity units of a fixed window, which ends when the key expires. One in progress keeps its end whatever
// the period of later calls is. A refund lowers the count, but not below zero.
func (l Limit) Fixed(payload []byte, endNs, nowNs, quantity int64, o Options) (newPayload []byte, newEndNs int64, r funnel.Result, changed bool) {
	count := int64(0)
	if endNs > nowNs {
		count = Count(payload)
	}
	before := count
	r = funnel.Result{Limit: l.maxCount, RetryAfter: -1}
	switch {
	case quantity < 0:
		count = less(count, quantity)
	case quantity > l.maxCount-count:
		r.Limited = true
		if o.CountDenied {
			count = more(count, quantity)
		}
	default:
		count += quantity
	}
	if count != before {
		if endNs <= nowNs {
			endNs = funnel.After(nowNs, l.periodNs)
		}
		payload = binary.LittleEndian.AppendUint64(payload[:0], uint64(count))
	}
	r.Remaining = max(0, l.maxCount-count)
	r.ResetAfter = o.Unit.Of(funnel.Since(nowNs, endNs))
	if r.Limited && l.Fits(quantity) {
		r.RetryAfter = r.ResetAfter
	}
	return payload, endNs, r, count != before
}

// less returns a count after a refund, of which the quantity is negative.
func less(count, quantity int64) int64 {
	return count - int64(min(uint64(count), -uint64(quantity)))
}

func more(count, quantity int64) int64 {
	return count + min(quantity, math.MaxInt64-count)
}
