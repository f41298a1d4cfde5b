// Package decide is the one way to a limiter's decision: a batch of requests to the keys of a store or of a
// transaction, and what is counted of it. A Decider is safe for concurrent use; each call's Local belongs to one
// goroutine.
package decide

import (
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// Decider has batches decided, and counts them.
type Decider struct {
	Now     func() int64 // Unix nanoseconds
	Records *observe.Records
}

// By is who requests, by which command, and where that is counted.
type By struct {
	Command *catalog.Command
	Local   *observe.Local
	Caller  observe.Caller
}

// Batch has a batch decided on a store at a time, which was read just before, and times it by a second reading: that
// costs less than a hundredth of a request that comes alone. It returns nil if the requests are answered.
func (d *Decider) Batch(on store.Keys, nowNs int64, batch []store.Request, by By) *Later {
	if pending := on.Throttle(nowNs, batch); pending != nil {
		return &Later{decider: d, pending: pending, nowNs: nowNs, command: by.Command, caller: by.Caller}
	}
	d.decided(nowNs, batch, by)
	return nil
}

func (d *Decider) decided(nowNs int64, batch []store.Request, by By) {
	ns := d.Now() - nowNs
	by.Local.Batch(by.Command, len(batch), ns)
	d.sample(nowNs, batch, by.Local)
	if d.Records.Slowness.IsSlow(ns) {
		d.Records.SlowBatch(by.Command, batch, by.Caller, nowNs+ns, ns)
	}
}

// BatchIn has a batch decided in a transaction, whose time stands still.
func (d *Decider) BatchIn(tx store.Keys, nowNs int64, batch []store.Request, by By) {
	tx.Throttle(nowNs, batch)
	by.Local.Called(by.Command, len(batch))
	d.sample(nowNs, batch, by.Local)
}

// sample counts the requests of a batch, of which a few are picked for CL.TOP.
func (d *Decider) sample(nowNs int64, batch []store.Request, local *observe.Local) {
	if !local.Sampler.Skip(len(batch)) {
		d.pick(nowNs, batch, local)
	}
}

func (d *Decider) pick(nowNs int64, batch []store.Request, local *observe.Local) {
	d.Records.TopKeys.Note(&local.Sampler, nowNs, len(batch), func(i int) topkeys.Request {
		q := &batch[i]
		return topkeys.Request{DB: q.Key.DB, Name: q.Key.Name, Limited: q.Result.Limited, Terms: q.Rule.Terms()}
	})
}

// Later is a batch that its store answers later.
type Later struct {
	decider *Decider
	pending store.Pending
	nowNs   int64
	command *catalog.Command
	caller  observe.Caller
}

// Notify has wake called, once and from any goroutine, when the answers are there.
func (l *Later) Notify(wake func()) { l.pending.Notify(wake) }

// Answers returns the requests answered, in their order, and counts them; false while they are not there. The Local is
// one that belongs to the caller now.
func (l *Later) Answers(local *observe.Local) (answered []store.Request, ok bool) {
	answered, ok = l.pending.Answers()
	if ok {
		l.decider.decided(l.nowNs, answered, By{l.command, local, l.caller})
	}
	return answered, ok
}

// Cancel says that the answers are no longer needed.
func (l *Later) Cancel() { l.pending.Cancel() }

// One decides one request at a time and counts nothing: for those who keep accounts of their own.
func One(on store.Keys, nowNs int64, q *[1]store.Request) {
	on.Throttle(nowNs, q[:])
}
