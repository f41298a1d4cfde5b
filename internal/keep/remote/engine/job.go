package remote

import (
	"sync/atomic"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/store"
)

// handedOver is a group that waits until others has decided what was taken of it.
type handedOver struct {
	store *Store
	group *group
	left  atomic.Int64
}

// handOver has others decide what was taken of a group, and then goes on with it.
func (s *Store) handOver(g *group) {
	s.working.begin()
	h := &handedOver{store: s, group: g}
	for it := g.taken.first; it != nil; it = it.next {
		h.left.Add(1)
	}
	h.left.Add(1) // or it could go on before all are added
	for it := g.taken.first; it != nil; it = it.next {
		q := it.request()
		t := &task{deed: deed{nowNs: it.batch.nowNs, request: &store.Request{Rule: q.Rule, Quantity: q.Quantity}}, waiter: &itemWaiter{it, h}}
		if t.err = t.check(s.CallersTime); t.err != nil {
			t.waiter.done(t)
			continue
		}
		s.others.add(g.key, t)
	}
	h.one()
}

// one counts down, and at last has the group go on.
func (h *handedOver) one() {
	if h.left.Add(-1) > 0 {
		return
	}
	s, g := h.store, h.group
	s.forgetTaken(g)
	g.tries, g.to = 0, nil
	s.goOn(g)
	s.working.end()
}

// itemWaiter implements waiter for a request of a batch.
type itemWaiter struct {
	item *item
	of   *handedOver
}

func (w *itemWaiter) waits(to *servers.Server) bool { return w.item.waits(to) }

func (w *itemWaiter) sentInVain(f *servers.Failed) { w.item.sentInVain(f) }

func (w *itemWaiter) done(t *task) {
	w.item.decided(t.request.Result, t.err)
	w.of.one()
}

func (w *itemWaiter) fail(f *servers.Failed) {
	w.item.fail(f)
	w.of.one()
}
