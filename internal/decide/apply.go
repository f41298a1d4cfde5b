package decide

import (
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Apply applies a step to a key. A request may be sampled for CL.TOP, like those of a batch.
func (d *Decider) Apply(on store.Keys, nowNs int64, key store.Key, step store.Step, local *observe.Local) error {
	err := on.Apply(nowNs, key, step)
	if err == nil {
		d.Applied(nowNs, key, step, local)
	}
	return err
}

// Applied counts a step already applied.
func (d *Decider) Applied(nowNs int64, key store.Key, step store.Step, local *observe.Local) {
	out := step.Outcome()
	if out.Requests && !local.Sampler.Skip(1) {
		d.Records.TopKeys.Note(&local.Sampler, nowNs, 1, func(int) topkeys.Request {
			return topkeys.Request{DB: key.DB, Name: key.Name, Limited: out.Limited, Terms: termsOf(step)}
		})
	}
}

// termsOf returns the terms of a step that requests units.
func termsOf(step store.Step) limiter.Terms {
	if by, ok := step.(interface{ Terms() limiter.Terms }); ok {
		return by.Terms()
	}
	return limiter.Terms{}
}
