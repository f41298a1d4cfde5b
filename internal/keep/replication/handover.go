package replication

import (
	"context"
	"errors"
	"time"

	"cellserver/internal/store/gate"
	"cellserver/internal/store/replicas"
)

// handoverTime bounds a planned change: the replica takes over then, in any case.
const handoverTime = time.Second

// handover is a planned change of the leader, on the old one.
type handover struct {
	node  *Node
	to    *replica
	drain *waiter
	late  *time.Timer
	done  func(err error)
	ended bool
}

// HandOver makes the replica at an address the leader: changes are held, the replica takes everything, and
// this server follows it. done is called once, from any goroutine, when the replica may lead; not if its
// error is ErrReplicaGone. If it takes more than a second, the replica takes over as it is.
func (n *Node) HandOver(to replicas.Address, done func(err error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.role != replicas.Leader || n.wanted.leader != (replicas.Address{}):
		go done(replicas.ErrNotLeader)
		return
	case n.handing != nil:
		go done(replicas.ErrHandingOver)
		return
	}
	for _, r := range n.replicas {
		if r.online && to.Port != 0 && r.client.Address == to {
			n.beginHandoverLocked(r, done)
			return
		}
	}
	go done(replicas.ErrNoSuchReplica)
}

func (n *Node) beginHandoverLocked(r *replica, done func(err error)) {
	n.config.Log.Info("handing over to a replica", "replica", r.client.Address.String(), "offset", n.backlog.end)
	h := &handover{node: n, to: r, done: done}
	n.handing = h
	n.config.EndTurns()
	n.config.Gate.Hold()
	n.config.Gate.Close(gate.Replica, 0, n.readOnlyLocked(r.client.Address))
	h.late = time.AfterFunc(handoverTime, func() { h.end(replicas.ErrHandedLate) })
	h.drain = &waiter{target: -1, replicas: 1, only: r, done: func() { h.end(nil) }}
	n.waiters[h.drain] = struct{}{}
	n.kick()
}

// gone ends the change by what the replica says, as its connection has ended. The Node is locked.
func (h *handover) gone() {
	h.late.Stop()
	go func() { h.end(h.node.becomes(h.to.client.Address)) }()
}

// becomes asks a replica that has left during a change: it leads, as it was told to, or is gone. It waits for
// its change to end.
func (n *Node) becomes(to replicas.Address) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*handoverTime)
	defer cancel()
	for ctx.Err() == nil {
		other, err := n.Ask(ctx, to)
		switch {
		case err != nil:
			return replicas.ErrReplicaGone
		case other.Role == replicas.Leader && !other.Loading:
			return replicas.ErrHandedLate
		}
		select {
		case <-ctx.Done():
		case <-time.After(leastRetry):
		}
	}
	return replicas.ErrReplicaGone
}

// end ends the change: this server follows the replica, or goes on.
func (h *handover) end(err error) {
	n := h.node
	n.mu.Lock()
	if h.ended {
		n.mu.Unlock()
		return
	}
	h.ended = true
	h.late.Stop()
	n.handing = nil
	delete(n.waiters, h.drain)
	switch {
	case n.wanted.leader != (replicas.Address{}): // somebody else has said whom to follow
		n.mu.Unlock()
	case errors.Is(err, replicas.ErrReplicaGone):
		n.config.Gate.Open(gate.Replica)
		n.mu.Unlock()
		n.config.Log.Warn("the handover has failed", "error", err)
	default:
		n.handed = err == nil
		n.wantLocked(h.to.client.Address)
		n.mu.Unlock()
		n.KeepRole()
		n.config.Log.Info("handed over; this server follows the new leader", "leader", h.to.client.Address.String(), "complete", err == nil)
	}
	n.config.Gate.Release()
	h.done(err)
	if !errors.Is(err, replicas.ErrReplicaGone) {
		n.config.KillClients()
	}
}
