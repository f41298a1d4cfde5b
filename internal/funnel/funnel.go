// Package funnel is the generic cell rate algorithm (GCRA): a leaky bucket whose state is a time. It is pure:
// time is an argument, nothing allocates, and no argument makes a function panic or overflow. It is safe for
// concurrent use.
//
// A key's state is its TAT (theoretical arrival time), the Unix time in nanoseconds at which the funnel is
// empty. A TAT not after now equals none.
//
// The formulas are the virtual scheduling form of the ATM Forum's Traffic Management Specification 4.0,
// section 4.4.2, with redis-cell's reply.
package funnel

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
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

// MaxToleranceNs bounds the drain time of a full funnel, to about 146 years, so that the sums below fit in 64
// bits.
const MaxToleranceNs = 1 << 62

// ErrZeroRate reports a zero interval: count or period is 0, or count exceeds one a nanosecond.
var ErrZeroRate = errors.New("Zero rates are not supported") //nolint:staticcheck // redis-cell's wording

var ErrTooSlow = errors.New("the funnel would take more than 2^62 ns (146 years) to drain; use a smaller max_burst or period, or a larger count")

// ArgumentError is an argument below its minimum.
type ArgumentError struct {
	Name         string
	Value, Least int64
}

func (e *ArgumentError) Error() string {
	return e.Name + " must be at least " + strconv.FormatInt(e.Least, 10) + ", got " + strconv.FormatInt(e.Value, 10)
}

func checkArguments(reading Reading, maxBurst, count, periodSec int64) error {
	leastBurst := int64(0)
	if reading == Capacity {
		leastBurst = 1
	}
	switch {
	case maxBurst < leastBurst:
		return &ArgumentError{Name: "max_burst", Value: maxBurst, Least: leastBurst}
	case count < 0:
		return &ArgumentError{Name: "count", Value: count}
	case periodSec < 0:
		return &ArgumentError{Name: "period", Value: periodSec}
	}
	return nil
}

// Limit is a funnel's capacity and leak rate. The zero Limit has no capacity; NewLimit returns the others.
type Limit struct {
	intervalNs uint64 // time in which one unit leaks
	capacity   int64
	count      int64 // original arguments; 0 for none
}

// NewLimit returns the limit of CL.THROTTLE's arguments: count units leak every periodSec seconds, and the
// reading of maxBurst is the capacity. The error is an *ArgumentError, ErrZeroRate or ErrTooSlow.
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

// IntervalNs returns the time in which one unit leaks.
func (l Limit) IntervalNs() uint64 { return l.intervalNs }

func (l Limit) Capacity() int64 { return l.capacity }

// DebitNs returns the time in which quantity units leak, 0 for a negative quantity.
func (l Limit) DebitNs(quantity int64) uint64 {
	return MulSaturated(l.intervalNs, uint64(max(quantity, 0)))
}

// ToleranceNs returns the drain time of a full funnel, without overflow because NewLimitIn refuses it.
func (l Limit) ToleranceNs() uint64 { return l.intervalNs * uint64(l.capacity) }

// Arguments returns the count and the period in the limit's unit, as given or equivalent: beyond one unit per
// nanosecond another period may make the same limit.
func (l Limit) Arguments(unit Unit) (count, period int64) {
	count = max(l.count, 1)
	hi, lo := bits.Mul64(l.intervalNs, uint64(count))
	if hi >= unit.Ns() {
		return 0, 0 // the limit was made in another unit
	}
	whole, rest := bits.Div64(hi, lo, unit.Ns()) // the interval was rounded down
	return count, int64(whole + min(rest, 1))
}

// Fits reports whether an empty funnel holds quantity units.
func (l Limit) Fits(quantity int64) bool { return quantity <= l.capacity }

// Result is the reply of CL.THROTTLE and its siblings.
type Result struct {
	Limited    bool
	Marks      Marks // not in the reply
	Limit      int64 // the capacity in units
	Remaining  int64 // units available now
	RetryAfter int64 // until the same call is allowed; -1 if it was, or never will be
	ResetAfter int64 // until the funnel is empty
}

// Marks are flags of a Result, and two sets of a named limit's rules by number: those that denied the
// request, and those with little left. One word of them fits a Result into registers.
type Marks uint64

const (
	Shadowed Marks = 1 << 32 << iota // it would be Limited, but a shadow denies nothing
	Cut                              // a debit was cut off at MaxToleranceNs
	Changed                          // a denial has changed the state

	nearShift = 16
)

// MarksOf returns the sets of rules.
func MarksOf(denied, near uint16) Marks { return Marks(denied) | Marks(near)<<nearShift }

func (m Marks) Denied() uint16 { return uint16(m) }

func (m Marks) Near() uint16 { return uint16(m >> nearShift) }

// Unit is the unit of a Result's times.
type Unit uint8

