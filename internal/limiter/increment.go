package limiter

import (
	"errors"
	"math"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/value"
)

// ErrExpireTime reports an expiry beyond Redis's range of milliseconds. Nothing has changed.
var ErrExpireTime = errors.New("limiter: the time of expiry is out of range")

// Increment is what INCREX asks beside the number to add and its bounds.
type Increment struct {
	Least, Most int64 // bounds of an integer
	Saturates   bool  // a sum out of bounds becomes its bound, and else is declined
	When        Condition

	Expiry    ExpiryKind
	OnlyNever bool  // sets an expiry only where there is none
	Ms        int64 // of ExpireIn and ExpireAt, above 0
}

// ExpiryKind tells what an Increment does to the expiry.
type ExpiryKind uint8

const (
	KeepExpiry ExpiryKind = iota
	ExpireIn              // milliseconds from now
	ExpireAt              // milliseconds since 1970
	NeverExpire
)

// Increment makes a zero Rule that of INCREX, which adds n. It refers to by.
func (r *Rule) Increment(n int64, by *Increment) {
	r.Kind, r.Packed[0], r.Packed[1], r.Shared = Value, incrementValue, n, by
}

// Begin returns whether a value's key is live, or an error.
func (i *Increment) Begin(s *State, nowNs int64) (live bool, err error) {
	live = s.ExpiresNs > nowNs
	switch {
	case i.Expiry == ExpireIn && i.Ms > math.MaxInt64-nowNs/int64(time.Millisecond):
		return live, ErrExpireTime
	case live && s.Kind != Value:
		return live, ErrWrongType
	}
	return live, nil
}

// expiresNs returns the new expiry of a value, at most nowNs if it is to be removed. An absent one has none.
func (i *Increment) expiresNs(s *State, live bool, nowNs int64) int64 {
	const nsPerMs, latestMs = int64(time.Millisecond), (NeverNs - 1) / int64(time.Millisecond)
	was := int64(NeverNs)
	if live {
		was = s.ExpiresNs
	}
	ms := i.Ms
	switch {
	case i.Expiry == KeepExpiry, i.OnlyNever && was != NeverNs:
		return was
	case i.Expiry == NeverExpire:
		return NeverNs
	case i.Expiry == ExpireIn:
		ms += nowNs / nsPerMs
	}
	if ms > latestMs {
		return NeverNs - 1
	}
	return ms * nsPerMs
}

// End stores the new payload of a live key or an absent one, which is not made if it is to be removed.
func (i *Increment) End(s *State, live bool, nowNs int64, payload []byte) (changed bool) {
	expiresNs := i.expiresNs(s, live, nowNs)
	if expiresNs <= nowNs {
		*s = State{ExpiresNs: nowNs}
		return live
	}
	*s = State{Kind: Value, ExpiresNs: expiresNs, Payload: payload}
	return true
}

// increment decides INCREX by integers. A counter's payload is changed in place.
func (r *Rule) increment(s *State, nowNs int64, result *funnel.Result) (changed bool, err error) {
	by, _ := r.Shared.(*Increment)
	if by == nil {
		return false, ErrWrongType
	}
	live, err := by.Begin(s, nowNs)
	if err != nil {
		return false, err
	}
	n, payload := int64(0), s.Payload[:0]
	if live {
		if n, payload, err = value.Integer(s.Payload); err != nil {
			return false, err
		}
	}
	result.Remaining, result.Limit, result.Limited = Pair, n, true
	if !by.When.Holds(live) {
		return false, nil
	}
	sum, ok := value.Bounded(n, r.Packed[1], by.Least, by.Most, by.Saturates)
	if !ok {
		return false, nil
	}
	applied := sum - n
	if (applied > 0) != (sum > n) {
		return false, value.ErrAppliedOverflow
	}
	if r.Flags&MustExpire != 0 && by.makesEndless(s, live, nowNs) {
		return false, ErrEndless
	}
	result.Limit, result.RetryAfter, result.Limited = sum, applied, false
	return by.End(s, live, nowNs, value.AppendCounter(payload, sum)), nil
}

// makesEndless reports whether the value would never expire, which it did before.
func (i *Increment) makesEndless(s *State, live bool, nowNs int64) bool {
	return i.expiresNs(s, live, nowNs) == NeverNs && (!live || s.ExpiresNs != NeverNs)
}
