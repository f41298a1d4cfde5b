package remote

import (
	"context"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

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
