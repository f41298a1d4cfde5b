// Package funnel is the arithmetic of the rate limiter: the generic cell rate algorithm (GCRA), a leaky bucket stored as one
// number. It has no clock, no state and no allocation. Every function is safe for concurrent use and total: no argument
// makes it panic or overflow.
//
// A key's state is its TAT, the theoretical arrival time: the Unix time in nanoseconds at which its funnel will be empty. A
// TAT that is not after now is equivalent to no TAT.
//
// The formulas are those of the ATM Forum's Traffic Management Specification 4.0, section 4.4.2, in the virtual scheduling
// form, with the reply of the redis-cell module.
package funnel

import (
	"math"
	"math/bits"
)

// Reading is the meaning of the second argument of CL.THROTTLE.
type Reading uint8

const (
	// Burst reads it as the burst beyond the first unit: the capacity is max_burst + 1.
	Burst Reading = iota
	// Capacity reads it as the whole capacity.
	Capacity
)

const (
	nsPerSec = 1_000_000_000
	nsPerMs  = 1_000_000
)

// MaxToleranceNs bounds the time in which a full funnel drains, to about 146 years. A TAT is at most that far ahead of now, so
// the sums below fit in 64 bits.
const MaxToleranceNs = 1 << 62

// Limit is a funnel's capacity and leak rate. The zero Limit has no capacity; NewLimit returns the others.
type Limit struct {
	intervalNs uint64 // time in which one unit leaks
	capacity   int64
	count      int64 // original arguments; 0 for none
}

// NewLimit returns the limit for CL.THROTTLE's arguments: count units leak every periodSec seconds, and the capacity is
// maxBurst+1, or maxBurst with the Capacity reading. The error is an *ArgumentError, ErrZeroRate or ErrTooSlow.
func NewLimit(reading Reading, maxBurst, count, periodSec int64) (Limit, error) {
	return NewLimitIn(Seconds, reading, maxBurst, count, periodSec)
}

