package decide

import (
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Apply has a step done to a key. One that requests something may be picked for CL.TOP, as the requests of a
// batch are.
func (d *Decider) Apply(on store.Keys, nowNs int64, key store.Key, step store.Step, local *observe.Local) error {
	err := on.Apply(nowNs, key, step)
	if err == nil {
		d.Applied(nowNs, key, step, local)
	}
	return err
}

// Applied is Apply for what has been done.
func (d *Decider) Applied(nowNs int64, key store.Key, step store.Step, local *observe.Local) {
	out := step.Outcome()
	if out.Requests && !local.Sampler.Skip(1) {
		d.Records.TopKeys.Note(&local.Sampler, nowNs, 1, func(int) topkeys.Request {
			return topkeys.Request{DB: key.DB, Name: key.Name, Limited: out.Limited, Terms: termsOf(step)}
		})
	}
}

// termsOf returns the terms by which a step requests something, if it has any.
func termsOf(step store.Step) limiter.Terms {
	if by, ok := step.(interface{ Terms() limiter.Terms }); ok {
		return by.Terms()
	}
	return limiter.Terms{}
}
