package remote

import (
	"context"
	"sync"
)

// maxApart is how many goroutines decide what is no case for the funnels' script, each one key at a time.
const maxApart = 64

// apart is the groups whose requests are of other kinds than the funnel, or find another kind than that. A group waits here
// for one of a few goroutines.
type apart struct {
	mu      sync.Mutex // guards all below
	waiting []*group   // which it owns
	working int
}

// handOver has others decide what was taken of a group, and then goes on with it.
func (s *Store) handOver(g *group) {
	a := &s.apart
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, g)
	if a.working < maxApart {
		a.working++
		s.working.begin()
		go s.workApart()
	}
}

func (s *Store) workApart() {
	defer s.working.end()
	for g := s.nextApart(); g != nil; g = s.nextApart() {
		s.dropUnwaited(g)
		if g.taken.last != nil {
			ctx, cancel := context.WithDeadline(context.Background(), g.taken.last.batch.deadline)
			s.others(ctx, g)
			cancel()
		}
		s.forgetTaken(g)
		g.tries, g.to = 0, nil
		s.goOn(g)
	}
}

func (s *Store) nextApart() *group {
	a := &s.apart
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) == 0 {
		a.working--
		a.waiting = nil
		return nil
	}
	g := a.waiting[0]
	a.waiting = a.waiting[1:]
	return g
}

// dropUnwaited forgets what was taken of a group and nobody waits for any more. Of the rest nothing has been sent.
func (s *Store) dropUnwaited(g *group) {
	all := g.taken
	g.taken = list{}
	for all.first != nil {
		if it := all.pop(); it.waits(nil) {
			g.taken.push(it)
		} else {
			s.forget(it)
		}
	}
}
