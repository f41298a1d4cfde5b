package replication

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cellserver/e2e/harness"
)

// TestReservationsAfterAFailover: a replica that leads after a crash has the reservations that it was sent,
// and before that takes none.
func TestReservationsAfterAFailover(t *testing.T) {
	t.Parallel()
	rules := t.TempDir()
	if err := os.WriteFile(filepath.Join(rules, "d.yaml"), []byte("domain: d\ndescriptors: [{key: day, rate_limit: {unit: year, requests_per_unit: 1000}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	harness.WhileHeld(t, func(r *harness.Round) {
		leader, replica, _ := pairOver(t, "--grpc-addr", "127.0.0.1:0", "--envoy-config", rules)
		at, later := harness.NewKuadrant(t, leader.Process, "d", "1"), harness.NewKuadrant(t, replica.Process, "d", "1")
		r.Began = time.Now()
		id, err := at.Reserve(t.Context(), 300, time.Minute, "day")
		if id == "" || err != nil {
			t.Fatalf("reserved %q, %v", id, err)
		}
		settled, err := at.Reserve(t.Context(), 100, time.Minute, "day")
		if settled == "" || err != nil {
			t.Fatalf("reserved %q, %v", settled, err)
		}
		if released, err := at.Commit(t.Context(), settled, 40, "day"); !released || err != nil {
			r.Errorf("released %t, %v", released, err)
		}
		replica.Eventually(t, "have both reservations", func() bool {
			left, err := later.Left(t.Context(), "day")
			return err == nil && left[0] == 660 || !harness.IsHeld(r.Began)
		})
		if _, err := later.Reserve(t.Context(), 1, time.Minute, "day"); status.Code(err) != codes.Unavailable {
			r.Errorf("a replica reserves: %v", err)
		}
		leader.crash(t)
		replica.awaitLink(t, "down")
		replica.promote(t)
		later.ExpectLeft(r, 660, "day")
		if released, err := later.Commit(t.Context(), id, 10, "day"); !released || err != nil {
			r.Errorf("released by the new leader: %t, %v", released, err)
		}
		later.ExpectLeft(r, 950, "day")
	})
}
