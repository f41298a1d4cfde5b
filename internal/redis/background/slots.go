package background

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Who identifies a competitor for slots: a connection of a user at an address.
type Who struct {
	Addr, User string
	Client     int64
}

// Slots bound concurrent work. The next turn goes to the address with the fewest slots, then the least recent
// use, then the longest wait; within an address, by the same rule to its users, and to their connections. See
// share.next for new ones.
type Slots struct {
	now func() int64

	mu       sync.Mutex // rank 90: guards all below
	free     int
	all      share // the root
	shares   map[shareKey]*share
	kept     int // shares left after the last forgetting
	halvedNs int64
	arrivals uint64
}

const (
	// halfLifeNs is the time in which past use counts half.
	halfLifeNs = int64(10 * time.Second)
	// forgottenNs is negligible use. As use decays, this bounds the number of shares.
	forgottenNs = int64(time.Millisecond)
	// sharesToForget is the number of shares, beyond twice those kept, that starts forgetting.
	sharesToForget = 1000
)

// NewSlots returns at least one slot. now returns monotonic nanoseconds.
func NewSlots(n int, now func() int64) *Slots {
	return &Slots{now: now, free: max(1, n), shares: map[shareKey]*share{}, halvedNs: now()}
}

// turn waits for a slot.
type turn struct {
	who   Who
	begin func() bool // called without locks; false if the slot is not needed
	waits bool        // guarded by Slots.mu
}

// Take waits for a slot, and returns false if ctx ends first.
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

// Give returns a slot.
func (s *Slots) Give(who Who) {
	for t := s.handOn(who); t != nil && !t.begin(); {
		t = s.handOn(t.who)
	}
}

// enter begins t in its turn, at once if a slot is free.
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

// leave withdraws a turn that has not begun.
func (s *Slots) leave(t *turn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.waits {
		return false
	}
	s.shares[shareKey{ofClient, t.who}].remove(t)
	return true
}

// handOn passes a slot on and returns the next turn, or nil.
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
		one.arrival = s.arrivals // last among those with equal use
	}
	t := one.turns[0]
	one.remove(t)
	one.change(nowNs, 1)
	return t
}

// awaitLocked adds a waiting share and its enclosing ones.
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

// decayLocked halves past use when due, and forgets negligible shares.
func (s *Slots) decayLocked(nowNs int64) {
	if nowNs < s.halvedNs { // a leader's clock is followed
		s.halvedNs = nowNs
	}
	halvings := min((nowNs-s.halvedNs)/halfLifeNs, 63)
	if halvings == 0 && len(s.shares) <= 2*s.kept+sharesToForget {
		return
	}
	if halvings > 0 {
		s.halvedNs = nowNs
	}
	for key, one := range s.shares {
		one.usedNs >>= halvings
		for more := true; more && one.isIdle(); one = one.whole { // it may have no other part
			one.whole.parts--
			delete(s.shares, key)
			key, more = key.whole()
		}
	}
	s.kept = len(s.shares)
	heap.Init(&s.all.waiting) // equal shares may have differed by one
	for _, one := range s.shares {
		heap.Init(&one.waiting)
	}
}
