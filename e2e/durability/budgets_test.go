package durability

import (
	"context"
	"maps"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/killtest"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/randtest"
)

// TestKilledBudgets kills a server at random moments while gateways hold and settle units. Where each reply
// is on the disk, what was answered is there to the unit, and what was not is found out by repeating it;
// else the counts are off by what the lost part held or settled at most.
func TestKilledBudgets(t *testing.T) {
	t.Parallel()
	kills := 6
	if testing.Short() {
		kills = 2
	}
	for _, interval := range []string{"0", "1s"} {
		t.Run(interval, func(t *testing.T) {
			t.Parallel()
			racetest.OneAtATime(t)
			dir, file, random := t.TempDir(), harness.WriteFile(t, killtest.BudgetLimits), randtest.New(t)
			config := killtest.BudgetsConfig{Gateways: 6, Seed: random.Uint64()}
			if interval != "0" {
				config.Confirm = func(ctx context.Context, rdb *redis.Conn) error {
					return rdb.Do(ctx, "WAITAOF", 1, 0, 0).Err()
				}
			}
			budgets := killtest.NewBudgets(config)
			start := func() *harness.Process {
				return harness.StartKeeping(t, dir, "--fsync-interval", interval, "--limits-file", file)
			}
			p, settled := start(), 0
			for round := range kills {
				run := budgets.Begin(t.Context(), p.Addr)
				patience.Until(func() bool { return budgets.Answered() > 50 })
				sleepUpTo(2*time.Second, random)
				for _, line := range run.End(func() { p.Stop(t, syscall.SIGKILL) }) {
					t.Error(line)
				}
				if random.IntN(2) == 0 {
					killAtStart(t, dir, interval, random)
				}
				p = start()
				settled += checkBudgets(t, budgets, p).Settled
				harness.SyncAll(t, p)
				if got, want := harness.SpentByLimit(harness.SpentIn(t, dir)), budgets.Spent(); !maps.Equal(got, want) {
					t.Errorf("spent %v, and the ledger has %v", got, want)
				}
				if t.Logf("kill %d", round); t.Failed() {
					return
				}
			}
			if settled == 0 {
				t.Error("nothing was settled")
			}
		})
	}
}

// checkBudgets compares a server's counts with the ledger, and logs by how much they are off.
func checkBudgets(t *testing.T, budgets *killtest.Budgets, p *harness.Process) killtest.BudgetsFound {
	t.Helper()
	found, err := budgets.Check(t.Context(), p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(found.String())
	for i, line := range found.Wrong {
		if t.Error(line); i == 10 {
			break
		}
	}
	return found
}
