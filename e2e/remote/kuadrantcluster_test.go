package remote

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cellserver/e2e/harness"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/redistest"
)

// TestReservationsOverACluster: limits in different slots hold nothing together, and a commit charges each by
// itself.
func TestReservationsOverACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	racetest.OneAtATime(t)
	on, rules := redistest.Cluster(t), t.TempDir()
	const text = "domain: d\nall_or_nothing: true\ndescriptors:\n" +
		"- {key: day, rate_limit: {unit: year, requests_per_unit: 1000}}\n" +
		"- {key: fixed, rate_limit: {unit: year, requests_per_unit: 1000, algorithm: fixed_window}}\n" +
		"- {key: bucket, rate_limit: {unit: year, requests_per_unit: 1000, algorithm: token_bucket}}\n"
	if err := os.WriteFile(filepath.Join(rules, "d.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := startRemote(t, on.URL(), "--store-timeout", "1m", "--grpc-addr", "127.0.0.1:0", "--envoy-config", rules)
	awaitStore(t, p, 1)
	client := harness.NewKuadrant(t, p, "d", "1")
	harness.WhileHeld(t, func(r *harness.Round) {
		client.Value = r.Value
		keys, ids := []string{"day", "fixed", "bucket"}, map[string]string{}
		for _, key := range keys {
			id, err := client.Reserve(t.Context(), 400, time.Minute, key)
			if ids[key] = id; id == "" || err != nil {
				t.Fatalf("%s: reserved %q, %v", key, id, err)
			}
			client.ExpectLeft(r, 600, key)
		}
		if id, err := client.Reserve(t.Context(), 100, time.Minute, keys...); id != "" || status.Code(err) != codes.InvalidArgument {
			r.Errorf("reserved in several slots: %q, %v", id, err)
		}
		if _, err := client.Left(t.Context(), keys...); status.Code(err) != codes.FailedPrecondition {
			r.Errorf("asked all or nothing in several slots: %v", err)
		}
		for _, key := range keys { // the others are charged
			if released, err := client.Commit(t.Context(), ids[key], 10, keys...); !released || err != nil {
				r.Errorf("released %t, %v", released, err)
			}
		}
		if released, err := client.Commit(t.Context(), ids["day"], 10, keys...); released || err != nil {
			r.Errorf("released again %t, %v", released, err)
		}
		for _, key := range keys {
			client.ExpectLeft(r, 960, key)
		}
	})
}
