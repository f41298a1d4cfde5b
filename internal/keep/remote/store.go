// Package remote keeps states on Redis or Valkey servers, by whose clocks it decides. It sends the requests
// of all connections to a server as pipelines with a script call for each key; a policy decides the ones not
// answered in time. A Store is safe for concurrent use.
package remote

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/prefilter"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

const DefaultTimeout = 50 * time.Millisecond

// Pool is the part of a *servers.Pool that a Store uses.
type Pool interface {
	engine.Pool
	OneStep(keys []string) bool
	Slot(key string) uint16
	Do(ctx context.Context, key string, c *servers.Call, wait int) error
	Masters(ctx context.Context) ([]*servers.Server, error)
}

type Config struct {
	Pool      Pool
	KeyPrefix string        // of all keys on the servers
	Timeout   time.Duration // of a decision; 0 is DefaultTimeout
	Wait      int           // number of replicas that must have a write; see servers.Pool.Send

	OnError    store.Fallback
	Local      store.Store // decides by the policy Local; it must answer at once
	LocalShare float64     // Local's part of each limit, above 0 and at most 1

	// Now is the caller's clock: monotonic Unix nanoseconds.
	Now func() int64
	// CallersTime has scripts decide at the callers' times, to the nanosecond, and keys live for an hour
	// longer: for tests with their own clock.
	CallersTime bool
}

// Store implements store.Remote.
type Store struct {
	Config
	scripts   *script.Scripts
	engine    *engine.Engine
	filter    *prefilter.Filter
	counts    counts
	book      store.Book
	deadlines deadlines
}

// Open returns a store on a pool's servers, which it does not close.
func Open(c Config) (*Store, error) {
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if err := checkPolicy(c.OnError, &c); err != nil {
		return nil, err
	}
	s := &Store{Config: c, scripts: script.New(c.CallersTime), filter: prefilter.New(c.KeyPrefix, c.Now)}
	s.engine = engine.New(engine.Config{
		Pool: c.Pool, Scripts: s.scripts, Filter: s.filter, Timeout: c.Timeout, Wait: c.Wait, Now: c.Now,
		CallersTime: c.CallersTime, Note: s.note,
	})
	return s, nil
}

// Abilities implements store.Remote: it has none. Keys are not held on the servers, as a cellserver that is
// lost would hold them for ever.
func (s *Store) Abilities() store.Abilities { return store.Abilities{} }

// Close has the policy decide all waiting and later requests, and returns once no call is under way.
func (s *Store) Close() {
	s.deadlines.close()
	s.engine.WaitIdle()
}

func (s *Store) timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Timeout)
}

func (s *Store) name(key store.Key) string { return s.KeyPrefix + string(key.Name) }

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

func failureOf(f *servers.Failed) error {
	if f.Reason == servers.WrongType {
		return limiter.ErrWrongType
	}
	charged := "nothing was charged"
	if f.Executed != servers.No {
		charged = "it may have been charged"
	}
	failure := store.Failure{Line: "STOREDOWN " + f.Text + "; " + charged}
	if f.Reason == servers.OutOfMemory {
		return noMemory{failure}
	}
	return failure
}

// noMemory is the failure of a call for which a server has no memory.
type noMemory struct{ store.Failure }

func (n noMemory) Unwrap() error { return n.Failure }

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
	q.Result, q.Err = funnel.Result{}, nil
	units, policy := q.Quantity, s.OnError
	if q.Rule.Holds() { // no store would have what is to be settled
		policy = store.FallbackError
	}
	switch policy {
	case store.FallbackAllow:
		units, q.Result = ofEmpty(&q.Rule, s.Now(), units)
	case store.FallbackDeny:
		units, q.Result = denied(&q.Rule, s.Now(), units)
	case store.FallbackLocal:
		local := [1]store.Request{*q}
		local[0].Rule.Share(s.LocalShare)
		s.Local.Throttle(s.Now(), local[:])
		units, q.Result, q.Err = local[0].Quantity, local[0].Result, local[0].Err
	default:
		q.Err = failureOf(f)
	}
	decidedFor(q, units)
	s.counts.policy[policy].add(q)
}

// decidedFor notes the units that a request with AtMost was decided for. Others' are constant, as the engine
// may still read them.
func decidedFor(q *store.Request, units int64) {
	if q.Rule.Flags&limiter.AtMost != 0 {
		q.Quantity = units
	}
}

// ofEmpty is the result of a request to an unused key, and the units that it was decided for.
func ofEmpty(r *limiter.Rule, nowNs, quantity int64) (units int64, result funnel.Result) {
	full := r.Full(nowNs)
	units = r.Units(&full, nowNs, quantity)
	result, _, _ = r.Decide(&full, nowNs, units)
	return units, result
}

// denied is the result of a request limited for a second. A probe or refund is not limited.
func denied(r *limiter.Rule, nowNs, quantity int64) (units int64, result funnel.Result) {
	look := *r
	if look.Flags &^= limiter.AtMost; look.Flags != r.Flags {
		quantity = 1
	}
	_, result = ofEmpty(&look, nowNs, 0)
	result.Limited, result.Remaining = quantity > 0, 0
	if result.ResetAfter = r.Unit.Of(1e9); result.Limited {
		result.RetryAfter = result.ResetAfter
	}
	return quantity, result
}

type counts struct {
	requests, late atomic.Uint64

	failed servers.ByReason
	policy [store.Fallbacks]decided

	granted, refused atomic.Uint64 // units
	cut              atomic.Uint64 // debits cut off
	holds            store.HoldCounts
	outcomes         [limiter.Kinds]struct{ allowed, limited atomic.Uint64 }
}

type decided struct{ allowed, limited, failed atomic.Uint64 }