const (
	// Seconds are rounded as redis-cell does: up, except that a remainder of less than a millisecond is
	// dropped.
	Seconds Unit = iota
	// Milliseconds are rounded up, so that a limited caller never retries at once.
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

// Throttle requests quantity units of a funnel and returns its new TAT, unchanged for a limited request and
// for a quantity of zero. A negative quantity is a refund: it is always allowed, and at most empties the
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
		debtNs -= min(debtNs, MulSaturated(l.intervalNs, -uint64(quantity)))
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

// Rebased returns the TAT of a funnel that was charged by another interval, so that its debt is as many
// units of this limit, rounded up: a faster leak frees, a slower one at most fills the funnel, or leaves a
// greater debt as it is.
func (l Limit) Rebased(tatNs, nowNs int64, fromNs uint64) int64 {
	debtNs := Since(nowNs, tatNs)
	if fromNs == l.intervalNs || fromNs == 0 || l.intervalNs == 0 || debtNs == 0 {
		return tatNs
	}
	mostNs := max(l.ToleranceNs(), debtNs)
	hi, lo := bits.Mul64(debtNs, l.intervalNs)
	if hi >= fromNs {
		return After(nowNs, mostNs) // the quotient exceeds 64 bits
	}
	ns, rest := bits.Div64(hi, lo, fromNs)
	if rest > 0 && ns < mostNs {
		ns++
	}
	return After(nowNs, min(ns, mostNs))
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

// MulSaturated returns a * b, saturating.
func MulSaturated(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi != 0 {
		return math.MaxUint64
	}
	return lo
}

func seconds(ns uint64) int64 {
	sec, rest := ns/nsPerSec, ns%nsPerSec
	if rest >= nsPerMs {
		sec++
	}
	return int64(sec)
}

// Share returns a share, above 0 and at most 1, of the rate and the capacity, but no less than one unit of
// any.
func (l Limit) Share(share float64) Limit {
	if l.capacity < 1 || l.intervalNs == 0 || share >= 1 {
		return l
	}
	capacity := max(1, int64(float64(l.capacity)*share))
	intervalNs := MaxToleranceNs / uint64(capacity)
	if slower := math.Ceil(float64(l.intervalNs) / share); slower < float64(intervalNs) {
		intervalNs = uint64(slower)
	}
	return Limit{intervalNs: intervalNs, capacity: capacity}
}

// WaitIn is ThrottleIn for a caller that waits up to maxWaitNs. Units beyond the capacity are charged at
// once, so that no later caller overtakes; waitNs is the time until the caller's turn.
func (l Limit) WaitIn(unit Unit, tatNs, nowNs, quantity, maxWaitNs int64) (newTATNs, waitNs int64, r Result) {
	newTATNs, r = l.ThrottleIn(unit, tatNs, nowNs, quantity)
	if !r.Limited || quantity <= 0 || quantity > l.capacity {
		return newTATNs, 0, r
	}
	requestedNs := l.intervalNs * uint64(quantity) // at most toleranceNs
	overNs := Since(nowNs, tatNs) - (l.ToleranceNs() - requestedNs)
	if overNs > uint64(max(maxWaitNs, 0)) {
		return tatNs, 0, r
	}
	newTATNs = After(tatNs, requestedNs)
	r.Limited, r.RetryAfter, r.ResetAfter = false, -1, unit.Of(Since(nowNs, newTATNs))
	return newTATNs, int64(overNs), r
}

// DebitIn charges quantity units, however full the funnel is; a TAT is at most MaxToleranceNs ahead, and what
// is beyond is Cut. Limited reports a charge beyond the capacity, and RetryAfter is the time until one unit
// fits, -1 if one fits now.
func (l Limit) DebitIn(unit Unit, tatNs, nowNs, quantity int64) (newTATNs int64, r Result) {
	debtNs, requestedNs, toleranceNs := Since(nowNs, tatNs), l.DebitNs(quantity), l.ToleranceNs()
	r = Result{Limit: l.capacity, RetryAfter: -1}
	most := max(debtNs, MaxToleranceNs) - debtNs // 0 if the debt is greater already
	if requestedNs > most {
		r.Marks = Cut
	}
	debtNs += min(requestedNs, most)
	switch {
	case debtNs > toleranceNs:
		r.Limited = quantity > 0
	default:
		r.Remaining = int64((toleranceNs - debtNs) / max(l.intervalNs, 1))
	}
	if r.Remaining == 0 && l.capacity > 0 {
		r.RetryAfter = unit.Of(debtNs - (toleranceNs - l.intervalNs))
	}
	r.ResetAfter = unit.Of(debtNs)
	return After(nowNs, debtNs), r
}

// GiveBack takes debitNs off a TAT, down to an empty funnel.
func GiveBack(tatNs, nowNs int64, debitNs uint64) (newTATNs int64) {
	debtNs := Since(nowNs, tatNs)
	return After(nowNs, debtNs-min(debtNs, debitNs))
}
