package metrics

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/store"
)

// remoteStatus is a cluster of which one of three masters is away.
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

// TestRemote: what a store on other machines does, and what it did not.
func TestRemote(t *testing.T) {
	all := newRig(func(c *Config) { c.Remote = remoteStatus }).gather(t)
	for _, tt := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"remote", nil, 1}, {"up", nil, 1}, {"masters", nil, 3}, {"masters_up", nil, 2}, {"keys", nil, 12}, {"policy_info", []string{"allow"}, 1},
		{"requests_total", nil, 100}, {"asked_total", nil, 60}, {"joined_total", nil, 20}, {"scripts_total", nil, 40}, {"pipelines_total", nil, 10},
		{"prefiltered_total", nil, 25}, {"late_answers_total", nil, 1},
		{"resent_total", []string{"cluster"}, 3}, {"failures_total", []string{"timeout"}, 4}, {"failures_total", []string{"wrong_type"}, 2},
		{"policy_decisions_total", []string{"allowed", "local"}, 4}, {"policy_decisions_total", []string{"denied", "local"}, 3},
		{"policy_decisions_total", []string{"error", "local"}, 1}, {"policy_decisions_total", []string{"error", "error"}, 0},
		{"waiting_requests", nil, 5}, {"waiting_bytes", nil, 50}, {"server_queued_keys", []string{"192.0.2.1:7000"}, 6},
		{"server_pipelines_in_flight", []string{"192.0.2.1:7000"}, 7}, {"server_round_trip_seconds", []string{"192.0.2.1:7000"}, 0.002},
	} {
		if got := value(t, all["cellserver_store_"+tt.name], tt.labels...); got != tt.want {
			t.Errorf("%s %q: got %g, want %g", tt.name, tt.labels, got, tt.want)
		}
	}
}

// TestRemoteAway: a store that no server of answers, and one that was not asked yet, are not up.
func TestRemoteAway(t *testing.T) {
	for _, st := range []store.Health{{}, {Asked: true, Masters: 1, Fault: errors.New("away")}} {
		all := newRig(func(c *Config) { c.Remote = func() store.Health { return st } }).gather(t)
		if got := value(t, all["cellserver_store_up"]); got != 0 {
			t.Errorf("%+v: up is %g", st, got)
		}
	}
}

// TestWithoutRemote: a store in memory has no figures of this kind.
func TestWithoutRemote(t *testing.T) {
	for name, f := range newRig().gather(t) {
		if strings.HasPrefix(name, "cellserver_store_") && (name != "cellserver_store_remote" || value(t, f) != 0) {
			t.Errorf("%s: %s", name, f)
		}
	}
}

// TestDegraded: a server that is ready says what it lacks, and one that is not says why.
func TestDegraded(t *testing.T) {
	r := newRig(func(c *Config) { c.Degraded = func() []string { return []string{"no disk", "no store"} } })
	if got := r.get("/readyz"); got.Code != http.StatusOK || got.Body.String() != "ok\ndegraded: no disk\ndegraded: no store\n" {
		t.Errorf("got %d, %q", got.Code, got.Body)
	}
	if got := r.get("/healthz"); got.Body.String() != "ok\n" {
		t.Errorf("/healthz: got %q", got.Body)
	}
}
