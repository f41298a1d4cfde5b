package metrics

import (
	"math"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

func (c *Config) collectPersistence(to sink) {
	status := c.Persistence
	to.truth("persistence_enabled", "1 with --data-dir; 0 without it, when a restart forgets all keys and there are no further persistence metrics.", status != nil)
	if status == nil {
		return
	}
	st := status()
	to.truth("persistence_loading", "1 while the data directory is loading and clients must wait.", st.Loading)
	to.value("persistence_loaded_keys", "Keys loaded at the start.", float64(st.LoadedKeys))
	to.seconds("persistence_load_duration_seconds", "Duration of loading at the start in seconds; 0 until it is done.", st.LoadTookNs)
	to.seconds("clock_offset_seconds", "Seconds by which the server's clock is ahead of the wall clock, which went back while the server was down.", st.ClockOffsetNs)

	to.seconds("persistence_sync_interval_seconds", "Value of --fsync-interval in seconds: 0 syncs before each reply, -1 leaves syncs to the system.", syncIntervalNs(&st))
	to.truth("persistence_disk_fault", "1 while changes do not reach the disk, until a new snapshot is complete.", st.Fault != nil)
	to.counter("persistence_disk_faults_total", "Failed writes and syncs.", st.Faults)
	to.seconds("persistence_lag_seconds", "Seconds since all changes were on the disk; normally at most the sync interval plus one sync.", lagNs(&st, c.Now()))
	to.counter("persistence_syncs_total", "Syncs of the log.", st.Syncs)
	to.seconds("persistence_last_sync_duration_seconds", "Duration of the last sync of the log in seconds.", st.LastSyncTookNs)
	to.counter("persistence_records_total", "Changes written to the log.", st.Records)
	to.counter("persistence_written_bytes_total", "Bytes written to the log and to snapshots.", st.WrittenBytes)
	to.value("persistence_waiting_replies", "Replies held back until a sync.", float64(st.WaitingReplies))
	to.value("persistence_log_bytes", "Size of the log that a start would read, in bytes.", float64(st.LogBytes))

	to.truth("persistence_snapshot_in_progress", "1 while a snapshot is being written.", st.Saving)
	to.truth("persistence_last_snapshot_failed", "1 if the last snapshot failed.", st.LastSaveErr != nil)
	to.counter("persistence_snapshots_total", "Snapshots completed.", st.Saves)
	to.seconds("persistence_last_snapshot_timestamp_seconds", "Unix time of the last completed snapshot; 0 if none since the start.", st.LastSaveNs)
	to.seconds("persistence_last_snapshot_duration_seconds", "Duration of the last snapshot in seconds; 0 if none since the start.", max(0, st.LastSaveTookNs))
	to.value("persistence_snapshot_bytes", "Size of the snapshot that a start would read, in bytes.", float64(st.SnapshotBytes))
}

func syncIntervalNs(st *store.Durability) int64 {
	if st.Interval == store.NoSync {
		return -int64(time.Second)
	}
	return int64(st.Interval)
}

// lagNs is 0 before the first sync: nothing changes while the directory loads.
func lagNs(st *store.Durability, nowNs int64) int64 {
	if st.SyncedNs == 0 {
		return 0
	}
	return max(0, nowNs-st.SyncedNs)
}

func (to sink) seconds(name, help string, ns int64) { to.value(name, help, float64(ns)/1e9) }

// collectRemote has series for each server of the store, which the operator or the cluster names.
func (c *Config) collectRemote(to sink) {
	status := c.Remote
	to.truth("store_remote", "1 if --store is on other machines; 0 if it is this server's memory, without further store metrics.", status != nil)
	if status == nil {
		return
	}
	st := status()
	to.truth("store_up", "1 if any server of the store answered the last check, a second or two ago.", st.Up > 0)
	to.gauge("store_masters", "Servers of the store that decide: 1, or the masters of a cluster; 0 until its slots are known.", st.Masters)
	to.gauge("store_masters_up", "Deciding servers of the store that answered the last check.", st.Up)
	to.gauge("store_keys", "Keys on the store's servers at the last check, other programs' keys included.", st.Keys)
	policy := desc("store_policy_info", "Always 1; the label gives --on-store-error.", "policy")
	to.series(policy, prometheus.GaugeValue, 1, st.Policy.String())
	to.remoteRequests(&st.Stats)
	to.remoteFailures(&st.Stats)
	to.remoteServers(&st)
}

func (to sink) remoteRequests(st *store.RemoteStats) {
	to.counter("store_requests_total", "Limiter requests that reached the store's client.", st.Requests)
	to.counter("store_asked_total", "Limiter requests sent to a server of the store.", st.Asked)
	to.counter("store_joined_total", "Limiter requests decided by the script call of another on the same key.", st.Joined)
	to.counter("store_prefiltered_total", "Limiter requests denied locally by a state of the key read less than a second before.", st.Prefiltered)
	to.counter("store_scripts_total", "Script calls sent to the store.", st.Scripts)
	to.counter("store_pipelines_total", "Pipelines of script calls sent to the store.", st.Pipelines)
	to.gauge("store_waiting_requests", "Requests waiting for the store.", st.Waiting)
	to.gauge("store_waiting_bytes", "Key bytes of the requests waiting for the store.", st.WaitingBytes)
}

func (to sink) remoteFailures(st *store.RemoteStats) {
	labelled(to, "store_resent_total", "Script calls sent again because the server had certainly not executed them.", "reason", st.Resent)
	labelled(to, "store_failures_total", "Requests and other commands the store failed to execute, by reason. "+
		"--on-store-error decides limiter requests, except for wrong_type; other commands fail.", "reason", st.Failed)
	byPolicy := desc("store_policy_decisions_total", "Requests decided by --on-store-error; decisions_total does not count them.", "policy", "outcome")
	for p, n := range st.Policy {
		to.series(byPolicy, prometheus.CounterValue, float64(n.Allowed), p.String(), "allowed")
		to.series(byPolicy, prometheus.CounterValue, float64(n.Limited), p.String(), "denied")
		to.series(byPolicy, prometheus.CounterValue, float64(n.Failed), p.String(), "error")
	}
	to.counter("store_late_answers_total", "Answers of the store that arrived after --on-store-error had decided; the store may have counted them.", st.Late)
}

func (to sink) remoteServers(st *store.Health) {
	queued := desc("store_server_queued_keys", "Keys with requests queued for a server of the store.", "server")
	inFlight := desc("store_server_pipelines_in_flight", "Pipelines a server of the store has not answered yet.", "server")
	roundTrip := desc("store_server_round_trip_seconds", "Moving average of a pipeline's round trip to a server of the store, in seconds.", "server")
	for _, s := range st.Stats.Servers {
		to.series(queued, prometheus.GaugeValue, float64(s.Queued), s.Addr)
		to.series(inFlight, prometheus.GaugeValue, float64(s.InFlight), s.Addr)
		to.series(roundTrip, prometheus.GaugeValue, float64(s.RoundTripNs)/1e9, s.Addr)
	}
}

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
	to.gauge("replication_limits_differ", "Named limits and plans of a replica that are not its leader's, as the files of limits differ.", len(st.Differing))
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
