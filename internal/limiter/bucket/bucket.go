// Package bucket is the arithmetic of buckets that callers fill. A key's payload is its level in units.
//
// It has no clock or state, and allocates only new payloads. Every function is safe for concurrent use and
// total: no argument makes it panic or overflow. A damaged payload counts as none. Payloads are changed in
// place.
//
// An empty bucket is removed with its expiry, as Redis removes an empty list.
package bucket

import (
	"encoding/binary"
	"math"

	"cellserver/internal/funnel"
)

// Limit is a bucket's capacity. The zero Limit holds nothing; NewLimit returns the others.
type Limit struct{ capacity int64 }

// NewLimit returns the limit of a bucket of capacity units. The error is a *funnel.ArgumentError.
func NewLimit(capacity int64) (Limit, error) {
	if capacity < 1 {
		return Limit{}, &funnel.ArgumentError{Name: "capacity", Value: capacity, Least: 1}
	}
	return Limit{capacity}, nil
}

func (l Limit) Capacity() int64 { return l.capacity }

// Packed returns the limit in the two words of a rule.
func (l Limit) Packed() [2]int64 { return [2]int64{l.capacity} }

// Unpack reverses Packed.
func Unpack(words [2]int64) Limit { return Limit{words[0]} }

// Share returns a share, above 0 and at most 1, of the capacity, but at least one unit if it had any.
func (l Limit) Share(share float64) Limit {
	if l.capacity > 0 && share < 1 {
		l.capacity = max(1, int64(float64(l.capacity)*share))
	}
	return l
}

// NeverNs is the expiry of a bucket without one.
const NeverNs = math.MaxInt64

const levelBytes = 8

// Level returns a bucket's units.
func Level(payload []byte) int64 {
	if len(payload) != levelBytes {
		return 0
	}
	return max(0, int64(binary.LittleEndian.Uint64(payload)))
}

// Valid reports whether a payload is a bucket's.
func Valid(payload []byte) bool { return Level(payload) > 0 }

// Take takes quantity units, or none if the bucket holds less, and returns its new payload and expiry. A
// negative quantity gives back what fits. Nobody knows the next filling, so the result's times are -1.
func (l Limit) Take(payload []byte, expiresNs, nowNs, quantity int64) (newPayload []byte, newExpiresNs int64, r funnel.Result, changed bool) {
	if expiresNs <= nowNs {
		payload = payload[:0]
	}
	level := Level(payload)
	r = funnel.Result{Limit: l.capacity, RetryAfter: -1, ResetAfter: -1, Limited: quantity > level}
	before := level
	if quantity < 0 {
		level += l.fitted(level, -max(quantity, -math.MaxInt64))
	} else if !r.Limited {
		level -= quantity
	}
	r.Remaining = level
	if level == before {
		return payload, expiresNs, r, false
	}
	payload, expiresNs = keep(payload, expiresNs, nowNs, level)
	return payload, expiresNs, r, true
}

// Add adds up to quantity units and returns their number. A bucket above this capacity keeps its units.
func (l Limit) Add(payload []byte, expiresNs, nowNs, quantity int64) (newPayload []byte, newExpiresNs, fitted int64) {
	if expiresNs <= nowNs {
		payload = payload[:0]
	}
	level := Level(payload)
	if fitted = l.fitted(level, quantity); fitted > 0 {
		payload, expiresNs = keep(payload, expiresNs, nowNs, level+fitted)
	}
	return payload, expiresNs, fitted
}

func (l Limit) fitted(level, quantity int64) int64 {
	return max(0, min(quantity, l.capacity-level))
}

// Fill returns a full new bucket without an expiry.
func (l Limit) Fill(payload []byte, nowNs int64) (newPayload []byte, newExpiresNs int64) {
	return keep(payload, nowNs, nowNs, l.capacity)
}

// keep returns a bucket's payload and its unchanged expiry, or never for a new one.
func keep(payload []byte, expiresNs, nowNs, level int64) (newPayload []byte, newExpiresNs int64) {
	switch {
	case level <= 0:
		return payload[:0], nowNs
	case expiresNs <= nowNs:
		expiresNs = NeverNs
	}
	return binary.LittleEndian.AppendUint64(payload[:0], uint64(level)), expiresNs
}
