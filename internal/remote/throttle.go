package remote

import (
	"context"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/remote/servers"
	"cellserver/internal/store"
)

// leastIntervalNs is what the servers' clocks can tell apart.
const leastIntervalNs = 1000

// Throttle implements store.Keys. It does not wait: where a request cannot be answered here it returns a store.Pending.
func (s *Store) Throttle(nowNs int64, batch []store.Request) store.Pending {
	s.counts.requests.Add(uint64(len(batch)))
	var room [64]int
	ask := room[:0] // the places of what has to be asked
	for i := range batch {
		if !s.decideHere(&batch[i], nowNs) {
			ask = append(ask, i)
		}
	}
	if len(ask) == 0 {
		return nil
	}
	b := newBatch(s, nowNs, batch, len(ask))
	if !s.deadlines.add(b, s.Timeout) {
		s.refuse(batch, ask, "the store is closed")
		return nil
	}
	s.ask(b, ask)
	return b
}

// decideHere answers a request that no server has to be asked about. Of others it says that they wait.
func (s *Store) decideHere(q *store.Request, nowNs int64) bool {
	q.Result, q.Err = funnel.Result{}, nil
	if q.Rule.Kind == limiter.Funnel && q.Rule.Funnel.IntervalNs() < leastIntervalNs && !s.CallersTime {
		q.Err = errTooFast
		return true
	}
	if s.knowsAny() && s.known(q, s.nodeOf(q.Key.Name), nowNs) {
		s.counts.outcome(q.Rule.Kind, q.Quantity, q.Result.Limited)
		return true
	}
	name := int64(len(q.Key.Name))
	if s.waiting.Add(1) > maxWaiting || s.bytes.Add(name) > maxWaitingBytes {
		s.waiting.Add(-1)
		s.bytes.Add(-name)
		s.decideFailed(q, &servers.Failed{Reason: servers.QueueFull, Text: "too many requests wait for the servers"})
		return true
	}
	return false
}

func (s *Store) refuse(batch []store.Request, ask []int, text string) {
	for _, i := range ask {
		s.waiting.Add(-1)
		s.bytes.Add(-int64(len(batch[i].Key.Name)))
		s.decideFailed(&batch[i], &servers.Failed{Reason: servers.QueueFull, Text: text})
	}
}

// decideFailed answers a request for which there is a failure.
func (s *Store) decideFailed(q *store.Request, f *servers.Failed) {
	s.counts.failed.add(f.Reason)
	if f.Reason == servers.WrongType {
		q.Result, q.Err = funnel.Result{}, limiter.ErrWrongType
		return
	}
	s.decideByPolicy(q, f)
}

// ask queues the requests at these places of a batch, of which it copies all names.
func (s *Store) ask(b *batch, at []int) {
	b.items = b.items[:len(at)]
	b.left = len(at)
	b.copyNames()
	for n, i := range at {
		b.items[n] = item{batch: b, at: i}
	}
	var room [64]*group
	owned := room[:0]
	for n := range b.items {
		it := &b.items[n]
		key := s.name(it.request().Key)
		if g := s.groups.push(key, it); g != nil {
			owned = append(owned, g)
		}
	}
	for _, g := range owned {
		s.dispatch(g)
	}
}

// copyNames copies the names, which are slices of a connection's buffer.
func (b *batch) copyNames() {
	n := 0
	for i := range b.requests {
		n += len(b.requests[i].Key.Name)
	}
	names := make([]byte, 0, n)
	for i := range b.requests {
		from := len(names)
		names = append(names, b.requests[i].Key.Name...)
		b.requests[i].Key.Name = names[from:len(names):len(names)]
	}
}

// dispatch queues a group for its server.
func (s *Store) dispatch(g *group) {
	if g.to != nil {
		s.node(s.Pool.At(g.to.Addr)).push(g)
		return
	}
	server, err := s.Pool.Of(context.Background(), g.key)
	if err == nil {
		s.node(server).push(g)
		return
	}
	if !s.take(g, nil, s.Now()) {
		s.goOn(g)
		return
	}
	s.failed(g, failedOf(err))
}

// answerOf reads what a script has returned, if it is an answer.
func (s *Store) answerOf(c *servers.Call) (a answer, known bool) {
	if c.Err != nil {
		return answer{failed: failedOf(c.Err)}, false
	}
	a, ok := s.parse(c.Reply)
	if !ok {
		a.failed = &servers.Failed{Reason: servers.Refused, Executed: servers.Maybe, Text: "a server's reply makes no sense"}
	}
	return a, ok && !a.apart
}

// answered does with a group what its script's answer says.
func (s *Store) answered(g *group, a answer, sentNs int64) {
	if a.apart {
		s.handOver(g) // which counts it
		return
	}
	s.counts.asked.Add(uint64(g.count))
	s.counts.joined.Add(uint64(g.count - 1))
	if a.failed != nil {
		s.failed(g, a.failed)
		return
	}
	g.tries, g.to = 0, nil
	s.replay(g, a, sentNs)
	s.forgetTaken(g)
	s.goOn(g)
}

// maxRedirects is how often a group follows a redirection at once.
const maxRedirects = 5

// failed has what was taken of a group sent again, if it certainly was not executed for a reason that may pass; else it is left
// to the policy.
func (s *Store) failed(g *group, f *servers.Failed) {
	if !f.Again() {
		for it := g.taken.first; it != nil; it = it.next {
			it.fail(f)
		}
		g.tries, g.to = 0, nil
		s.forgetTaken(g)
		s.goOn(g)
		return
	}
	s.counts.resent.add(f.Reason)
	for it := g.taken.first; it != nil; it = it.next {
		it.sentInVain(f)
	}
	s.groups.putBack(g, &g.taken)
	g.tries++
	if g.to = f.Redirect; g.to != nil && g.tries <= maxRedirects {
		s.dispatch(g)
		return
	}
	g.to = nil
	s.working.begin()
	time.AfterFunc(pause(g.tries), func() {
		defer s.working.end()
		s.dispatch(g)
	})
}

// pause is how long after so many tries in vain the next one is.
func pause(tries int) time.Duration {
	return time.Millisecond << min(tries-1, 5)
}

// goOn has a group's owner go on with what has come meanwhile, or let it go.
func (s *Store) goOn(g *group) {
	if !s.groups.release(g) {
		s.dispatch(g)
	}
}