func (d *decided) add(q *store.Request) {
	switch {
	case q.Err != nil:
		d.failed.Add(1)
	case q.Result.Limited:
		d.limited.Add(1)
	default:
		d.allowed.Add(1)
	}
}

func (d *decided) all() store.Decided {
	return store.Decided{Allowed: d.allowed.Load(), Limited: d.limited.Load(), Failed: d.failed.Load()}
}

func (c *counts) outcome(o limiter.Outcome) {
	if o.Cut {
		c.cut.Add(1)
	}
	units := store.CountedUnits(o.Quantity)
	switch {
	case !o.Requests:
	case o.Limited:
		c.outcomes[o.Kind].limited.Add(1)
		c.refused.Add(units)
	default:
		c.outcomes[o.Kind].allowed.Add(1)
		c.granted.Add(units)
	}
}

// UpdateStats implements store.Store. It leaves out decisions of the policy.
func (s *Store) UpdateStats(st *store.Stats) {
	for kind := range s.counts.outcomes {
		allowed, limited := s.counts.outcomes[kind].allowed.Load(), s.counts.outcomes[kind].limited.Load()
		st.Allowed += allowed
		st.Limited += limited
		st.Outcomes[kind].Allowed += allowed
		st.Outcomes[kind].Limited += limited
	}
	s.counts.holds.AddTo(st)
	granted := s.counts.granted.Load()
	st.Granted += granted
	st.DebitsCut += s.counts.cut.Load()
	st.Requested += granted + s.counts.refused.Load()
}

func (s *Store) Stats() store.RemoteStats {
	c, st := &s.counts, s.engine.Stats()
	st.Requests, st.Prefiltered, st.Late = c.requests.Load(), s.filter.Denied(), c.late.Load()
	st.Failed, st.Policy = c.failed.All(), map[store.Fallback]store.Decided{}
	for p := range store.Fallbacks {
		st.Policy[p] = c.policy[p].all()
	}
	return st
}

// leastIntervalNs is the resolution of the servers' clocks.
const leastIntervalNs = 1000

// Throttle implements store.Keys. It does not wait: where a request cannot be answered here it returns a
// store.Pending.
func (s *Store) Throttle(nowNs int64, batch []store.Request) store.Pending {
	s.counts.requests.Add(uint64(len(batch)))
	var buffer [64]place
	ask := buffer[:0]
	refunded := false
	for i := range batch {
		if to, waits := s.decideHere(&batch[i], nowNs, refunded); waits {
			ask = append(ask, place{i, to})
		}
		refunded = refunded || batch[i].Quantity < 0
	}
	if len(ask) == 0 {
		return nil
	}
	b := newBatch(s, nowNs, batch, ask) // complete before its deadline
	if !s.deadlines.add(b, s.Timeout) {
		s.refuse(batch, ask)
		return nil
	}
	s.ask(b)
	return b
}

// place is the index of a waiting request in its batch, with its sender, if known.
type place struct {
	at     int
	sender *engine.Sender
}

// decideHere answers a request if no server is needed. Otherwise the request waits and is counted, also
// behind a refund, which may not have been executed yet.
func (s *Store) decideHere(q *store.Request, nowNs int64, behindRefund bool) (to *engine.Sender, waits bool) {
	q.Result, q.Err = funnel.Result{}, nil
	if r, ok := q.Rule.Constantly(); ok {
		q.Result = r
		decidedFor(q, q.Rule.Units(&limiter.State{}, nowNs, q.Quantity))
		s.counts.outcome(q.Outcome())
		return nil, false
	}
	if s.leaksTooFast(q.Rule.IntervalNs()) {
		q.Err = errTooFast
		return nil, false
	}
	if to = s.senderOf(q.Key.Name); to != nil && !behindRefund {
		if r, denied := s.filter.Deny(q, &to.Timeline, nowNs); denied {
			q.Result = r
			decidedFor(q, 1)
			s.counts.outcome(q.Outcome())
			return nil, false
		}
	}
	if text := s.engine.Enter(q.Key.Name, to); text != "" {
		s.engine.Leave(q.Key.Name, to)
		s.decideFailed(q, &servers.Failed{Reason: servers.QueueFull, Text: text})
		return nil, false
	}
	return to, true
}

// senderOf returns the sender of a key's server, or nil if it is unknown.
func (s *Store) senderOf(name []byte) *engine.Sender {
	key := ""
	if s.Pool.Clustered() {
		key = s.KeyPrefix + string(name)
	}
	server, err := s.Pool.Of(context.Background(), key)
	if err != nil {
		return nil
	}
	return s.engine.Sender(server)
}

func (s *Store) refuse(batch []store.Request, ask []place) {
	for _, p := range ask {
		s.engine.Leave(batch[p.at].Key.Name, p.sender)
		s.decideFailed(&batch[p.at], closed())
	}
}

func closed() *servers.Failed {
	return &servers.Failed{Reason: servers.QueueFull, Text: "the store is closed"}
}

func (s *Store) decideFailed(q *store.Request, f *servers.Failed) {
	s.counts.failed.Add(f.Reason)
	if f.Reason == servers.WrongType {
		q.Result, q.Err = funnel.Result{}, limiter.ErrWrongType
		return
	}
	s.decideByPolicy(q, f)
}

func (s *Store) ask(b *batch) {
	var starting engine.Starting
	var buffer [128]byte
	name := append(buffer[:0], s.KeyPrefix...)
	for n := range b.items {
		it := &b.items[n]
		name = append(name[:len(s.KeyPrefix)], it.Request.Key.Name...)
		s.engine.Queue(&starting, name, &it.Job, it.sender)
	}
	s.engine.Start(starting)
}
