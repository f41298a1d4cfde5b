package replication

import (
	"context"
	"errors"
	"time"

	"cellserver/internal/store/gate"
	"cellserver/internal/store/replicas"
)

// oldBound bounds a planned change to a replica of an older version, which takes over then, in any case.
const oldBound = time.Second

// handover is a planned change of the leader, on the old one.
type handover struct {
	node  *Node
	to    *replica
	asker int64 // the client that asks, and takes over; 0 for a replica of an older version
	drain *waiter
	late  *time.Timer
	done  func(clockNs int64, frames []byte, err error)
}

// HandOver implements replicas.Server. The change ends by TakeOver; after the bound this server goes on,
// unless the replica leads. A replica of an older version acknowledges by its link, and takes over as it is
// if that takes more than a second.
func (n *Node) HandOver(q replicas.Handover, done func(clockNs int64, frames []byte, err error)) {
	refuse := func(err error) { go done(0, nil, err) }
	n.mu.Lock()
	defer n.unlock()
	switch {
	case n.role.handsOver():
		refuse(replicas.ErrHandingOver)
		return
	case n.role.state != leading:
		refuse(replicas.ErrNotLeader)
		return
	}
	knows := q.Within == 0 || q.History == n.history && n.backlog.has(q.Offset)
	for _, r := range n.replicas {
		if r.online && q.To.Port != 0 && r.client.Address == q.To && knows {
			n.beginHandoverLocked(r, &q, done)
			return
		}
	}
	refuse(replicas.ErrNoSuchReplica)
}

func (n *Node) beginHandoverLocked(r *replica, q *replicas.Handover, done func(clockNs int64, frames []byte, err error)) {
	n.config.Log.Info("handing over to a replica", "replica", r.client.Address.String(), "offset", n.backlog.end)
	h := &handover{node: n, to: r, done: done}
	n.handing = h
	n.role.take(onHandOver)
	n.config.EndTurns()
	n.config.Gate.Hold()
	n.config.Gate.Close(gate.Replica, 0, n.readOnlyLocked(r.client.Address))
	if q.Within == 0 {
		h.late = time.AfterFunc(oldBound, func() { h.end(replicas.ErrHandedLate) })
		h.drain = &waiter{target: -1, replicas: 1, only: r, done: func() { h.end(nil) }}
	} else {
		h.asker = q.Client
		h.late = time.AfterFunc(min(q.Within, replicas.Bound(replicas.MostRoundTrip)), h.settle)
		h.drain = &waiter{target: -1, done: func() { h.answer(q.Offset) }}
	}
	n.waiters[h.drain] = struct{}{}
	n.kick()
}

// answer sends what the replica does not have, once a round has everything.
func (h *handover) answer(offset int64) {
	n := h.node
	n.mu.Lock()
	if n.handing != h || !n.role.take(onAnswer) {
		n.unlock()
		return
	}
	clockNs, frames := n.restLocked(offset)
	n.unlock()
	h.done(clockNs, frames, nil)
}

func (n *Node) restLocked(offset int64) (clockNs int64, frames []byte) {
	frames, _ = n.backlog.from(nil, offset, takeBytes)
	return max(n.config.Clock.Now(), n.latestNs), frames
}

func (n *Node) TakeOver(client, offset int64) (clockNs int64, frames []byte, err error) {
	n.mu.Lock()
	h := n.handing
	switch {
	case h == nil || h.asker != client || n.role.state != answered:
		err = replicas.ErrNoHandover
	case !n.backlog.has(offset):
		err = replicas.ErrBehind
	case offset != n.backlog.end:
		clockNs, frames = n.restLocked(offset)
	}
	n.unlock()
	if err == nil && len(frames) == 0 && !h.end(nil) {
		err = replicas.ErrNoHandover
	}
	return clockNs, frames, err
}

// settle ends a change without a word: the replica leads, as this server was silent for it, or follows.
// Nothing but a word of this server has it lead otherwise, so that the change is over.
func (h *handover) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), loginTime)
	defer cancel()
	other, err := h.node.Ask(ctx, h.to.client.Address)
	if err == nil && other.Role == replicas.Leader && !other.Loading {
		h.end(replicas.ErrHandedLate)
		return
	}
	h.end(replicas.ErrReplicaGone)
}

// gone ends the change by what the replica says, as its connection has ended. The Node is locked.
func (h *handover) gone() {
	h.late.Stop()
	if h.asker != 0 {
		go h.settle()
		return
	}
	go func() { h.end(h.node.becomes(h.to.client.Address)) }()
}

// becomes asks a replica of an older version that has left during a change: it leads, by order, or is
// gone. It waits for its change to end.
func (n *Node) becomes(to replicas.Address) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*oldBound)
	defer cancel()
	for ctx.Err() == nil {
		other, err := n.Ask(ctx, to)
		switch {
		case err != nil:
			return replicas.ErrReplicaGone
		case other.Role == replicas.Leader && !other.Loading:
			return replicas.ErrHandedLate
		}
		pause(ctx, leastRetry)
	}
	return replicas.ErrReplicaGone
}

// end ends the change: this server follows the replica, or goes on. It reports whether it has ended it so.
func (h *handover) end(err error) bool {
	n, to := h.node, h.to.client.Address
	n.mu.Lock()
	if n.handing != h {
		n.unlock()
		return false
	}
	release, goesOn := h.detachLocked(), errors.Is(err, replicas.ErrReplicaGone)
	if goesOn {
		n.role.take(onFail)
		n.doubted = to // it may lead yet
		n.counts.HandoverFailures++
		n.config.Gate.Open(gate.Replica)
	} else {
		n.giveLocked(to, err)
	}
	n.unlock()
	if goesOn {
		n.config.Log.Warn("the handover has failed", "error", err)
		release(err)
		return false
	}
	n.keepRoleFirst(changeWait) // a start after a crash must not find one that leads
	n.config.Log.Info("handed over; this server follows the new leader", "leader", to.String(), "complete", err == nil)
	release(err)
	n.config.KillClients()
	return true
}

// detachLocked ends the change for the Node. The function that it returns lets clients go on, without the
// lock.
func (h *handover) detachLocked() (release func(err error)) {
	n := h.node
	wasAnswered := n.role.state == answered
	h.late.Stop()
	n.handing = nil
	delete(n.waiters, h.drain)
	return func(err error) {
		n.config.Gate.Release()
		if !wasAnswered {
			h.done(0, nil, err)
		}
	}
}

// giveLocked has this server follow a replica, which has everything if there is no error.
func (n *Node) giveLocked(to replicas.Address, err error) {
	n.gave = true
	if err == nil {
		n.counts.Handovers++
		n.orderLocked(onTakeOver, to)
	} else {
		n.counts.HandoverTimeouts++
		n.orderLocked(onLate, to)
	}
}

func (n *Node) Measured(to replicas.Address, roundTrip time.Duration) {
	n.mu.Lock()
	defer n.unlock()
	for _, r := range n.replicas {
		if r.client.Address == to {
			r.roundTrip = roundTrip
		}
	}
}

func (n *Node) slowestLocked() (longest time.Duration) {
	for _, r := range n.replicas {
		longest = max(longest, r.roundTrip)
	}
	return longest
}
