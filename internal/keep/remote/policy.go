package remote

import (
	"errors"
	"fmt"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func checkPolicy(p store.Fallback, c *Config) error {
	switch {
	case p >= store.Fallbacks:
		return fmt.Errorf("remote: open: no policy %d", p)
	case p != store.FallbackLocal:
		return nil
	case c.Local == nil:
		return errors.New("remote: open: the policy local needs a store")
	case !(c.LocalShare > 0 && c.LocalShare <= 1):
		return fmt.Errorf("remote: open: a local share of %v is not above 0 and at most 1", c.LocalShare)
	}
	return nil
}

var errTooFast = errors.New("a store of Redis servers decides by microseconds: it does not support more than 1,000,000 units per second")

// leaksTooFast reports whether an interval, 0 for none, is too short for the servers' clocks.
func (s *Store) leaksTooFast(intervalNs uint64) bool {
	return !s.CallersTime && intervalNs > 0 && intervalNs < leastIntervalNs
}

// failureOf returns a client's error for a failed call.
func failureOf(f *servers.Failed) error {
	if f.Reason == servers.WrongType {
		return limiter.ErrWrongType
	}
	charged := "nothing was charged"
	if f.Executed != servers.No {
		charged = "it may have been charged"
	}
	return store.Failure{Line: "STOREDOWN " + f.Text + "; " + charged}
}

// DecideByPolicy decides the requests that a failed transaction has left undecided.
func (s *Store) DecideByPolicy(batch []store.Request, failure error) bool {
	if s.OnError == store.FallbackError {
		return false
	}
	f := &servers.Failed{Text: failure.Error()}
	for i := range batch {
		if q := &batch[i]; s.leaksTooFast(q.Rule.IntervalNs()) {
			q.Result, q.Err = funnel.Result{}, errTooFast
		} else {
			s.decideByPolicy(q, f)
		}
	}
	return true
}

func (s *Store) decideByPolicy(q *store.Request, f *servers.Failed) {
	s.applyPolicy(q, f)
	s.counts.policy[s.OnError].add(q)
}

func (s *Store) applyPolicy(q *store.Request, f *servers.Failed) {
	q.Result, q.Err = funnel.Result{}, nil
	switch s.OnError {
	case store.FallbackAllow:
		q.Result = ofEmpty(&q.Rule, s.Now(), q.Quantity)
	case store.FallbackDeny:
		q.Result = denied(&q.Rule, s.Now(), q.Quantity)
	case store.FallbackLocal:
		local := [1]store.Request{*q}
		local[0].Rule.Share(s.LocalShare)
		s.Local.Throttle(s.Now(), local[:])
		q.Result, q.Err = local[0].Result, local[0].Err
	default:
		q.Err = failureOf(f)
	}
}

// ofEmpty is the result of a request to an unused key.
func ofEmpty(r *limiter.Rule, nowNs, quantity int64) funnel.Result {
	full := r.Full(nowNs)
	result, _, _ := r.Decide(&full, nowNs, quantity)
	return result
}

// denied is the result of a request limited for a second. A probe or refund is not limited.
func denied(r *limiter.Rule, nowNs, quantity int64) funnel.Result {
	result := ofEmpty(r, nowNs, 0)
	result.Limited, result.Remaining = quantity > 0, 0
	if result.ResetAfter = r.Unit.Of(1e9); result.Limited {
		result.RetryAfter = result.ResetAfter
	}
	return result
}
