// Package limitertest makes states of every kind for tests of what keeps and moves them.
package limitertest

import (
	"errors"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/bucket"
	"cellserver/internal/limiter/window"
)

const (
	// capacity of each limiter.
	capacity = 1000
	// LifeNs is how long what State makes is there; an approximate window is for twice as long.
	LifeNs = int64(time.Hour)
)

// State returns a state in which some units are taken, as calls make it LifeNs before it expires, or a bucket, which never does.
func State(kind limiter.Kind, expiresNs int64, units int64) (limiter.State, error) {
	var s limiter.State
	nowNs := expiresNs - LifeNs
	switch kind {
	case limiter.Reserving, limiter.Concurrency:
		o, err := operation(kind, units)
		if err == nil {
			_, err = o.Do(&s, nowNs)
		}
		return s, err
	case limiter.Bucket:
		fill := limiter.Operation{Verb: limiter.Fill, Max: capacity}
		if _, err := fill.Do(&s, nowNs); err != nil {
			return s, err
		}
	default:
	}
	r, err := rule(kind, units)
	if err == nil {
		_, _, err = r.Decide(&s, nowNs, units)
	}
	return s, err
}

// operation is one that makes a key of a kind.
func operation(kind limiter.Kind, units int64) (o limiter.Operation, err error) {
	limit, err := drained(units)
	o = limiter.Operation{Funnel: limit, Quantity: units, Max: capacity, ID: uint64(units), TTLNs: LifeNs}
	if o.Verb = limiter.Reserve; kind == limiter.Concurrency {
		o.Verb = limiter.Acquire
	}
	return o, err
}

// rule is one by which a request makes a key of a kind, or takes from it.
func rule(kind limiter.Kind, units int64) (r limiter.Rule, err error) {
	r.Kind = kind
	var errs [3]error
	r.Funnel, errs[0] = drained(units)
	r.Window, errs[1] = window.NewExactLimit(funnel.Seconds, capacity, LifeNs/int64(time.Second))
	r.Bucket, errs[2] = bucket.NewLimit(capacity)
	r.Named = &limiter.NamedLimit{Windows: []limiter.Window{{Funnel: r.Funnel, PeriodNs: LifeNs}}}
	return r, errors.Join(errs[:]...)
}

// drained returns a limit by which so many units leak in LifeNs.
func drained(units int64) (funnel.Limit, error) {
	return funnel.NewLimit(funnel.Burst, capacity, units, LifeNs/int64(time.Second))
}
