package limiter

import (
	"encoding/binary"
	"math"

	"cellserver/internal/funnel"
)

// levelBytes is the size of a bucket's payload, its level in units. Callers fill it. An empty bucket is
// removed with its expiry, as Redis removes an empty list.
const levelBytes = 8

// buckets is Bucket. The first word of a rule is the capacity.
type buckets struct{ counted }

func (buckets) row() Row {
	return Row{
		Name: "cl-bucket", Type: "cl-bucket", Encoding: "level",
		Command: "cl.bucket", Sub: "take", arguments: [MaxArguments]string{"capacity"},
		Short: "bucket", Endless: true,
	}
}

func (buckets) build(s Spec) (Packed, error) {
	return Packed{s.Numbers[0]}, CheckCapacity(s.Numbers[0])
}

func (buckets) numbers(r Rule) Numbers { return Numbers{r.Packed[0]} }

func (buckets) makesKey(_ Rule, quantity int64) bool { return quantity < 0 }

func (buckets) left(payload []byte) int64 {
	if len(payload) != levelBytes {
		return 0
	}
	return max(0, int64(binary.LittleEndian.Uint64(payload)))
}

func (buckets) valid(s State) bool { return s.Left() > 0 }

// CheckCapacity returns a *funnel.ArgumentError for a bucket that would hold nothing.
func CheckCapacity(capacity int64) error {
	if capacity < 1 {
		return &funnel.ArgumentError{Name: "capacity", Value: capacity, Least: 1}
	}
	return nil
}

// takeUnits takes quantity units, or none if the bucket holds less. A negative quantity gives back what fits.
// Nobody knows the next filling, so the result's times are -1.
func takeUnits(capacity int64, payload []byte, expiresNs, nowNs, quantity int64) (newPayload []byte, newExpiresNs int64, r funnel.Result, changed bool) {
	before := buckets{}.left(payload)
	r = funnel.Result{Limit: capacity, Remaining: before, RetryAfter: -1, ResetAfter: -1, Limited: quantity > before}
	if quantity < 0 {
		r.Remaining += fitting(capacity, before, -max(quantity, -math.MaxInt64))
	} else if !r.Limited {
		r.Remaining -= quantity
	}
	if r.Remaining == before {
		return payload, expiresNs, r, false
	}
	payload, expiresNs = withLevel(payload, expiresNs, nowNs, r.Remaining)
	return payload, expiresNs, r, true
}

func (o *Operation) doBucket(s *State, nowNs int64) (changed bool, err error) {
	if !s.begin(nowNs, Bucket) {
		return false, ErrWrongType
	}
	before := s.Left()
	if o.Verb == Level {
		o.Count = before
		return false, nil
	}
	if err := CheckCapacity(o.Max); err != nil {
		return false, err
	}
	if o.Verb == Fill {
		changed = s.ExpiresNs != NeverNs || before != o.Max
		s.Payload, s.ExpiresNs = withLevel(s.Payload, nowNs, nowNs, o.Max)
		o.Count = o.Max
		return changed, nil
	}
	if o.Count = fitting(o.Max, before, o.Quantity); o.Count > 0 {
		s.Payload, s.ExpiresNs = withLevel(s.Payload, s.ExpiresNs, nowNs, before+o.Count)
	}
	return o.Count > 0, nil
}

// fitting returns the units of quantity that fit. A bucket above this capacity keeps its units.
func fitting(capacity, level, quantity int64) int64 { return max(0, min(quantity, capacity-level)) }

// withLevel returns a bucket's payload and its unchanged expiry, or never for a new one.
func withLevel(payload []byte, expiresNs, nowNs, level int64) (newPayload []byte, newExpiresNs int64) {
	switch {
	case level <= 0:
		return payload[:0], nowNs
	case expiresNs <= nowNs:
		expiresNs = NeverNs
	}
	return binary.LittleEndian.AppendUint64(payload[:0], uint64(level)), expiresNs
}
