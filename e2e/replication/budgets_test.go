package replication

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/killtest"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/randtest"
)

// TestBudgetsAfterAFailover: a replica that is promoted after a crash has counts that are off by what the
// part that it did not get held or settled at most, and gateways go on with it.
func TestBudgetsAfterAFailover(t *testing.T) {
	t.Parallel()
	for name, cuts := range map[string]bool{"at any moment": false, "behind a link that was cut": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := randtest.New(t)
			leader, replica, between := pairOver(t, "--limits-file", harness.WriteFile(t, killtest.BudgetLimits))
			budgets := killtest.NewBudgets(killtest.BudgetsConfig{
				Gateways: 6, Seed: random.Uint64(),
				Confirm: func(ctx context.Context, rdb *redis.Conn) error {
					if err := rdb.Do(ctx, "CL.THROTTLE", "confirmed", 9, 1, 1, 0).Err(); err != nil {
						return err
					}
					return rdb.Do(ctx, "WAIT", 1, 0).Err()
				},
			})
			run := budgets.Begin(t.Context(), leader.Addr)
			for n := range 2 {
				patience.Until(func() bool { return budgets.Answered() > int64(300*(n+1)) })
				time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
				if cuts && n == 0 {
					between.cut()
				}
			}
			for _, line := range run.End(func() { leader.crash(t) }) {
				t.Error(line)
			}
			replica.awaitLink(t, "down")
			replica.promote(t)
			for range 2 { // the second has nothing that may be lost
				found, err := budgets.Check(t.Context(), replica.Addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Log(found.String())
				for _, line := range found.Wrong {
					t.Error(line)
				}
				if cuts && found.Off["org"] == 0 && found.Lost > 0 {
					t.Error("nothing was lost behind the link")
				}
			}
			dir := t.TempDir()
			second := startReplica(t, replica.Addr, "--data-dir", dir)
			replica.inStep(t)
			harness.SyncAll(t, second.Process)
			if got, want := harness.SpentByLimit(harness.SpentIn(t, dir)), budgets.Spent(); !maps.Equal(got, want) {
				t.Errorf("spent %v by a replica of the new leader, and the counts are %v", got, want)
			}
		})
	}
}
