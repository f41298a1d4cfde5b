// Package funnel is the arithmetic of the funnel limiter: the generic cell rate algorithm (GCRA), which is a
// leaky bucket kept as one number. It has no clock, no state and no allocation; every function is safe for
// concurrent use and total: no argument makes it panic or wrap around.
//
// A key's state is its TAT, the theoretical arrival time: the Unix time in nanoseconds at which its funnel will
// be empty. A TAT that is not after now says the same as no TAT at all.
//
// The formulas are those of the ATM Forum's Traffic Management Specification 4.0, section 4.4.2, in the
// virtual scheduling form, with the reply of the redis-cell module.
package funnel

import (
	"math"
	"math/bits"
)

// Reading says how the second argument of CL.THROTTLE is to be understood.
type Reading uint8

const (
	// Burst reads it as the burst beyond the first unit: a funnel holds max_burst + 1.
	Burst Reading = iota
	// Capacity reads it as all that a funnel holds.
	Capacity
)

const (
	nsPerSec = 1_000_000_000
	nsPerMs  = 1_000_000

	// maxToleranceNs bounds the time in which a full funnel drains, about 146 years. A TAT is at most that far
	// ahead of now, so the sums below stay inside 64 bits.
	maxToleranceNs = 1 << 62
)

// Limit is a funnel's shape: how much it holds, and how fast it leaks. The zero Limit holds nothing;
// NewLimit makes the others.
type Limit struct {
	intervalNs  uint64 // the time in which one unit leaks
	capacity    int64
	toleranceNs uint64 // intervalNs * capacity: the time in which a full funnel drains
}

// NewLimit returns the funnel of CL.THROTTLE's arguments: it leaks count units each periodSec seconds, and
// holds maxBurst+1 of them, or maxBurst by the Capacity reading. The error is an *ArgumentError, ErrZeroRate
// or ErrTooSlow.
func NewLimit(reading Reading, maxBurst, count, periodSec int64) (Limit, error) {
	if err := checkArguments(reading, maxBurst, count, periodSec); err != nil {
		return Limit{}, err
	}
	if count == 0 {
		return Limit{}, ErrZeroRate
	}
	hi, lo := bits.Mul64(uint64(periodSec), nsPerSec)
	if hi >= uint64(count) {
		return Limit{}, ErrTooSlow // the interval alone is beyond 64 bits
	}
	intervalNs, _ := bits.Div64(hi, lo, uint64(count))
	if intervalNs == 0 {
		return Limit{}, ErrZeroRate
	}
	capacity := uint64(maxBurst)
	if reading == Burst {
		capacity++
	}
	hi, toleranceNs := bits.Mul64(intervalNs, capacity)
	if hi != 0 || toleranceNs > maxToleranceNs {
		return Limit{}, ErrTooSlow
	}
	return Limit{intervalNs: intervalNs, capacity: int64(capacity), toleranceNs: toleranceNs}, nil
}

// Result is CL.THROTTLE's answer.
type Result struct {
	Limited       bool
	Limit         int64 // units that the funnel holds
	Remaining     int64 // units that would pass at once now
	RetryAfterSec int64 // seconds until the same quantity passes; -1 when it passed, or when it never can
	ResetAfterSec int64 // seconds until the funnel is empty
}

// Throttle asks for quantity units of a funnel whose state is tatNs, and returns its new state. A limited
// request and a quantity of zero leave the state as it was. A negative quantity is a refund: it always passes,
// and never goes beyond an empty funnel.
func (l Limit) Throttle(tatNs, nowNs, quantity int64) (newTATNs int64, r Result) {
	debtNs := since(nowNs, tatNs) // what the funnel holds, as the time in which that drains
	r = Result{Limit: l.capacity, RetryAfterSec: -1}
	switch {
	case quantity < 0:
		debtNs -= min(debtNs, mulSaturated(l.intervalNs, -uint64(quantity)))
		tatNs = addSaturated(nowNs, debtNs)
	case quantity > l.capacity:
		r.Limited = true
	default:
		askedNs := l.intervalNs * uint64(quantity) // at most toleranceNs
		if roomNs := l.toleranceNs - askedNs; debtNs > roomNs {
			r.Limited = true
			r.RetryAfterSec = seconds(debtNs - roomNs)
		} else if quantity > 0 {
			debtNs += askedNs
			tatNs = addSaturated(nowNs, debtNs)
		}
	}
	if debtNs < l.toleranceNs {
		r.Remaining = int64((l.toleranceNs - debtNs) / l.intervalNs)
	}
	r.ResetAfterSec = seconds(debtNs)
	return tatNs, r
}

// since returns how far tatNs is after nowNs, and 0 if it is not.
func since(nowNs, tatNs int64) uint64 {
	return uint64(max(tatNs, nowNs)) - uint64(nowNs) // right modulo 2^64, and the difference of two int64 fits
}

func addSaturated(nowNs int64, debtNs uint64) int64 {
	leftNs := uint64(math.MaxInt64) - uint64(nowNs)
	return int64(uint64(nowNs) + min(debtNs, leftNs))
}

func mulSaturated(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi != 0 {
		return math.MaxUint64
	}
	return lo
}

// seconds rounds as redis-cell does: up, but a rest of less than one millisecond is dropped.
func seconds(ns uint64) int64 {
	sec, rest := ns/nsPerSec, ns%nsPerSec
	if rest >= nsPerMs {
		sec++
	}
	return int64(sec)
}
