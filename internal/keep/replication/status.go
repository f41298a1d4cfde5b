package replication

import (
	"maps"
	"math"
	"slices"

	"cellserver/internal/store/replicas"
)

// published is what Status needs. EXEC asks for it while it holds keys, for which the Gate waits under the
// Node's lock, so that Status must not.
type published struct {
	settings           Settings
	status             replicas.Status // without what depends on the time and on the disk
	replicas           []replicaAt
	lastFullNs         int64
	missing, replacing bool
	complete           bool
}

// replicaAt is a replica's status with the time of its acknowledgement.
type replicaAt struct {
	replicas.ReplicaStatus
	ackNs  int64
	online bool
}

// unlock unlocks the Node, and publishes its state before.
func (n *Node) unlock() {
	n.publishLocked()
	n.mu.Unlock()
}

func (n *Node) publishLocked() {
	p := &published{settings: n.settings, lastFullNs: n.lastFullNs, missing: n.missing, replacing: n.replacing, complete: n.complete}
	st := &p.status
	*st = replicas.Status{
		Role: replicas.Replica, History: n.history, Parent: n.parent, BranchOffset: n.branch, Offset: n.backlog.end,
		Backlog: n.backlog.bytes, MaxBacklog: n.settings.Backlog, Priority: n.settings.Priority,
		MinReplicas: n.settings.MinReplicas, MaxLagNs: int64(n.settings.MaxLag), HandingOver: n.role.handsOver() || n.role.state == requesting,
		HandoverError: n.refusal, RoundTrip: n.trips.longest(), PeerLeads: n.peerLeads, Counts: n.counts,
	}
	if n.role.isLeader() {
		st.Role, st.RoundTrip = replicas.Leader, n.slowestLocked()
		for _, id := range slices.Sorted(maps.Keys(n.replicas)) { // by age
			r := n.replicas[id]
			p.replicas = append(p.replicas, replicaAt{replicas.ReplicaStatus{
				Address: r.client.Address, State: r.state(), Offset: r.acked, LagBytes: n.backlog.end - r.acked, ClientID: id,
			}, r.ackNs, r.online})
		}
	} else {
		st.Leader, st.Link, st.LinkDownSinceNs, st.LastIONs = n.leader, n.link, n.downNs, n.lastIONs
		st.SyncBytes, st.LinkError, st.LatestNs = n.syncBytes, n.linkErr, n.latestNs
	}
	n.published.Store(p)
}

// Settings returns the present ones.
func (n *Node) Settings() Settings { return n.published.Load().settings }

func (n *Node) Status() replicas.Status {
	p := n.published.Load()
	st, nowNs := p.status, n.config.Clock.Now()
	st.Kept = n.statusOfKept(p.missing, p.replacing)
	if st.Role == replicas.Leader {
		for _, r := range p.replicas {
			if r.LagNs = max(0, nowNs-r.ackNs); r.online && r.LagNs <= st.MaxLagNs {
				st.Good++
			}
			st.Replicas = append(st.Replicas, r.ReplicaStatus)
		}
		return st
	}
	if st.LagNs = math.MaxInt64; p.lastFullNs > 0 {
		st.LagNs = max(0, nowNs-p.lastFullNs)
	}
	if !p.complete || st.Kept == replicas.KeptLater || st.Kept == replicas.Missing {
		st.Priority = 0
	}
	return st
}
