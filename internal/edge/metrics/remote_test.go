package metrics

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/store"
)

// remoteStatus is a cluster with one of three masters down.
func remoteStatus() store.Health {
	return store.Health{
		Policy: store.FallbackAllow, Asked: true, Masters: 3, Up: 2, Fault: errors.New("192.0.2.1:7000: no answer in time"), Keys: 12,
		Stats: store.RemoteStats{
			Requests: 100, Asked: 60, Joined: 20, Scripts: 40, Pipelines: 10, Prefiltered: 25, Late: 1,
			Resent: map[store.Reason]uint64{servers.Cluster: 3}, Failed: map[store.Reason]uint64{servers.Timeout: 4, servers.WrongType: 2},
			Policy: map[store.Fallback]store.Decided{store.FallbackLocal: {Allowed: 4, Limited: 3, Failed: 1}, store.FallbackError: {}}, Waiting: 5, WaitingBytes: 50,
			Servers: []store.ServerStats{{Addr: "192.0.2.1:7000", Queued: 6, InFlight: 7, RoundTripNs: 2_000_000, Circuit: "open"}},
		},
	}
}

func TestRemote(t *testing.T) {
	newHarness(func(c *Config) { c.Remote = remoteStatus }).expect(t, []figure{
		{"store_remote", nil, 1}, {"store_up", nil, 1}, {"store_masters", nil, 3}, {"store_masters_up", nil, 2}, {"store_keys", nil, 12}, {"store_policy_info", []string{"allow"}, 1},
		{"store_requests_total", nil, 100}, {"store_asked_total", nil, 60}, {"store_joined_total", nil, 20}, {"store_scripts_total", nil, 40}, {"store_pipelines_total", nil, 10},
		{"store_prefiltered_total", nil, 25}, {"store_late_answers_total", nil, 1},
		{"store_resent_total", []string{"cluster"}, 3}, {"store_failures_total", []string{"timeout"}, 4}, {"store_failures_total", []string{"wrong_type"}, 2},
		{"store_policy_decisions_total", []string{"allowed", "local"}, 4}, {"store_policy_decisions_total", []string{"denied", "local"}, 3},
		{"store_policy_decisions_total", []string{"error", "local"}, 1}, {"store_policy_decisions_total", []string{"error", "error"}, 0},
		{"store_waiting_requests", nil, 5}, {"store_waiting_bytes", nil, 50}, {"store_server_queued_keys", []string{"192.0.2.1:7000"}, 6},
		{"store_server_pipelines_in_flight", []string{"192.0.2.1:7000"}, 7}, {"store_server_round_trip_seconds", []string{"192.0.2.1:7000"}, 0.002},
	}...)
}

// TestStoreIsDown checks a store of which no server answers, and one that was not asked yet.
func TestStoreIsDown(t *testing.T) {
	for _, st := range []store.Health{{}, {Asked: true, Masters: 1, Fault: errors.New("unreachable")}} {
		newHarness(func(c *Config) { c.Remote = func() store.Health { return st } }).expect(t, figure{"store_up", nil, 0})
	}
}

// TestAbsentFeatures checks that a feature in no use has one series, which says so.
func TestAbsentFeatures(t *testing.T) {
	for name, f := range newHarness().gather(t) {
		for prefix, only := range map[string]string{"cellserver_store_": "remote", "cellserver_persistence_": "enabled"} {
			if rest, ok := strings.CutPrefix(name, prefix); ok && (rest != only || value(t, f) != 0) {
				t.Errorf("%s: %s", name, f)
			}
		}
	}
}

// TestDegraded checks that a ready server says what it lacks.
func TestDegraded(t *testing.T) {
	h := newHarness(func(c *Config) { c.Degraded = func() []string { return []string{"no disk", "no store"} } })
	if got := h.get("/readyz"); got.Code != http.StatusOK || got.Body.String() != "ok\ndegraded: no disk\ndegraded: no store\n" {
		t.Errorf("got %d, %q", got.Code, got.Body)
	}
	if got := h.get("/healthz"); got.Body.String() != "ok\n" {
		t.Errorf("/healthz: got %q", got.Body)
	}
}
