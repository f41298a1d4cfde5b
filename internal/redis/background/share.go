package background

import (
	"container/heap"
	"slices"
)

// shareKey names a share: whose fields it has depends on of what it is.
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

// whole is what a share is a part of, unless that is everybody's.
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

// share is what an address, a user or a connection has of the slots.
type share struct {
	whole   *share // that it is a part of; nil for everybody's
	parts   int
	running int   // slots that it has
	usedNs  int64 // of slots, up to sinceNs
	sinceNs int64

	turns   []*turn  // of a connection
	isNew   bool     // a connection that has had no turn
	waiting queue    // the parts that wait, but for those that are new
	new     []*share // which have come in this order
	handed  uint     // turns
	waits   bool
	at      int    // in the queue
	arrival uint64 // there
}

func (one *share) hasTurns() bool { return len(one.turns)+len(one.waiting)+len(one.new) > 0 }

func (one *share) isIdle() bool {
	return one.usedNs < forgottenNs && one.running == 0 && one.parts == 0 && !one.hasTurns()
}

// next is the part whose turn it is. Those that are new have every second one, so that nobody gains by connecting again;
// and of those the first and the last in turn, so that nobody has to wait until all are known who have just come.
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

// enter has the share wait.
func (one *share) enter(arrival uint64) {
	one.waits, one.arrival = true, arrival
	if one.isNew {
		one.whole.new = append(one.whole.new, one)
	} else {
		heap.Push(&one.whole.waiting, one)
	}
}

// leave is enter's opposite.
func (one *share) leave() {
	one.waits = false
	if siblings := &one.whole.new; one.isNew {
		i := slices.Index(*siblings, one)
		*siblings = slices.Delete(*siblings, i, i+1)
	} else {
		heap.Remove(&one.whole.waiting, one.at)
	}
}

// change counts a slot more or less.
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

// queue is a heap of shares, the one whose turn it is first.
type queue []*share

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
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

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	one := x.(*share)
	one.at = len(*q)
	*q = append(*q, one)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	one := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return one
}