// NewLimitIn is NewLimit for a period in a unit.
func NewLimitIn(unit Unit, reading Reading, maxBurst, count, period int64) (Limit, error) {
	if err := checkArguments(reading, maxBurst, count, period); err != nil {
		return Limit{}, err
	}
	if count == 0 {
		return Limit{}, ErrZeroRate
	}
	hi, lo := bits.Mul64(uint64(period), unit.Ns())
	if hi >= uint64(count) {
		return Limit{}, ErrTooSlow // the interval alone exceeds 64 bits
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
	if hi != 0 || toleranceNs > MaxToleranceNs {
		return Limit{}, ErrTooSlow
	}
	return Limit{intervalNs: intervalNs, capacity: int64(capacity), count: count}, nil
}

// Same reports whether two limits decide alike, whatever their arguments.
func (l Limit) Same(other Limit) bool {
	return l.intervalNs == other.intervalNs && l.capacity == other.capacity
}

// IntervalNs returns the time in which one unit leaks.
func (l Limit) IntervalNs() uint64 { return l.intervalNs }

func (l Limit) Capacity() int64 { return l.capacity }

// DebitNs returns the time in which quantity units leak, 0 for a negative quantity.
func (l Limit) DebitNs(quantity int64) uint64 {
	return mulSaturated(l.intervalNs, uint64(max(quantity, 0)))
}

// ToleranceNs returns the time in which a full funnel drains.
// NewLimitIn refuses overflows
func (l Limit) ToleranceNs() uint64 { return l.intervalNs * uint64(l.capacity) }

// Arguments returns a limit's count and period in its unit, as given or equivalent. Beyond one per
// nanosecond, the period may be another that makes the same limit.
func (l Limit) Arguments(unit Unit) (count, period int64) {
	count = max(l.count, 1)
	hi, lo := bits.Mul64(l.intervalNs, uint64(count))
	if hi >= unit.Ns() {
		return 0, 0 // the limit was made in another unit
	}
	whole, rest := bits.Div64(hi, lo, unit.Ns()) // the interval was rounded down
	return count, int64(whole + min(rest, 1))
}

// Fits reports whether an empty funnel has room for quantity units.
func (l Limit) Fits(quantity int64) bool { return quantity <= l.capacity }

// Result is the reply of CL.THROTTLE and its siblings.
type Result struct {
	Limited    bool
	Shadowed   bool  // it would be Limited, but a shadow denies nothing; not in the reply
	Limit      int64 // the capacity in units
	Remaining  int64 // units available now
	RetryAfter int64 // until the same call is allowed; -1 if it was, or never will be
	ResetAfter int64 // until the funnel is empty
}

// Unit is the unit of a Result's times.
type Unit uint8

const (
	// Seconds are rounded as redis-cell does: up, except that a remainder of less than a millisecond is dropped.
	Seconds Unit = iota
	// Milliseconds are rounded up, so that nobody limited is told to retry at once.
	Milliseconds
	// WholeSeconds are rounded up.
	WholeSeconds
)

// Of returns ns in the unit, rounded.
func (u Unit) Of(ns uint64) int64 {
	switch u {
	case Milliseconds:
		return roundUp(ns, nsPerMs)
	case WholeSeconds:
		return roundUp(ns, nsPerSec)
	default:
		return seconds(ns)
	}
}

func (u Unit) Ns() uint64 {
	if u == Milliseconds {
		return nsPerMs
	}
	return nsPerSec
}

func roundUp(ns, unitNs uint64) int64 {
	n := ns / unitNs
	if ns%unitNs != 0 {
		n++
	}
	return int64(n)
}

// Throttle requests quantity units of a funnel with the state tatNs, and returns its new state. A limited request and a
// quantity of zero do not change the state. A negative quantity is a refund: it is always allowed, and at most empties the
// funnel.
func (l Limit) Throttle(tatNs, nowNs, quantity int64) (newTATNs int64, r Result) {
	return l.ThrottleIn(Seconds, tatNs, nowNs, quantity)
}

// ThrottleIn is Throttle with the result's times in a unit.
func (l Limit) ThrottleIn(unit Unit, tatNs, nowNs, quantity int64) (newTATNs int64, r Result) {
	debtNs := Since(nowNs, tatNs) // the funnel's level as its drain time
	toleranceNs := l.ToleranceNs()
	r = Result{Limit: l.capacity, RetryAfter: -1}
	switch {
	case quantity < 0:
		debtNs -= min(debtNs, mulSaturated(l.intervalNs, -uint64(quantity)))
		tatNs = After(nowNs, debtNs)
	case quantity > l.capacity:
		r.Limited = true
	default:
		requestedNs := l.intervalNs * uint64(quantity) // at most toleranceNs
		if roomNs := toleranceNs - requestedNs; debtNs > roomNs {
			r.Limited = true
			r.RetryAfter = unit.Of(debtNs - roomNs)
		} else if quantity > 0 {
			debtNs += requestedNs
			tatNs = After(nowNs, debtNs)
		}
	}
	if debtNs < toleranceNs {
		r.Remaining = int64((toleranceNs - debtNs) / l.intervalNs)
	}
	r.ResetAfter = unit.Of(debtNs)
	return tatNs, r
}

// Since returns laterNs - nowNs, or 0 if it is negative.
func Since(nowNs, laterNs int64) uint64 {
	return uint64(max(laterNs, nowNs)) - uint64(nowNs) // exact modulo 2^64; the difference of two int64 fits
}

// After returns nowNs + ns, saturating.
func After(nowNs int64, ns uint64) int64 {
	leftNs := uint64(math.MaxInt64) - uint64(nowNs)
	return int64(uint64(nowNs) + min(ns, leftNs))
}

// Shift returns ns + byNs, saturating.
func Shift(ns, byNs int64) int64 {
	switch sum := ns + byNs; {
	case byNs > 0 && sum < ns:
		return math.MaxInt64
	case byNs < 0 && sum > ns:
		return math.MinInt64
	default:
		return sum
	}
}

func mulSaturated(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi != 0 {
		return math.MaxUint64
	}
	return lo
}

// seconds rounds as redis-cell does: up, except that a remainder of less than a millisecond is dropped.
func seconds(ns uint64) int64 {
	sec, rest := ns/nsPerSec, ns%nsPerSec
	if rest >= nsPerMs {
		sec++
	}
	return int64(sec)
}
