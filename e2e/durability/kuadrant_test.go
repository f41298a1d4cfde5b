package durability

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/randtest"
)

const (
	reservedLimit = 4_000_000_000
	reservedRules = "domain: d\ndescriptors:\n" +
		"- {key: org, rate_limit: {unit: year, requests_per_unit: 4000000000}}\n" +
		"- {key: bucket, rate_limit: {unit: year, requests_per_unit: 4000000000, algorithm: fixed_window}}\n"
)

// reserved is a reservation that was answered.
type reserved struct {
	since time.Time
	sent  bool // its commit
}

// reserver reserves and commits until its server ends.
type reserver struct {
	*rand.Rand
	client *harness.Kuadrant
	open   map[string]reserved // by the ids that were answered
	used   int64               // by answered commits
	doubt  int64               // units that a commit without an answer may have charged
	held   int64               // units that a reservation without an answer may hold
}

func (g *reserver) run(t *testing.T, answered *atomic.Int64) {
	for {
		amount, used, since := 1+g.Int64N(50), g.Int64N(60), time.Now()
		id, err := g.client.Reserve(t.Context(), uint64(amount), time.Minute, "org", "bucket")
		if err != nil {
			g.held = amount
			return
		}
		answered.Add(1)
		if g.open[id] = (reserved{since: since}); g.IntN(10) == 0 {
			continue // it is left open
		}
		g.open[id] = reserved{since, true}
		released, err := g.client.Commit(t.Context(), id, uint64(used), "org", "bucket")
		if err != nil {
			g.doubt = used
			return
		}
		if !released && harness.IsHeld(since) {
			t.Errorf("an open reservation was not released")
		}
		delete(g.open, id)
		g.used += used
	}
}

// TestKilledReservations kills a server while gateways reserve and commit over gRPC. What was answered is
// there to the unit: an open reservation is released by its commit, and the counts are what was committed.
func TestKilledReservations(t *testing.T) {
	t.Parallel()
	dir, rules, random := t.TempDir(), t.TempDir(), randtest.New(t)
	if err := os.WriteFile(filepath.Join(rules, "d.yaml"), []byte(reservedRules), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func() *harness.Process {
		return harness.StartKeeping(t, dir, "--fsync-interval", "0", "--grpc-addr", "127.0.0.1:0", "--envoy-config", rules)
	}
	least, most := int64(0), int64(0)
	for range 3 {
		p := start()
		var answered atomic.Int64
		var wg sync.WaitGroup
		gateways := make([]*reserver, 4)
		for i := range gateways {
			gateways[i] = &reserver{
				Rand: rand.New(rand.NewPCG(random.Uint64(), 0)), client: harness.NewKuadrant(t, p, "d", "1"), open: map[string]reserved{},
			}
			wg.Go(func() { gateways[i].run(t, &answered) })
		}
		patience.Until(func() bool { return answered.Load() > 100 })
		p.Stop(t, syscall.SIGKILL)
		wg.Wait()
		p = start()
		client, held := harness.NewKuadrant(t, p, "d", "1"), int64(0)
		for _, g := range gateways {
			least, most, held = least+g.used, most+g.used+g.doubt, held+g.held
			for id, of := range g.open {
				released, err := client.Commit(t.Context(), id, 1, "org", "bucket")
				if err != nil || !released && !of.sent && harness.IsHeld(of.since) {
					t.Errorf("after the kill an open reservation is released %t, %v", released, err)
				}
				least, most = least+1, most+1
			}
		}
		left, err := client.Left(t.Context(), "org", "bucket")
		if err != nil {
			t.Fatal(err)
		}
		for i, of := range left {
			if used := reservedLimit - of; used < least || used > most+held {
				t.Errorf("limit %d: %d used, want %d to %d", i, used, least, most+held)
			}
		}
		least, most = reservedLimit-left[0]-held, reservedLimit-left[0]
		p.Stop(t, syscall.SIGTERM)
	}
}
