package background

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Who wants a slot: a connection, of a user, at an address.
type Who struct {
	Addr, User string
	Client     int64
}

// Slots bound how much is done at once. Those who wait have their turns by what they have used: the address with the fewest
// slots goes first, then the one that has used the least time lately, then whoever has waited longest; within the address
// the same goes for its users, and within the user for the connections: see share.next for those that are new.
type Slots struct {
	now func() int64

	mu       sync.Mutex // guards all below
	free     int
	all      share // of everybody
	shares   map[shareKey]*share
	kept     int // shares, when some were last forgotten
	halvedNs int64
	arrivals uint64
}

const (
	// halfLifeNs is the time after which what was used counts half.
	halfLifeNs = int64(10 * time.Second)
	// forgottenNs is how little use is not remembered. As use decays, that bounds how many shares are kept.
	forgottenNs = int64(time.Millisecond)
	// sharesToForget is how many shares there may be in addition to twice as many as were kept.
	sharesToForget = 1000
)

// NewSlots returns n slots, at least one. The clock gives nanoseconds and never goes back.
func NewSlots(n int, now func() int64) *Slots {
	return &Slots{now: now, free: max(1, n), shares: map[shareKey]*share{}, halvedNs: now()}
}

// turn is what waits for a slot.
type turn struct {
	who   Who
	begin func() bool // is called without locks, and is false if the slot is not needed any more
	waits bool        // guarded by Slots.mu
}

// Take waits for a slot, and is false if nobody is interested any more.
func (s *Slots) Take(ctx context.Context, who Who) bool {
	ready := make(chan struct{})
	t := &turn{who: who, begin: func() bool { close(ready); return true }}
	s.enter(t)
	select {
	case <-ready:
		return true
	case <-ctx.Done():
		if !s.leave(t) {
			s.Give(who)
		}
		return false
	}
}

// Give returns a slot that somebody has taken.
func (s *Slots) Give(who Who) {
	for t := s.handOn(who); t != nil && !t.begin(); {
		t = s.handOn(t.who)
	}
}

// enter begins t if a slot is free, and else when it is its turn.
func (s *Slots) enter(t *turn) {
	if s.takeFree(t) && !t.begin() {
		s.Give(t.who)
	}
}

func (s *Slots) takeFree(t *turn) (taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nowNs := s.now()
	s.decayLocked(nowNs)
	one := s.shareLocked(shareKey{ofClient, t.who})
	if s.free == 0 {
		t.waits = true
		one.turns = append(one.turns, t)
		s.awaitLocked(one)
		return false
	}
	s.free--
	one.change(nowNs, 1)
	return true
}

// leave takes back a turn that has not begun.
func (s *Slots) leave(t *turn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.waits {
		return false
	}
	s.shares[shareKey{ofClient, t.who}].remove(t)
	return true
}

// handOn takes back a slot and returns whose turn it is to have it, or nil.
func (s *Slots) handOn(who Who) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	nowNs := s.now()
	s.decayLocked(nowNs)
	s.shares[shareKey{ofClient, who}].change(nowNs, -1)
	if !s.all.hasTurns() {
		s.free++
		return nil
	}
	one := &s.all
	for len(one.turns) == 0 {
		one = one.next()
		s.arrivals++
		one.arrival = s.arrivals // to others that have used as much, it is the last now
	}
	t := one.turns[0]
	one.remove(t)
	one.change(nowNs, 1)
	return t
}

// awaitLocked has a share wait in its turn, and those that it is a part of.
func (s *Slots) awaitLocked(one *share) {
	for ; one.whole != nil && !one.waits; one = one.whole {
		s.arrivals++
		one.enter(s.arrivals)
	}
}

func (s *Slots) shareLocked(key shareKey) *share {
	if one := s.shares[key]; one != nil {
		return one
	}
	one := &share{whole: &s.all, isNew: key.of == ofClient}
	if whole, ok := key.whole(); ok {
		one.whole = s.shareLocked(whole)
	}
	one.whole.parts++
	s.shares[key] = one
	return one
}

// decayLocked halves what was used when it is time, and forgets who has used next to nothing.
func (s *Slots) decayLocked(nowNs int64) {
	halvings := min((nowNs-s.halvedNs)/halfLifeNs, 63)
	if halvings == 0 && len(s.shares) <= 2*s.kept+sharesToForget {
		return
	}
	if halvings > 0 {
		s.halvedNs = nowNs
	}
	for key, one := range s.shares {
		one.usedNs >>= halvings
		for more := true; more && one.isIdle(); one = one.whole { // which may have no other part
			one.whole.parts--
			delete(s.shares, key)
			key, more = key.whole()
		}
	}
	s.kept = len(s.shares)
	heap.Init(&s.all.waiting) // what differed by one may now be the same
	for _, one := range s.shares {
		heap.Init(&one.waiting)
	}
}
