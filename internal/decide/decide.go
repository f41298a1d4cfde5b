// Package decide is the only way to a limiter's decision: it has batches of requests decided by the keys of a
// store or a transaction, and counts them. A Decider is safe for concurrent use; a Local belongs to one
// goroutine.
package decide

import (
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

type Decider struct {
	Now     func() int64 // Unix nanoseconds
	Records *observe.Records
}

// By identifies the client and command of requests, and the place to count them.
type By struct {
	Command *catalog.Command
	Local   *observe.Local
	Caller  observe.Caller
}

// Batch decides a batch at a time just read, and measures it by a second reading, which costs less than a
// hundredth of a single request. It returns nil if the requests are answered.
func (d *Decider) Batch(on store.Keys, nowNs int64, batch []store.Request, by By) *Later {
	if pending := on.Throttle(nowNs, batch); pending != nil {
		return &Later{Pending: pending, decider: d, nowNs: nowNs, command: by.Command, caller: by.Caller}
	}
	d.decided(nowNs, batch, by)
	return nil
}

func (d *Decider) decided(nowNs int64, batch []store.Request, by By) {
	ns := d.Now() - nowNs
	by.Local.Batch(by.Command, len(batch), ns)
	d.sample(nowNs, batch, by.Local)
	if d.Records.Slowness.IsSlow(ns) {
		d.Records.SlowCall(by.Command, observe.BatchArgs(by.Command, batch), by.Caller, nowNs+ns, ns)
	}
}

// BatchIn decides a batch in a transaction, whose time stands still.
func (d *Decider) BatchIn(tx store.Keys, nowNs int64, batch []store.Request, by By) {
	d.Uncounted(tx, nowNs, batch, by.Local)
	by.Local.Called(by.Command, len(batch))
}

// Uncounted is BatchIn for a caller that counts the calls itself.
func (d *Decider) Uncounted(tx store.Keys, nowNs int64, batch []store.Request, local *observe.Local) {
	tx.Throttle(nowNs, batch)
	d.sample(nowNs, batch, local)
}

// sample counts a batch's requests and picks some for CL.TOP.
func (d *Decider) sample(nowNs int64, batch []store.Request, local *observe.Local) {
	if batch[0].Rule.Kind != limiter.Value && !local.Sampler.Skip(len(batch)) {
		d.pick(nowNs, batch, local)
	}
}

func (d *Decider) pick(nowNs int64, batch []store.Request, local *observe.Local) {
	d.Records.TopKeys.Note(&local.Sampler, nowNs, len(batch), func(i int) topkeys.Request {
		q := &batch[i]
		return topkeys.Request{DB: q.Key.DB, Name: q.Key.Name, Limited: q.Result.Limited, Terms: q.Rule.Terms()}
	})
}

// Later is a batch with answers to come.
type Later struct {
	store.Pending
	decider *Decider
	nowNs   int64
	command *catalog.Command
	caller  observe.Caller
}

// Answers returns the answered requests in order and counts them in the caller's Local, or false before.
func (l *Later) Answers(local *observe.Local) (answered []store.Request, ok bool) {
	answered, ok = l.Pending.Answers()
	if ok {
		l.decider.decided(l.nowNs, answered, By{l.command, local, l.caller})
	}
	return answered, ok
}

// One decides a single request without counting, for callers with accounts of their own.
func One(on store.Keys, nowNs int64, q *[1]store.Request) {
	on.Throttle(nowNs, q[:])
}

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
			r := topkeys.Request{DB: key.DB, Name: key.Name, Limited: out.Limited}
			if by, ok := step.(interface{ Terms() limiter.Terms }); ok {
				r.Terms = by.Terms()
			}
			return r
		})
	}
}
