package remote

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/killtest"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/randtest"
	"cellserver/internal/test/redistest"
)

// TestBudgetsAfterSentinelsFailover: over a Redis that Sentinels replace, counts are off by what the part
// that its replica did not get held or settled at most.
func TestBudgetsAfterSentinelsFailover(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	set, random := redistest.Sentinels(t), randtest.New(t)
	p, client := startRemote(t, set.URL(), "--store-timeout", "5s", "--limits-file", harness.WriteFile(t, killtest.BudgetLimits))
	isUp := func() bool {
		return client.Do(t.Context(), "CL.MCHECK", 2, "user", "up", "org", "up").Err() == nil
	}
	p.Eventually(t, "decide", isUp)
	master := set.Master.Client()
	budgets := killtest.NewBudgets(killtest.BudgetsConfig{
		Gateways: 6, Seed: random.Uint64(),
		Confirm: func(ctx context.Context, _ *redis.Conn) error {
			conn := master.Conn()
			defer func() { _ = conn.Close() }()
			for ctx.Err() == nil {
				if err := conn.Set(ctx, "confirmed", 1, time.Minute).Err(); err != nil {
					return err
				}
				if n, err := conn.Wait(ctx, 2, time.Second).Result(); n == 2 || err != nil {
					return err
				}
			}
			return ctx.Err()
		},
	})
	run := budgets.Begin(t.Context(), p.Addr)
	patience.Until(func() bool { return budgets.Answered() > 300 })
	time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
	for _, line := range run.End(set.Master.Kill) {
		if !strings.Contains(line, "STOREDOWN ") {
			t.Error(line)
		}
	}
	p.Eventually(t, "find the promoted master", isUp)
	found, err := budgets.Check(t.Context(), p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(found.String())
	for _, line := range found.Wrong {
		t.Error(line)
	}
}
