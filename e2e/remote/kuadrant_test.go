package remote

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cellserver/e2e/harness"
	"cellserver/internal/test/redistest"
)

// TestReservationsOverAStore: what one server reserves counts at another, which settles it; without the store
// nothing is held.
func TestReservationsOverAStore(t *testing.T) {
	t.Parallel()
	on, rules := redistest.Server(t), t.TempDir()
	const text = "domain: d\ndescriptors:\n" +
		"- {key: day, rate_limit: {unit: year, requests_per_unit: 1000}}\n" +
		"- {key: fixed, rate_limit: {unit: year, requests_per_unit: 1000, algorithm: fixed_window}}\n" +
		"- {key: bucket, rate_limit: {unit: year, requests_per_unit: 1000, algorithm: token_bucket}}\n"
	if err := os.WriteFile(filepath.Join(rules, "d.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--store-timeout", "5s", "--on-store-error", "allow", "--grpc-addr", "127.0.0.1:0", "--envoy-config", rules}
	p, _ := startRemote(t, "redis://"+on.Addr, args...)
	second, _ := startRemote(t, "redis://"+on.Addr, args...)
	one, other := harness.NewKuadrant(t, p, "d", "1"), harness.NewKuadrant(t, second, "d", "1")
	keys := []string{"day", "fixed", "bucket"}
	harness.WhileHeld(t, func(r *harness.Round) {
		one.Value, other.Value = r.Value, r.Value
		id, err := one.Reserve(t.Context(), 400, time.Minute, keys...)
		if id == "" || err != nil {
			t.Fatalf("reserved %q, %v", id, err)
		}
		for _, key := range keys {
			other.ExpectLeft(r, 600, key)
		}
		if denied, err := other.Reserve(t.Context(), 601, time.Minute, "day"); denied != "" || err != nil {
			r.Errorf("reserved %q, %v", denied, err)
		}
		if released, err := other.Commit(t.Context(), id, 100, keys...); !released || err != nil {
			r.Errorf("released %t, %v", released, err)
		}
		for _, key := range keys {
			one.ExpectLeft(r, 900, key)
		}
		if released, err := one.Commit(t.Context(), id, 100, "day"); released || err != nil {
			r.Errorf("released again %t, %v", released, err)
		}
		one.ExpectLeft(r, 800, "day")
	})
	on.Kill()
	if _, err := one.Reserve(t.Context(), 1, time.Minute, "day"); status.Code(err) != codes.Unavailable {
		t.Errorf("without the store: reserved %v", err)
	}
	if _, err := one.Commit(t.Context(), "any", 1, "day"); status.Code(err) != codes.Unavailable {
		t.Errorf("without the store: committed %v", err)
	}
}
