package remote

import (
	"hash/maphash"
	"sync"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
)

// group is the requests for a key that are not answered, in the order in which they came. It has one owner at a time: who has made it
// busy, or was handed it, be it a queue or a goroutine. So there is at most one script under way for a key, all requests that come
// meanwhile are the next one's, and a connection's are decided in their order.
type group struct {
	key     string
	waiting list // the lock of the group's part of the table guards it

	taken list   // the owner's, as is all below: what is being decided
	count int    // how many these are
	ahead lent   // what is requested beside them
	next  *group // in a queue
	call  servers.Call
	tries int // in vain, since there was an answer
	to    *servers.Redirect
	// apart is whether what was taken is no case for the funnels' script.
	apart bool
}

// list is items in order.
type list struct{ first, last *item }

func (l *list) push(it *item) {
	if l.last == nil {
		l.first = it
	} else {
		l.last.next = it
	}
	l.last = it
}

func (l *list) pop() *item {
	it := l.first
	if l.first = it.next; l.first == nil {
		l.last = nil
	}
	it.next = nil
	return it
}

// putBefore moves all of other before the list's own.
func (l *list) putBefore(other *list) {
	if other.last == nil {
		return
	}
	other.last.next = l.first
	if l.last == nil {
		l.last = other.last
	}
	l.first = other.first
	*other = list{}
}

const tableParts = 64

// table is the groups of all keys that have any, by key.
type table struct {
	seed  maphash.Seed
	parts [tableParts]struct {
		mu     sync.Mutex // guards all below
		groups map[string]*group
		_      [48]byte // a part has a cache line of its own
	}
	unused sync.Pool // of *group
}

func (t *table) init() {
	t.seed = maphash.MakeSeed()
	for i := range t.parts {
		t.parts[i].groups = map[string]*group{}
	}
}

func (t *table) part(key string) int { return int(maphash.String(t.seed, key) % tableParts) }

// push puts an item behind those for a key, whose name it does not keep. It returns the key's group if it belongs to the caller now.
func (t *table) push(name []byte, it *item) *group {
	p := &t.parts[maphash.Bytes(t.seed, name)%tableParts]
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.groups[string(name)]; g != nil {
		g.waiting.push(it)
		return nil
	}
	g, _ := t.unused.Get().(*group)
	if g == nil {
		g = &group{}
		g.call.Keys = make([]string, 1)
	}
	key := string(name)
	g.key, g.call.Keys[0] = key, key
	g.waiting.push(it)
	p.groups[key] = g
	return g
}

// release ends the ownership of a group of which nothing waits, and returns false for others.
func (t *table) release(g *group) bool {
	p := &t.parts[t.part(g.key)]
	p.mu.Lock()
	defer p.mu.Unlock()
	if g.waiting.first != nil {
		return false
	}
	delete(p.groups, g.key)
	clear(g.call.Args)
	*g = group{call: servers.Call{Keys: g.call.Keys, Args: g.call.Args[:0]}}
	t.unused.Put(g)
	return true
}

// takeAll takes all that waits of a group.
func (t *table) takeAll(g *group) list {
	p := &t.parts[t.part(g.key)]
	p.mu.Lock()
	defer p.mu.Unlock()
	all := g.waiting
	g.waiting = list{}
	return all
}

// putBack has items wait again, before all that came since they were taken.
func (t *table) putBack(g *group, l *list) {
	if l.first == nil {
		return
	}
	p := &t.parts[t.part(g.key)]
	p.mu.Lock()
	defer p.mu.Unlock()
	g.waiting.putBefore(l)
}

// take takes what is to be decided next of a group, by a node if it is not nil: requests of funnels that make a script of a bounded size,
// or others. What nobody waits for any more goes, and what can be decided here is. It is false if nothing is left.
func (s *Store) take(g *group, n *node, localNs int64) bool {
	all := s.groups.takeAll(g)
	w := runWriter{args: g.call.Args[:0]}
	var server *servers.Server
	if n != nil {
		server = n.server
	}
	for refunded := false; all.first != nil && s.mayTake(g, &w, all.first); {
		it := all.pop()
		switch {
		case !it.waits(server):
			s.forget(it)
		case !refunded && s.decidesKnown(it, n, localNs):
			s.forget(it)
		default:
			refunded = refunded || it.request().Quantity < 0 // behind which nothing that was known before counts
			s.add(g, &w, it)
		}
	}
	s.groups.putBack(g, &all)
	if !g.apart && g.taken.first != nil {
		s.wantAhead(g, &w, localNs)
	}
	g.call.Args = w.finish()
	return g.taken.first != nil
}

// mayTake reports whether an item goes together with what was taken.
func (s *Store) mayTake(g *group, w *runWriter, it *item) bool {
	first, q := g.taken.first, it.request()
	switch {
	case first == nil:
		return true
	case g.apart != (q.Rule.Kind != limiter.Funnel):
		return false
	case s.CallersTime && it.batch.nowNs != first.batch.nowNs:
		return false
	}
	return g.apart || w.fits(q)
}

// add takes an item.
func (s *Store) add(g *group, w *runWriter, it *item) {
	if g.taken.first == nil {
		g.apart, g.count = it.request().Rule.Kind != limiter.Funnel, 0
		if s.CallersTime {
			w.args = append(w.args, it.batch.nowNs/nsPerSec, it.batch.nowNs%nsPerSec)
		}
	}
	g.taken.push(it)
	g.count++
	if !g.apart {
		w.add(it.request())
	}
}

// forget counts an item that waits no more.
func (s *Store) forget(it *item) { s.leave(it.request(), it.node) }

// forgetTaken has nothing taken any more.
func (s *Store) forgetTaken(g *group) {
	for g.taken.first != nil {
		s.forget(g.taken.pop())
	}
}
