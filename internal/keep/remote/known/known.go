// Package known decides requests of funnels unasked, by units that were leased ahead or by a TAT that was
// read lately, and learns of both from what is done to keys. A Table is safe for concurrent use.
package known

import (
	"sync/atomic"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/ahead"
	"cellserver/internal/keep/remote/recent"
	"cellserver/internal/keep/remote/timeline"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// recentBytes bounds the table of TATs that were read lately, each of which takes 32.
const recentBytes = 4 << 20

// Config is what a Table is made of.
type Config struct {
	KeyPrefix string // of all keys on the servers
	// Prefilter has requests denied, unasked, that a TAT which was read lately denies already.
	Prefilter bool
	// Lease is how units of hot funnels are taken ahead.
	Lease ahead.Config
	// Now is the local clock.
	Now func() int64
}

// Table is what is known of keys. A nil Table knows nothing, and learns nothing.
type Table struct {
	Config
	recent              *recent.Table // nil without Prefilter
	leases              *ahead.Table  // nil without leases
	leased, prefiltered atomic.Uint64
}

// New returns a Table, or nil if nothing is to be known.
func New(c Config) *Table {
	t := &Table{Config: c, leases: ahead.New(c.Lease)}
	if c.Prefilter {
		t.recent = recent.New(recentBytes)
	}
	if t.recent == nil && t.leases == nil {
		return nil
	}
	return t
}

// Stats is what a Table has counted.
type Stats struct {
	Prefiltered uint64 // requests that were denied by a TAT which was read lately
	Leased      uint64 // requests that were allowed from units taken ahead
	Lease       store.LeaseStats
}

// Stats returns what was counted.
func (t *Table) Stats() (st Stats) {
	if t != nil {
		st.Prefiltered, st.Leased = t.prefiltered.Load(), t.leased.Load()
		t.leases.UpdateStats(&st.Lease)
	}
	return st
}

// Decide decides a request of a funnel by units that were taken ahead, or by a TAT that was read lately. It
// leaves refunds to the server. line is what is known of its clock.
func (t *Table) Decide(q *store.Request, line *timeline.Timeline, localNs int64) bool {
	if t == nil || q.Rule.Kind != limiter.Funnel || q.Quantity < 0 {
		return false
	}
	latestNs, ok := line.Latest(localNs)
	if !ok {
		return false
	}
	l, unit := q.Rule.Funnel, q.Rule.Unit
	if q.Result, ok = t.leases.Take(q.Key.Name, l, unit, q.Quantity, latestNs, localNs); ok {
		t.leased.Add(1)
		return true
	}
	earliestNs, _ := line.Earliest(localNs)
	if q.Result, ok = t.recent.Denied(q.Key.Name, l, unit, q.Quantity, earliestNs, latestNs, localNs); ok {
		t.prefiltered.Add(1)
	}
	return ok
}

// Learn updates what is known of a TAT, by what a server has done to the key, or may have done, or by what
// was read of it. All that is known goes through here, before anybody has the answer. The key has its name
// on the server. st is its state afterwards, by the server's clock, as told by the reply to what was sent
// at a local time; nil if that is not known.
func (t *Table) Learn(key string, e limiter.Effect, st *limiter.State, sentNs int64) {
	if t == nil {
		return
	}
	name := []byte(key[len(t.KeyPrefix):])
	if e == limiter.Replaces {
		t.leases.Forget(name)
	}
	switch {
	case e != limiter.Raises:
		t.recent.Forget(name, t.Now())
	case st == nil:
	case st.Kind == limiter.Funnel:
		t.recent.Renew(name, st.ExpiresNs, sentNs)
	case st.Kind == limiter.Reserving: // the TAT becomes less when a reservation expires
		t.recent.Forget(name, t.Now())
	}
}

// Note remembers the TAT of a key that has no room left, by the reply to what was sent at a local time.
func (t *Table) Note(name []byte, tatNs, sentNs int64) {
	if t != nil {
		t.recent.Note(name, tatNs, sentNs)
	}
}

// Ahead is units that are requested ahead, with a script.
type Ahead struct {
	Units int64 // none if it is 0
	Limit funnel.Limit
	ask   ahead.Ask
}

// Want returns how many units of a key to take ahead with the script of so many requests, of which q is the
// last.
func (t *Table) Want(q *store.Request, requests int, localNs int64) Ahead {
	if t == nil || t.leases == nil || q.Quantity <= 0 {
		return Ahead{}
	}
	ask := t.leases.Want(q.Key.Name, q.Rule.Funnel, requests, localNs)
	return Ahead{Units: ask.Units, Limit: q.Rule.Funnel, ask: ask}
}

// Granted notes how many of the units that were requested ahead the script has taken, from a TAT on. It
// returns the TAT behind them, and whether there were some for which there was no room.
func (t *Table) Granted(name []byte, a *Ahead, fromNs, nowNs int64) (tatNs int64, refused bool) {
	if a.Units == 0 {
		return fromNs, false
	}
	units := int64(0)
	if debtNs := funnel.Since(nowNs, fromNs); debtNs < a.Limit.ToleranceNs() {
		units = min(a.Units, int64((a.Limit.ToleranceNs()-debtNs)/a.Limit.IntervalNs()))
	}
	t.leases.Granted(name, a.ask, nowNs, fromNs, units)
	return funnel.After(fromNs, a.Limit.DebitNs(units)), units < a.Units
}

// Leases returns for how long units that are taken ahead are kept at most. It is false if none are.
func (t *Table) Leases() (maxTime time.Duration, ok bool) {
	if t == nil || t.leases == nil {
		return 0, false
	}
	return t.leases.MaxTime(), true
}

// Return returns what to give back: what was taken ahead for longer than it may be kept, or all of it.
func (t *Table) Return(all bool) []ahead.Cut {
	if all {
		return t.leases.ReturnAll(t.Now())
	}
	return t.leases.Return(t.Now())
}
