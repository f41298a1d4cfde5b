package limiter

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/bucket"
	"cellserver/internal/limiter/lease"
)

// Verb is what an Operation does.
type Verb uint8

// The verbs, each with the fields of an Operation that it reads, and those that it sets:
const (
	// Reserve debits Quantity units of Funnel, if they fit, and notes that as a reservation ID for TTLNs. It sets Result.
	Reserve Verb = iota + 1
	// Commit corrects what the reservation ID has debited to Quantity units, and ends it. It sets Count: 1, or 0 if there is no
	// such reservation (any more); then nothing changes.
	Commit
	// Acquire gives the holder ID one of Max places for TTLNs, or renews it. It sets Result.
	Acquire
	// Release ends the holder ID's lease. It sets Count: 1, or 0 if it has none.
	Release
	// Renew has the holder ID's lease end in TTLNs. It sets Count: 1, or 0 if it has none.
	Renew
	// Holders sets Count to how many have a place.
	Holders
	// Add puts up to Quantity units into a bucket of Max, and sets Count to how many fitted.
	Add
	// Fill makes a bucket hold Max units, and sets Count to them.
	Fill
	// Level sets Count to how many units a bucket holds.
	Level
	// Expire has a key expire at AtNs that is of a kind which can, and sets Count to 1, else to 0.
	Expire
	// Wait debits Quantity units of Funnel, which may become fuller than full, if they would fit within TTLNs. It sets Result,
	// WaitNs, and DebitNs for GiveBack.
	Wait
	// GiveBack takes DebitNs off a funnel, as far as it is not empty then.
	GiveBack
	// Look sets AtNs to when a funnel will be empty, and Count to 1 if there is one, else to 0.
	Look
)

// Operation is something that is done to a key's state in one step, and then its answers.
type Operation struct {
	Verb     Verb
	Unit     funnel.Unit
	Funnel   funnel.Limit
	Quantity int64
	Max      int64
	ID       uint64
	TTLNs    int64
	AtNs     int64
	DebitNs  uint64

	Result funnel.Result
	Count  int64
	WaitNs int64 // until it is its turn
}

// MakesKey reports whether the operation makes a key where there is none.
func (o *Operation) MakesKey() bool {
	switch o.Verb {
	case Reserve, Wait:
		return o.Quantity > 0 && o.Funnel.Fits(o.Quantity)
	case Add:
		return o.Quantity > 0
	case Acquire, Fill:
		return o.Max > 0
	default:
		return false
	}
}

// Do does an operation to a key's state, as Rule.Decide does a request. With an error nothing has changed.
func (o *Operation) Do(s *State, nowNs int64) (changed bool, err error) {
	switch o.Verb {
	case Reserve, Commit, Wait, GiveBack:
		return o.doFunnel(s, nowNs)
	case Acquire, Release, Renew, Holders:
		return o.doConcurrency(s, nowNs)
	case Add, Fill, Level:
		return o.doBucket(s, nowNs)
	case Expire:
		return o.expire(s, nowNs), nil
	case Look:
		o.Count = oneIf(s.ExpiresNs > nowNs)
		o.AtNs, err = s.TAT(nowNs)
		return false, err
	}
	return false, ErrWrongType
}

func (o *Operation) doConcurrency(s *State, nowNs int64) (changed bool, err error) {
	if !s.begin(nowNs, Concurrency) {
		return false, ErrWrongType
	}
	if o.Verb == Holders {
		o.Count = lease.Holders(s.Payload, nowNs)
		return false, nil
	}
	endNs := nowNs // of the lease that is released
	if o.Verb != Release {
		endNs = funnel.After(nowNs, uint64(max(o.TTLNs, 0)))
	}
	if o.Verb == Acquire {
		s.Payload, s.ExpiresNs, o.Result, changed = lease.Acquire(s.Payload, s.ExpiresNs, nowNs, o.ID, o.Max, endNs, o.Unit)
		return changed, nil
	}
	var found bool
	s.Payload, s.ExpiresNs, found, changed = lease.Renew(s.Payload, s.ExpiresNs, nowNs, o.ID, endNs)
	o.Count = oneIf(found)
	return changed, nil
}

func oneIf(done bool) int64 {
	if done {
		return 1
	}
	return 0
}

func (o *Operation) doBucket(s *State, nowNs int64) (changed bool, err error) {
	if !s.begin(nowNs, Bucket) {
		return false, ErrWrongType
	}
	if o.Verb == Level {
		o.Count = bucket.Level(s.Payload)
		return false, nil
	}
	l, err := bucket.NewLimit(o.Max)
	if err != nil {
		return false, err
	}
	if o.Verb == Add {
		s.Payload, s.ExpiresNs, o.Count = l.Add(s.Payload, s.ExpiresNs, nowNs, o.Quantity)
		return o.Count > 0, nil
	}
	changed = s.ExpiresNs != NeverNs || bucket.Level(s.Payload) != o.Max
	s.Payload, s.ExpiresNs = l.Fill(s.Payload, nowNs)
	o.Count = o.Max
	return changed, nil
}

// expire has a key expire at another time. One that is absent, or has a time of its own, does not.
func (o *Operation) expire(s *State, nowNs int64) (changed bool) {
	o.Count = 0
	if s.ExpiresNs <= nowNs || !s.Kind.Row().Endless {
		return false
	}
	o.Count, changed = 1, s.ExpiresNs != o.AtNs
	s.ExpiresNs = o.AtNs
	return changed
}
