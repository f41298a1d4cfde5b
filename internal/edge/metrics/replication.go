package metrics

import (
	"math"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"cellserver/internal/store/replicas"
)

const (
	// maxReplicaSeries bounds the replicas with series of their own.
	maxReplicaSeries = 16
	// maxReplicaName bounds the address that a replica announces, in bytes.
	maxReplicaName = 255
)

// collectReplication sends the state of replication. A store on other machines has none.
func (c *Config) collectReplication(to sink) {
	if c.Replication == nil {
		return
	}
	st := c.Replication()
	role := desc("replication_role", "1 for the server's role, 0 for the other one: leader or replica.", "role")
	for _, r := range []replicas.Role{replicas.Leader, replicas.Replica} {
		to.series(role, prometheus.GaugeValue, number(st.Role == r), r.String())
	}
	to.value("replication_offset_bytes", "Bytes of the stream of changes so far: gathered by a leader, applied by a replica.", float64(st.Offset))
	to.value("replication_backlog_bytes", "Bytes of the stream that can be sent again to a replica that was away.", float64(st.Backlog))
	to.value("replication_backlog_max_bytes", "Maximum of replication_backlog_bytes (--repl-backlog).", float64(st.MaxBacklog))
	to.truth("replication_handing_over", "1 during a planned change of leader.", st.HandingOver)
	to.seconds("replication_round_trip_seconds", "Round trip of the link to the leader, and of a leader's slowest replica; 0 before it is measured.", int64(st.RoundTrip))
	to.truth("replication_peer_leads", "1 while the other server of the pair leads, too, and neither's states go on from the other's: one has to follow by REPLICAOF.", st.PeerLeads)
	if st.Role == replicas.Leader {
		to.leader(&st)
	} else {
		to.replica(&st)
	}
	to.replicationCounts(&st.Counts)
}

// leader sends what only a leader has.
func (to sink) leader(st *replicas.Status) {
	to.gauge("replication_connected_replicas", "Replicas connected to the leader.", len(st.Replicas))
	to.gauge("replication_good_replicas", "Replicas that are complete and within --min-replicas-max-lag.", st.Good)
	to.gauge("replication_min_replicas", "Good replicas required to accept changes (--min-replicas-to-write); 0 if none are.", st.MinReplicas)
	to.truth("replication_changes_refused", "1 while changes are refused for lack of good replicas.", st.Good < st.MinReplicas)
	online := desc("replication_replica_online", "1 for a replica that follows the changes; 0 while it takes all states.", "replica")
	bytes := desc("replication_replica_lag_bytes", "Bytes of the stream that a replica has not acknowledged.", "replica")
	seconds := desc("replication_replica_lag_seconds", "Seconds since a replica's last acknowledgement.", "replica")
	shown := replicasByName(st.Replicas)
	for _, r := range shown {
		to.series(online, prometheus.GaugeValue, number(r.State == replicaOnline), r.name)
		to.series(bytes, prometheus.GaugeValue, float64(r.LagBytes), r.name)
		to.series(seconds, prometheus.GaugeValue, float64(r.LagNs)/1e9, r.name)
	}
	to.gauge("replication_replicas_left_out", "Replicas without series of their own: those beyond 16, and those that announce another's address.",
		len(st.Replicas)-len(shown))
}

const replicaOnline = "online" // ReplicaStatus.State

// namedReplica is a replica with its label.
type namedReplica struct {
	name string
	*replicas.ReplicaStatus
}

// replicasByName returns at most maxReplicaSeries replicas, the oldest first, of each address the newest: an
// older connection from there is most likely dead. A replica announces its address, so it may be any text.
func replicasByName(all []replicas.ReplicaStatus) (shown []namedReplica) {
	at := map[string]int{}
	for i := range all {
		name := strings.ToValidUTF8(all[i].Address.String(), "\ufffd")
		if len(name) > maxReplicaName {
			name = strings.ToValidUTF8(name[:maxReplicaName], "")
		}
		if before, ok := at[name]; ok {
			shown[before].ReplicaStatus = &all[i]
		} else if len(shown) < maxReplicaSeries {
			at[name] = len(shown)
			shown = append(shown, namedReplica{name, &all[i]})
		}
	}
	return shown
}

// replica sends what only a replica has.
func (to sink) replica(st *replicas.Status) {
	to.truth("replication_link_up", "1 while a replica follows its leader's changes; 0 while it takes all states, or is not connected.", st.Link == replicas.LinkConnected)
	if st.LagNs != math.MaxInt64 {
		to.seconds("replication_lag_seconds", "Seconds since a replica was known to have all changes of its leader; absent before it first had.", st.LagNs)
	}
	to.value("replication_sync_received_bytes", "Bytes received of a full sync under way; 0 without one.", float64(st.SyncBytes))
}

func (to sink) replicationCounts(n *replicas.Counts) {
	syncs := desc("replication_full_syncs_total", "Full syncs, in which a replica takes all states, by direction: given to a replica, or taken from a leader.", "direction")
	to.count(syncs, n.FullSyncs, "given")
	to.count(syncs, n.FullSyncsTaken, "taken")
	to.counter("replication_partial_syncs_total", "Replicas that went on from the backlog.", n.PartialSyncs)
	to.counter("replication_incomplete_rounds_total", "Rounds of changes that made replicas take all states, as more keys were gone than were noted.", n.Incomplete)
	to.counter("replication_evicted_replicas_total", "Replicas disconnected because they were too slow, or silent.", n.Evicted)
	to.counter("replication_promotions_total", "Times that the server became a leader.", n.Promotions)
	to.counter("replication_demotions_total", "Times that the server became a replica.", n.Demotions)
	handovers := desc("replication_handovers_total", "Planned changes of leader by outcome: clean, without a loss; timeout, which is as a crash of the leader; or failed: the leader leads on. Both servers count it.", "outcome")
	to.count(handovers, n.Handovers, "clean")
	to.count(handovers, n.HandoverTimeouts, "timeout")
	to.count(handovers, n.HandoverFailures, "failed")
	to.counter("replication_refusals_total", "Times that changes began to be refused for lack of good replicas.", n.RefusedWithout)
}
