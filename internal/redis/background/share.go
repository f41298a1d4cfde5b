package background

import (
	"container/heap"
	"slices"
)

// shareKey names a share; the unused fields depend on its level.
type shareKey struct {
	of  level
	who Who
}

type level uint8

const (
	ofAddr level = iota
	ofUser
	ofClient
)

// whole returns the enclosing share's key, unless of is the root's child.
func (k shareKey) whole() (of shareKey, ok bool) {
	switch k.of {
	case ofClient:
		return shareKey{ofUser, Who{Addr: k.who.Addr, User: k.who.User}}, true
	case ofUser:
		return shareKey{ofAddr, Who{Addr: k.who.Addr}}, true
	case ofAddr:
	}
	return shareKey{}, false
}

// share is the use of slots by an address, a user or a connection.
type share struct {
	whole   *share // the enclosing share; nil for the root
	parts   int
	running int   // slots in use
	usedNs  int64 // slot time up to sinceNs
	sinceNs int64

	turns   []*turn  // of a connection
	isNew   bool     // a connection without any turn yet
	waiting queue    // waiting parts, except new ones
	new     []*share // in order of arrival
	handed  uint     // turns given
	waits   bool
	at      int    // in the queue
	arrival uint64 // in the queue
}

func (one *share) hasTurns() bool { return len(one.turns)+len(one.waiting)+len(one.new) > 0 }

func (one *share) isIdle() bool {
	return one.usedNs < forgottenNs && one.running == 0 && one.parts == 0 && !one.hasTurns()
}

// next returns the part whose turn it is. New ones get every second turn, so that reconnecting gains nothing,
// alternately the oldest and the newest, so that a newcomer need not wait for a crowd of them.
func (one *share) next() *share {
	one.handed++
	switch {
	case len(one.new) == 0 || len(one.waiting) > 0 && one.handed%2 == 0:
		return one.waiting[0]
	case one.handed%4 < 2:
		return one.new[len(one.new)-1]
	}
	return one.new[0]
}

// enter adds the share to the waiting ones.
func (one *share) enter(arrival uint64) {
	one.waits, one.arrival = true, arrival
	if one.isNew {
		one.whole.new = append(one.whole.new, one)
	} else {
		heap.Push(&one.whole.waiting, one)
	}
}

// leave undoes enter.
func (one *share) leave() {
	one.waits = false
	if siblings := &one.whole.new; one.isNew {
		i := slices.Index(*siblings, one)
		*siblings = slices.Delete(*siblings, i, i+1)
	} else {
		heap.Remove(&one.whole.waiting, one.at)
	}
}

// change adds by to the slots in use.
func (one *share) change(nowNs int64, by int) {
	for ; one.whole != nil; one = one.whole {
		one.usedNs += int64(one.running) * (nowNs - one.sinceNs)
		one.sinceNs = nowNs
		one.running += by
		if !one.waits {
			one.isNew = false
		} else if !one.isNew {
			heap.Fix(&one.whole.waiting, one.at)
		}
	}
}

func (one *share) remove(t *turn) {
	t.waits = false
	i := slices.Index(one.turns, t)
	one.turns = slices.Delete(one.turns, i, i+1)
	for ; one.whole != nil && !one.hasTurns(); one = one.whole {
		one.leave()
	}
}

// queue is a heap of shares by turn.
type queue []*share

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	a, b := q[i], q[j]
	switch {
	case a.running != b.running:
		return a.running < b.running
	case a.usedNs != b.usedNs:
		return a.usedNs < b.usedNs
	}
	return a.arrival < b.arrival
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

func (q *queue) Push(x any) {
	one := x.(*share)
	one.at = len(*q)
	*q = append(*q, one)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	one := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return one
}
