package replication

import (
	"context"
	"time"

	"cellserver/internal/store/replicas"
)

const (
	// peerLook is between two looks whether the peer leads, too.
	peerLook = time.Second
	// circleTime is how long two servers follow each other before one of them leads.
	circleTime = 5 * time.Second
)

// watchOthers looks whether another server leads while this one does, until ctx ends.
func (n *Node) watchOthers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(peerLook):
			n.lookAtOthers(ctx)
		}
	}
}

func (n *Node) lookAtOthers(ctx context.Context) {
	for _, at := range n.mayLead() {
		if other, err := n.Ask(ctx, at); err == nil {
			n.meetLeader(at, &other)
		}
	}
}

// mayLead returns the servers that may lead while this one does: the other one of a pair, and a replica
// that has begun a planned change and not come back.
func (n *Node) mayLead() (others []replicas.Address) {
	n.mu.Lock()
	defer n.unlock()
	if n.role.state != leading {
		n.peerLeads = false
		return nil
	}
	for _, at := range []replicas.Address{n.peer, n.doubted} {
		if at != (replicas.Address{}) && !n.isReplicaLocked(at) {
			others = append(others, at)
		}
	}
	n.peerLeads = n.peerLeads && len(others) > 0
	return others
}

// isReplicaLocked reports whether a replica with an address has asked within the bound.
func (n *Node) isReplicaLocked(at replicas.Address) bool {
	sinceNs := n.config.Clock.Now() - int64(replicas.Bound(n.slowestLocked()))
	for _, r := range n.replicas {
		if r.client.Address == at && r.activeNs >= sinceNs {
			return true
		}
	}
	return false
}

// meetLeader has this server follow a peer that leads with states which go on from its own. If neither goes
// on from the other's, nobody knows which are to be kept.
func (n *Node) meetLeader(peer replicas.Address, other *Other) {
	n.mu.Lock()
	leads := other.Role == replicas.Leader && !other.Loading && other.starting == notStarting && other.RunID != n.config.RunID
	isNewer, isOlder := other.Parent != "" && other.Parent == n.history, n.parent != "" && other.History == n.parent
	was := n.peerLeads
	n.peerLeads = leads && !isNewer && !isOlder
	is := n.peerLeads
	n.unlock()
	switch {
	case leads && isNewer && !isOlder:
		n.config.Log.Warn("two servers lead; the other one's states go on from this server's, which follows it now", "other", peer.String())
		n.Follow(peer)
	case is && !was:
		n.config.Log.Error("two servers lead, and neither's states go on from the other's; have one follow by REPLICAOF, and its own are replaced", "other", peer.String())
	}
}

// endsCircle has this server lead if it and its leader follow each other, as after a planned change whose
// last word was lost, and it is the one. since is when the leader first said that it does not lead.
func (n *Node) endsCircle(ctx context.Context, since *time.Time, leader replicas.Address, err error) bool {
	switch {
	case !isReply(err, notLeader):
		*since = time.Time{}
		return false
	case since.IsZero():
		*since = time.Now()
	}
	if time.Since(*since) < circleTime {
		return false
	}
	other, err := n.Ask(ctx, leader)
	if err != nil || other.Role != replicas.Replica || other.Loading || other.Leader.Port == 0 {
		return false
	}
	self, err := n.Ask(ctx, other.Leader)
	if err != nil || self.RunID != n.config.RunID {
		return false
	}
	n.mu.Lock()
	defer n.unlock()
	if n.role.leader != leader || !n.leadsCircleLocked(&other) {
		return false
	}
	n.config.Log.Warn("this server and its leader follow each other; it leads now", "leader", leader.String())
	n.leadLocked()
	return true
}

// leadsCircleLocked reports whether this server has more than the other one, which says the opposite: states
// at all, of one history the later place, else those that were handed over without a word since.
func (n *Node) leadsCircleLocked(other *Other) bool {
	switch {
	case !n.complete || n.missing:
		return false
	case other.isMissing:
		return true
	case other.History != n.history:
		return n.gave
	case other.Offset != n.backlog.end:
		return n.backlog.end > other.Offset
	}
	return n.config.RunID < other.RunID
}
