package remote

import (
	"context"
	"sync/atomic"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// leastIntervalNs is what the servers' clocks can tell apart.
const leastIntervalNs = 1000

// Throttle implements store.Keys. It does not wait: where a request cannot be answered here it returns a store.Pending.
func (s *Store) Throttle(nowNs int64, batch []store.Request) store.Pending {
	s.counts.requests.Add(uint64(len(batch)))
	var room [64]place
	ask := room[:0]
	refunded := false
	for i := range batch {
		if n, waits := s.decideHere(&batch[i], nowNs, refunded); waits {
			ask = append(ask, place{i, n})
		}
		refunded = refunded || batch[i].Quantity < 0
	}
	if len(ask) == 0 {
		return nil
	}
	b := newBatch(s, nowNs, batch, ask) // complete before its deadline can come
	if !s.deadlines.add(b, s.Timeout) {
		s.refuse(batch, ask, "the store is closed")
		return nil
	}
	s.ask(b)
	return b
}

// place is where a batch has a request that has to be asked, and for which node, if that is known.
type place struct {
	at   int
	node *node
}

// decideHere answers a request that no server has to be asked about. Others wait, and are counted so: those behind a refund, too, for
// that is perhaps not executed when they come.
func (s *Store) decideHere(q *store.Request, nowNs int64, behindRefund bool) (n *node, waits bool) {
	q.Result, q.Err = funnel.Result{}, nil
	if leaksTooFast(q.Rule.IntervalNs()) && !s.CallersTime {
		q.Err = errTooFast
		return nil, false
	}
	if n = s.nodeOf(q.Key.Name); s.knowsAny() && s.known(q, n, nowNs, behindRefund) {
		s.counts.outcome(q.Outcome())
		return nil, false
	}
	if text := s.enter(q, n); text != "" {
		s.leave(q, n)
		s.decideFailed(q, &servers.Failed{Reason: servers.QueueFull, Text: text})
		return nil, false
	}
	return n, true
}

// waiting counts what waits.
type waiting struct{ requests, bytes atomic.Int64 } // the bytes are of names

// add adds to what waits, and reports whether that is more than one of so many parts of what may.
func (w *waiting) add(requests int64, q *store.Request, part int64) (tooMany bool) {
	n, bytes := w.requests.Add(requests), w.bytes.Add(requests*int64(len(q.Key.Name)))
	return n > maxWaiting/part || bytes > maxWaitingBytes/part
}

// enter counts a request that waits, for a node if it is known. If that is one too many, it says so.
func (s *Store) enter(q *store.Request, n *node) (tooMany string) {
	if s.waiting.add(1, q, 1) {
		tooMany = "too many requests wait for the servers"
	}
	if n != nil && n.waiting.add(1, q, serverPart) && s.Pool.Clustered() {
		tooMany = "too many requests wait for " + n.server.Addr
	}
	return tooMany
}

// leave counts a request that waits no more.
func (s *Store) leave(q *store.Request, n *node) {
	s.waiting.add(-1, q, 1)
	if n != nil {
		n.waiting.add(-1, q, serverPart)
	}
}

func (s *Store) refuse(batch []store.Request, ask []place, text string) {
	for _, p := range ask {
		s.leave(&batch[p.at], p.node)
		s.decideFailed(&batch[p.at], &servers.Failed{Reason: servers.QueueFull, Text: text})
	}
}

// decideFailed answers a request for which there is a failure.
func (s *Store) decideFailed(q *store.Request, f *servers.Failed) {
	s.counts.failed.Add(f.Reason)
	if f.Reason == servers.WrongType {
		q.Result, q.Err = funnel.Result{}, limiter.ErrWrongType
		return
	}
	s.decideByPolicy(q, f)
}

// ask queues what waits of a batch.
func (s *Store) ask(b *batch) {
	type owned struct {
		group *group
		node  *node
	}
	var room [64]owned
	var nameRoom [128]byte
	all, name := room[:0], append(nameRoom[:0], s.KeyPrefix...)
	for n := range b.items {
		it := &b.items[n]
		name = append(name[:len(s.KeyPrefix)], it.request().Key.Name...)
		if g := s.groups.push(name, it); g != nil {
			all = append(all, owned{g, it.node})
		}
	}
	for _, o := range all {
		if o.node != nil {
			o.node.push(o.group)
		} else {
			s.dispatch(o.group)
		}
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
		if f.Executed != servers.No {
			s.learnFailed(g)
		}
		for it := g.taken.first; it != nil; it = it.next {
			it.fail(f)
		}
		g.tries, g.to = 0, nil
		s.forgetTaken(g)
		s.goOn(g)
		return
	}
	s.counts.resent.Add(f.Reason)
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
	s.after(g.tries, func() { s.dispatch(g) })
}

// after has something done when the pause behind so many tries in vain is over.
func (s *Store) after(tries int, do func()) {
	s.working.begin()
	time.AfterFunc(pause(tries), func() {
		defer s.working.end()
		do()
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
