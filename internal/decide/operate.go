package decide

import (
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Operate has an operation done on a key. One that requests something may be picked for CL.TOP, as the requests of a batch are.
func (d *Decider) Operate(on store.Keys, nowNs int64, key store.Key, o *limiter.Operation, local *observe.Local) error {
	err := on.Operate(nowNs, key, o)
	if err == nil {
		d.Operated(nowNs, key, o, local)
	}
	return err
}

// Operated is Operate for what has been done.
func (d *Decider) Operated(nowNs int64, key store.Key, o *limiter.Operation, local *observe.Local) {
	if o.Requests() && !local.Sampler.Skip(1) {
		d.Records.TopKeys.Note(&local.Sampler, nowNs, 1, func(int) topkeys.Request {
			return topkeys.Request{DB: key.DB, Name: key.Name, Limited: o.Result.Limited, Terms: o.Terms()}
		})
	}
}
