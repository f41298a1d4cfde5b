package limiter

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/reserve"
)

// Verb is the action of an Operation.
type Verb uint8

// Verbs, with the fields that they read and set:
const (
	// Reserve charges Quantity units of Funnel and records them as reservation ID for TTLNs. It sets Result.
	Reserve Verb = iota + 1
	// Commit corrects the charge of reservation ID to Quantity units and ends it. It sets Count to 1; if
	// there is none, to 0 without effect, or, with Late and a Dated ID that is due, debits Funnel and sets
	// it to 2.
	Commit
	// Acquire gives holder ID one of Max places for TTLNs, or renews it. It sets Result.
	Acquire
	// Release ends holder ID's lease. It sets Count to 1, or 0 if there is none.
	Release
	// Renew moves the end of holder ID's lease to TTLNs from now. It sets Count to 1, or 0 if there is none.
	Renew
	// Holders sets Count to the number of holders.
	Holders
	// Add adds up to Quantity units to a bucket of Max and sets Count to their number.
	Add
	// Fill fills a bucket with Max units and sets Count to them.
	Fill
	// Level sets Count to a bucket's units.
	Level
	// Expire sets Count to 1 if a key is live and When permits, else to 0. It sets the expiry to AtNs if the
	// key's kind permits, and removes the key if that has passed. NeverNs counts only what had an expiry.
	Expire
	// Wait charges Quantity units of Funnel, beyond its capacity if they fit within TTLNs. It sets Result,
	// WaitNs, and DebitNs for GiveBack.
	Wait
	// GiveBack takes DebitNs off a funnel, down to empty.
	GiveBack
	// Look sets AtNs to a funnel's TAT and Count to 1, or to 0 if it is absent.
	Look
)

// MaxUndatedID is the largest ID to give a Dated reservation.
const MaxUndatedID = reserve.MaxUndated

// Operation changes a key's state in one step and holds its answers.
type Operation struct {
	Verb     Verb
	Unit     funnel.Unit
	Funnel   funnel.Limit
	Quantity int64
	Max      int64
	ID       uint64
	TTLNs    int64
	AtNs     int64
	When     ExpiryCondition
	DebitNs  uint64
	Dated    bool // of a reservation: Do puts its end into ID; only the lowest bits are given
	Late     bool

	Result funnel.Result
	Count  int64
	WaitNs int64 // until its turn
}

func (o *Operation) MakesKey() bool {
	switch o.Verb {
	case Reserve, Wait:
		return o.Quantity > 0 && o.Funnel.Fits(o.Quantity)
	case Commit:
		return o.Late && o.Quantity > 0
	case Add:
		return o.Quantity > 0
	case Acquire, Fill:
		return o.Max > 0
	default:
		return false
	}
}

// Do applies an operation to a key's state, like Rule.Decide. On an error nothing has changed.
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

func oneIf(done bool) int64 {
	if done {
		return 1
	}
	return 0
}

// ExpiryCondition restricts Expire by a key's present expiry.
type ExpiryCondition struct{ None, Some, Later, Earlier bool }

// allows compares milliseconds, as Redis does. A key without expiry counts as later than any time.
func (c ExpiryCondition) allows(haveNs, wantNs int64) bool {
	if haveNs == NeverNs {
		return !c.Some && !c.Later
	}
	haveMs, wantMs := haveNs/1e6, wantNs/1e6
	return !c.None && (!c.Later || wantMs > haveMs) && (!c.Earlier || wantMs < haveMs)
}

func (o *Operation) expire(s *State, nowNs int64) (changed bool) {
	o.Count = 0
	endless := s.Kind.Row().Endless
	if s.ExpiresNs <= nowNs || !o.When.allows(s.ExpiresNs, o.AtNs) || o.AtNs == NeverNs && (!endless || s.ExpiresNs == NeverNs) {
		return false
	}
	o.Count = 1
	switch {
	case o.AtNs <= nowNs:
		*s = State{ExpiresNs: nowNs}
		return true
	case !endless || s.ExpiresNs == o.AtNs:
		return false
	}
	s.ExpiresNs = o.AtNs
	return true
}

func (o *Operation) Traits() Traits {
	switch o.Verb {
	case Look:
		return Traits{Kind: Funnel, TAT: Raises, KeepsPayload: true}
	case Wait:
		as := OfFunnel(o.Funnel)
		return as.Traits(o.Quantity)
	case GiveBack: // perhaps units charged before those taken ahead
		return Traits{Kind: Funnel, TAT: Replaces}
	case Commit: // perhaps units charged before the reservation
		return Traits{Kind: Reserving, TAT: Replaces, IntervalNs: leakNs(&o.Funnel)}
	case Reserve:
		as := OfFunnel(o.Funnel)
		return Traits{Kind: Reserving, TAT: Raises, IntervalNs: as.IntervalNs()}
	case Acquire, Release, Renew, Holders:
		return Traits{Kind: Concurrency, TAT: Raises}
	case Add, Fill, Level:
		return Traits{Kind: Bucket, TAT: Raises}
	case Expire:
		return Traits{KeepsPayload: true}
	}
	return Traits{}
}

func (o *Operation) Outcome() Outcome {
	out := Outcome{Count: o.Count}
	switch o.Verb {
	case Wait:
		out.Kind, out.Quantity = Funnel, o.Quantity
	case Reserve:
		out.Kind, out.Quantity = Reserving, o.Quantity
	case Commit:
		if o.Count != committedLate {
			return out
		}
		out.Kind, out.Quantity, out.Cut = Reserving, o.Quantity, o.Result.Marks&funnel.Cut != 0
	case Acquire:
		out.Kind, out.Quantity = Concurrency, 1
	default:
		return out
	}
	out.Requests, out.Limited = true, o.Result.Limited
	return out
}

func (o *Operation) Copy() (c Step, take func()) {
	as := *o
	return &as, func() { *o = as }
}

// DoBehind implements Timed: AtNs is by the caller's clock.
func (o *Operation) DoBehind(s *State, nowNs, byNs int64) (changed bool, err error) {
	atNs := o.AtNs
	if atNs != NeverNs {
		o.AtNs = funnel.Shift(atNs, -byNs)
	}
	changed, err = o.Do(s, nowNs)
	if o.Verb == Look {
		atNs = funnel.Shift(o.AtNs, byNs)
	}
	o.AtNs = atNs
	return changed, err
}
