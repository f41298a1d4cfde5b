// Package window is the arithmetic of windows, the number of units allowed in a period. A fixed window begins
// with the first request and ends a period later. A sliding one is the last period at any time: exact, with a
// record of each request, or approximate, with two numbers.
//
// It has no clock or state, and allocates only to grow payloads. Every function is safe for concurrent use
// and total: no argument makes it panic or overflow. A damaged payload counts as none.
//
// All functions take and return a key's payload and expiry. An expired key counts as none. Payloads are
// changed in place and appended to. Limited requests and a quantity of zero change nothing, except with
// Options.CountDenied; a negative quantity is a refund. The limit may change between calls: maxCount is
// compared with the kept units, and each function documents a changed period.
package window

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"strconv"

	"cellserver/internal/funnel"
)

// Limit is the number of units in a period. The zero Limit allows none; NewLimit returns the others.
type Limit struct {
	maxCount int64
	periodNs uint64
}

// NewLimit returns the limit of maxCount units in a period, which is in the unit. The error is a
// *funnel.ArgumentError or ErrTooLong.
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

// NewExactLimit is NewLimit for Sliding, which records each unit: beyond MaxExact it returns a *TooManyError.
func NewExactLimit(unit funnel.Unit, maxCount, period int64) (Limit, error) {
	if maxCount > MaxExact {
		return Limit{}, &TooManyError{maxCount}
	}
	return NewLimit(unit, maxCount, period)
}

// NewCount returns the limit of maxCount units in a window of any length, for Until.
func NewCount(maxCount int64) (Limit, error) {
	if maxCount < 1 {
		return Limit{}, checkArguments(maxCount, 1)
	}
	return Limit{maxCount: maxCount}, nil
}

func (l Limit) MaxCount() int64 { return l.maxCount }

func (l Limit) PeriodNs() uint64 { return l.periodNs }

// Packed returns the limit in the two words of a rule.
func (l Limit) Packed() [2]int64 { return [2]int64{l.maxCount, int64(l.periodNs)} }

func Unpack(words [2]int64) Limit { return Limit{maxCount: words[0], periodNs: uint64(words[1])} }

// Fits reports whether an empty window holds quantity units.
func (l Limit) Fits(quantity int64) bool { return quantity <= l.maxCount }

type Options struct {
	Unit        funnel.Unit // of the results
	CountDenied bool        // limited requests are counted, too
	Debit       bool        // counts all units; Limited reports a charge beyond maxCount, RetryAfter is for one unit
}

const fixedBytes = 8 // the count

func Count(payload []byte) int64 {
	if len(payload) != fixedBytes {
		return 0
	}
	return max(0, int64(binary.LittleEndian.Uint64(payload)))
}

// Fixed requests quantity units of a fixed window, which ends with its key. A current window keeps its end
// whatever the period of later calls. A refund lowers the count, down to zero.
func (l Limit) Fixed(payload []byte, endNs, nowNs, quantity int64, o Options) (newPayload []byte, newEndNs int64, r funnel.Result, changed bool) {
	boundaryNs := endNs
	if endNs <= nowNs {
		boundaryNs = funnel.After(nowNs, l.periodNs)
	}
	return l.Until(payload, endNs, nowNs, boundaryNs, quantity, o)
}

// Until is Fixed for a window that ends at boundaryNs: a charge moves an earlier end there, but none to an
// earlier time.
func (l Limit) Until(payload []byte, endNs, nowNs, boundaryNs, quantity int64, o Options) (newPayload []byte, newEndNs int64, r funnel.Result, changed bool) {
	before, live := int64(0), endNs > nowNs
	if live {
		before = Count(payload)
	}
	count, r := l.count(before, quantity, o)
	if count > before {
		if !live {
			endNs = nowNs
		}
		endNs = max(endNs, boundaryNs)
	}
	changed = count != before
	if changed {
		payload = binary.LittleEndian.AppendUint64(payload[:0], uint64(count))
	}
	return payload, endNs, l.fixedTimes(r, count, funnel.Since(nowNs, endNs), quantity, o), changed
}

// count returns a window's units after a request, with a result without times.
func (l Limit) count(count, quantity int64, o Options) (newCount int64, r funnel.Result) {
	r = funnel.Result{Limit: l.maxCount, RetryAfter: -1}
	switch {
	case quantity < 0:
		count = less(count, quantity)
	case quantity > l.maxCount-count:
		r.Limited = true
		if o.CountDenied || o.Debit {
			count = more(count, quantity)
		}
	default:
		count += quantity
	}
	r.Remaining = max(0, l.maxCount-count)
	return count, r
}

// fixedTimes adds the times of a window that ends after leftNs.
func (l Limit) fixedTimes(r funnel.Result, count int64, leftNs uint64, quantity int64, o Options) funnel.Result {
	r.ResetAfter = o.Unit.Of(leftNs)
	if r.Limited && l.Fits(quantity) {
		r.RetryAfter = r.ResetAfter
	}
	if o.Debit {
		r.RetryAfter = -1
		if count >= l.maxCount {
			r.RetryAfter = r.ResetAfter
		}
	}
	return r
}

// less returns a count after a refund.
func less(count, quantity int64) int64 {
	return count - int64(min(uint64(count), -uint64(quantity)))
}

func more(count, quantity int64) int64 {
	return count + min(quantity, math.MaxInt64-count)
}

// TakeOff lowers the count of a window in place.
func TakeOff(payload []byte, units int64) {
	if len(payload) == fixedBytes {
		binary.LittleEndian.PutUint64(payload, uint64(less(Count(payload), -max(units, 0))))
	}
}

func ValidFixed(payload []byte) bool {
	return len(payload) == fixedBytes && int64(binary.LittleEndian.Uint64(payload)) >= 0
}

var ErrTooLong = errors.New("the period is more than 2^62 ns (146 years); use a smaller one")

// TooManyError reports a max_count that needs too many records.
type TooManyError struct{ MaxCount int64 }

func (e *TooManyError) Error() string {
	return "max_count must be at most " + strconv.Itoa(MaxExact) + " for an exact window, got " +
		strconv.FormatInt(e.MaxCount, 10) + "; add APPROX for a larger one"
}

func checkArguments(maxCount, period int64) error {
	switch {
	case maxCount < 1:
		return &funnel.ArgumentError{Name: "max_count", Value: maxCount, Least: 1}
	case period < 1:
		return &funnel.ArgumentError{Name: "period", Value: period, Least: 1}
	}
	return nil
}
