package metrics

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"cellserver/internal/store/replicas"
)

var counts = replicas.Counts{
	FullSyncs: 1, PartialSyncs: 2, Incomplete: 3, Evicted: 4, FullSyncsTaken: 5, Promotions: 6, Demotions: 7, Handovers: 8, HandoverTimeouts: 9, RefusedWithout: 10, HandoverFailures: 11,
}

// leaderStatus is a leader with two replicas, one of which takes all states.
func leaderStatus() replicas.Status {
	return replicas.Status{
		Role: replicas.Leader, Offset: 5000, Backlog: 4000, MaxBacklog: 16 << 20, MinReplicas: 2, Good: 1, HandingOver: true, RoundTrip: 250 * time.Millisecond, PeerLeads: true, Counts: counts,
		Replicas: []replicas.ReplicaStatus{
			{Address: replicas.Address{Host: "192.0.2.2", Port: 6380}, State: "online", Offset: 4900, LagBytes: 100, LagNs: 30_000_000},
			{Address: replicas.Address{Host: "2001:db8::3", Port: 6380}, State: "send_bulk", LagBytes: 5000, LagNs: 2_000_000_000},
		},
	}
}

// replicaStatus is a replica that takes all states.
func replicaStatus() replicas.Status {
	return replicas.Status{
		Role: replicas.Replica, Offset: 4900, Leader: replicas.Address{Host: "192.0.2.1", Port: 6380}, Link: replicas.LinkSync,
		LinkDownSinceNs: 1, LagNs: 2_500_000_000, SyncBytes: 1234, Differing: []string{"api", "plan free"}, LinkError: errors.New("reset"), Counts: counts,
	}
}

func TestReplication(t *testing.T) {
	both := []figure{
		{"replication_full_syncs_total", []string{"given"}, 1}, {"replication_full_syncs_total", []string{"taken"}, 5}, {"replication_partial_syncs_total", nil, 2},
		{"replication_incomplete_rounds_total", nil, 3}, {"replication_evicted_replicas_total", nil, 4}, {"replication_promotions_total", nil, 6}, {"replication_demotions_total", nil, 7},
		{"replication_handovers_total", []string{"clean"}, 8}, {"replication_handovers_total", []string{"timeout"}, 9}, {"replication_handovers_total", []string{"failed"}, 11}, {"replication_refusals_total", nil, 10},
	}
	leader := newHarness(func(c *Config) { c.Replication = leaderStatus })
	leader.expect(t, append(both, []figure{
		{"replication_role", []string{"leader"}, 1}, {"replication_role", []string{"replica"}, 0}, {"replication_offset_bytes", nil, 5000},
		{"replication_backlog_bytes", nil, 4000}, {"replication_backlog_max_bytes", nil, 16 << 20}, {"replication_handing_over", nil, 1}, {"replication_round_trip_seconds", nil, 0.25}, {"replication_peer_leads", nil, 1},
		{"replication_connected_replicas", nil, 2}, {"replication_good_replicas", nil, 1}, {"replication_min_replicas", nil, 2}, {"replication_changes_refused", nil, 1},
		{"replication_replica_online", []string{"192.0.2.2:6380"}, 1}, {"replication_replica_lag_bytes", []string{"192.0.2.2:6380"}, 100},
		{"replication_replica_lag_seconds", []string{"192.0.2.2:6380"}, 0.03}, {"replication_replica_online", []string{"[2001:db8::3]:6380"}, 0},
		{"replication_replica_lag_seconds", []string{"[2001:db8::3]:6380"}, 2}, {"replication_replicas_left_out", nil, 0},
	}...)...)
	replica := newHarness(func(c *Config) { c.Replication = replicaStatus })
	replica.expect(t, append(both, []figure{
		{"replication_role", []string{"leader"}, 0}, {"replication_role", []string{"replica"}, 1}, {"replication_offset_bytes", nil, 4900},
		{"replication_link_up", nil, 0}, {"replication_lag_seconds", nil, 2.5}, {"replication_sync_received_bytes", nil, 1234}, {"replication_limits_differ", nil, 2}, {"replication_handing_over", nil, 0}, {"replication_round_trip_seconds", nil, 0}, {"replication_peer_leads", nil, 0},
	}...)...)
	for name, not := range map[string]*harness{"link_up": leader, "limits_differ": leader, "connected_replicas": replica, "changes_refused": replica, "replica_online": replica} {
		if f := not.gather(t)["cellserver_replication_"+name]; f != nil {
			t.Errorf("of the other role: %s", f)
		}
	}
	for name := range newHarness().gather(t) {
		if strings.HasPrefix(name, "cellserver_replication_") {
			t.Errorf("of a store on other machines: %s", name)
		}
	}
}

func TestLinkIsUp(t *testing.T) {
	for link, want := range map[replicas.Link]float64{
		replicas.LinkConnect: 0, replicas.LinkConnecting: 0, replicas.LinkSync: 0, replicas.LinkConnected: 1,
	} {
		h := newHarness(func(c *Config) {
			c.Replication = func() replicas.Status {
				return replicas.Status{Role: replicas.Replica, Link: link, LagNs: math.MaxInt64}
			}
		})
		h.expect(t, figure{"replication_link_up", nil, want})
		if f := h.gather(t)["cellserver_replication_lag_seconds"]; f != nil {
			t.Errorf("a lag before the first states: %s", f)
		}
	}
}

// TestReplicaNames checks that no address that replicas announce breaks a scrape or adds series without a
// bound.
func TestReplicaNames(t *testing.T) {
	at := func(host string, lagBytes int64) replicas.ReplicaStatus {
		return replicas.ReplicaStatus{Address: replicas.Address{Host: host, Port: 6380}, State: "online", LagBytes: lagBytes}
	}
	all := []replicas.ReplicaStatus{at("twice", 1), at("\xff\"\n", 2), at("twice", 3), {LagBytes: 4}, at(strings.Repeat("é", 1000), 5)}
	for i := range 30 {
		all = append(all, at(fmt.Sprintf("10.0.0.%d", i), 6))
	}
	h := newHarness(func(c *Config) {
		c.Replication = func() replicas.Status { return replicas.Status{Replicas: all} }
	})
	if answer := h.get("/metrics"); answer.Code != http.StatusOK {
		t.Fatalf("got %d, %s", answer.Code, answer.Body)
	}
	h.expect(t, figure{"replication_replica_lag_bytes", []string{"twice:6380"}, 3}, figure{"replication_replica_lag_bytes", []string{"\ufffd\"\n:6380"}, 2},
		figure{"replication_replica_lag_bytes", []string{""}, 4}, figure{"replication_connected_replicas", nil, 35}, figure{"replication_replicas_left_out", nil, 19})
	series := h.gather(t)["cellserver_replication_replica_online"].GetMetric()
	if len(series) != maxReplicaSeries {
		t.Errorf("%d series, want %d", len(series), maxReplicaSeries)
	}
	for _, m := range series {
		if name := m.GetLabel()[0].GetValue(); len(name) > maxReplicaName {
			t.Errorf("a label of %d bytes", len(name))
		}
	}
}
