package metrics

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// TestScrapeOfManyKeys checks that a scrape costs the same for any number of keys, while clients call.
// BenchmarkScrape has its time.
func TestScrapeOfManyKeys(t *testing.T) {
	if racetest.OmitsLong() {
		t.Skip("needs 60 MB, and far more under the race detector")
	}
	const keys, clientCalls = 1_000_000, 1000
	h := newHarness()
	scrape := func() { h.scrape(t) }
	scrape() // allocations of the first scrape
	empty := testing.AllocsPerRun(10, scrape)
	fill(t, h.config.Store, keys)
	if full := testing.AllocsPerRun(10, scrape); full > empty+keys/1000 {
		t.Errorf("a scrape allocates %.0f times with %d keys, and %.0f times with none", full, keys, empty)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range clientCalls {
			h.say(t, strings.Repeat("CL.THROTTLE user:1 1 1 1000\r\n", 100))
		}
	})
	for range 20 {
		if !strings.Contains(h.scrape(t), "\ncellserver_keys 1e+06\n") {
			t.Fatal("the keys are not there")
		}
	}
	wg.Wait()
}

// BenchmarkScrape scrapes ten million keys.
func BenchmarkScrape(b *testing.B) {
	h := newHarness()
	fill(b, h.config.Store, 10_000_000)
	for b.Loop() {
		h.get("/metrics")
	}
}

func fill(t testing.TB, s store.Store, keys int) {
	t.Helper()
	limit, err := funnel.NewLimit(funnel.Burst, 1, 1, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	nowNs := time.Now().UnixNano()
	batch := make([]store.Request, 100)
	for i := 0; i < keys; i += len(batch) {
		for j := range batch {
			batch[j] = store.Request{Key: store.Key{Name: fmt.Appendf(nil, "user:%d", i+j)}, Rule: limiter.OfFunnel(limit), Quantity: 1}
		}
		s.Throttle(nowNs, batch)
	}
}
