package transact

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"cellserver/internal/store"
)

// Part is what a caller does within a transaction on a remote store, which others may share.
type Part struct {
	Keys []store.Key
	// Do may be called repeatedly: each time supersedes the last. Unless it returns Keep, what it has done is
	// undone, without effect on the others.
	Do func(in *Space) Verdict
	// Alone has it share its transaction with nobody, as it may take long.
	Alone bool
}

const (
	// mostMembers and mostJointKeys bound a transaction that several share: a script blocks its server.
	mostMembers   = 128
	mostJointKeys = 1000
)

// member is a caller with its part. Its own goroutine decides, in its turn; its joint's reads and writes.
//
//	stage      it gives up with           next
//	undecided  nothing was charged        decided, by a turn; lost, if it leaves before it has a joint
//	decided    it may have been charged   lost, after a conflict
//	lost       conflicts                  decided, by another turn
type member struct {
	Part
	entered time.Time
	stage   stage // the caller's own

	turn    chan *Space   // to decide; nil after a conflict
	verdict chan Verdict  // of a turn
	outcome chan error    // has room
	gone    chan struct{} // closed when the caller stops waiting

	// Guarded by the line's lock:
	joint *joint // nil while it waits for one
	left  bool
}

type stage uint8

const (
	undecided stage = iota
	decided
	lost
)

func newMember(p Part) *member {
	keys := make([]store.Key, len(p.Keys)) // the caller may end before the joint does
	for i, k := range p.Keys {
		keys[i] = store.Key{DB: k.DB, Name: bytes.Clone(k.Name)}
	}
	p.Keys = keys
	return &member{
		Part: p, entered: time.Now(), turn: make(chan *Space), verdict: make(chan Verdict), outcome: make(chan error, 1), gone: make(chan struct{}),
	}
}

// decide takes the member's turn.
func (m *member) decide(in *Space) {
	if in == nil {
		m.stage = lost
		return
	}
	v := Drop
	defer func() { m.verdict <- v }() // also when Do panics
	if v = m.Do(in); v == Keep {
		m.stage = decided
	}
}

// offer gives a member its turn, with nil after a conflict. It returns false if the caller has gone.
func (m *member) offer(in *Space) (v Verdict, ok bool) {
	select {
	case m.turn <- in:
	case <-m.gone:
		return Drop, false
	}
	if in == nil {
		return Drop, true
	}
	return <-m.verdict, true
}

// joint is a transaction of one or several members. Once it has begun, its own goroutine uses it.
type joint struct {
	ctx     context.Context // ends with the last member's interest
	cancel  context.CancelFunc
	members []*member   // without an outcome, in order
	again   []*member   // which are to be alone
	keys    []store.Key // of all

	began   time.Time
	present int // members that have not left; guarded by the line's lock
}

// mayTake reports whether there is room for a member and other joints.
func (j *joint) mayTake(m *member, others []*joint) bool {
	members, keys, alone := len(j.members)+1, len(j.keys)+len(m.Keys), m.Alone || j.members[0].Alone
	for _, other := range others {
		members, keys, alone = members+len(other.members), keys+len(other.keys), alone || other.members[0].Alone
	}
	return !alone && members <= mostMembers && keys <= mostJointKeys
}

// decide has all members decide in order, and reports whether there is anything to commit. Those who have
// dropped theirs behind others depend on these: they wait, too.
func (j *joint) decide(in *Space) (kept bool) {
	in.Shared = len(j.members) > 1
	j.members = slices.DeleteFunc(j.members, func(m *member) bool {
		undo := func() {}
		if in.Shared {
			undo = in.Keys.(store.Restorer).Save()
		}
		switch v, ok := m.offer(in); {
		case !ok:
			return true
		case v == Keep:
			kept = true
			return false
		case v == Again:
			undo()
			j.again = append(j.again, m)
			return true
		default:
			undo()
			if !kept {
				m.outcome <- nil
			}
			return !kept
		}
	})
	return kept
}

// lose tells the members of a conflict.
func (j *joint) lose() {
	j.members = slices.DeleteFunc(j.members, func(m *member) bool { _, ok := m.offer(nil); return !ok })
}

// finish ends all members.
func (j *joint) finish(err error) {
	for _, m := range j.members {
		m.outcome <- err
	}
	j.members = nil
}

// broken is a panic of a joint's goroutine, for those of its members.
type broken struct{ error }

// recovered has the members panic in the joint's place: that ends their connections, not the process.
func (j *joint) recovered(value any) {
	if value != nil {
		j.finish(broken{fmt.Errorf("%v\n%s", value, debug.Stack())})
	}
}
