package remote

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/redistest"
)

// call was decided between two times of this machine's clock, which is the Redis's.
type call struct {
	sentNs, answeredNs int64
	limited            bool
}

// TestQuotasOfManyServers: four cellservers over one Redis allow exactly the quota in each second by the
// Redis's clock, also across its boundaries.
func TestQuotasOfManyServers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	const servers, callers, quota, seconds = 4, 3, 30, 4
	url := "redis://" + redistest.Server(t).Addr
	for name, args := range map[string][]any{
		"quota": {"CL.QUOTA", "k", quota, "SECOND"},
		"named": {"CL.CHECK", "named", "k"},
	} {
		file := harness.WriteFile(t, fmt.Sprintf("limits: {named: {rules: [{algorithm: quota, max_count: 1000000, every: year}, {algorithm: quota, max_count: %d, every: second}]}}\n", quota))
		var mu sync.Mutex // guards calls
		var calls []call
		var full atomic.Bool // whether a second has been
		var all sync.WaitGroup
		clients := make([]*redis.Client, servers)
		for i := range clients {
			_, clients[i] = startRemote(t, url, "--store-timeout", never, "--limits-file", file)
		}
		until := time.Now().Truncate(time.Second).Add((seconds + 1) * time.Second)
		for _, client := range clients {
			for range callers {
				all.Go(func() {
					for time.Now().Before(until) || !full.Load() { // a busy machine takes longer to fill a second
						c := call{sentNs: time.Now().UnixNano()}
						numbers, err := client.Do(t.Context(), args...).Int64Slice()
						c.answeredNs = time.Now().UnixNano()
						if err != nil || len(numbers) != 5 {
							t.Errorf("%s: %v, %v", name, numbers, err)
							return
						}
						if c.limited = numbers[0] == 1; c.limited && c.sentNs/1e9 == c.answeredNs/1e9 {
							full.Store(true)
						}
						mu.Lock()
						calls = append(calls, c)
						mu.Unlock()
					}
				})
			}
		}
		all.Wait()
		judge(t, name, calls, quota)
	}
}

// judge compares the calls allowed in each second with the quota: those surely in it are no more, and where
// one was limited there are as many, with those that may be in it.
func judge(t *testing.T, name string, calls []call, quota int) {
	t.Helper()
	surely, maybe, full := map[int64]int{}, map[int64]int{}, map[int64]bool{}
	firstSec, lastSec := int64(1<<62), int64(0)
	for _, c := range calls {
		fromSec, toSec := c.sentNs/1e9, c.answeredNs/1e9
		firstSec, lastSec = min(firstSec, fromSec), max(lastSec, toSec)
		if c.limited {
			if fromSec == toSec {
				full[fromSec] = true
			}
			continue
		}
		if fromSec == toSec {
			surely[fromSec]++
		}
		for sec := fromSec; sec <= toSec; sec++ {
			maybe[sec]++
		}
	}
	if len(full) == 0 {
		t.Errorf("%s: no second had as many calls as it may", name)
	}
	for sec := firstSec; sec <= lastSec; sec++ {
		if surely[sec] > quota || full[sec] && maybe[sec] < quota {
			t.Errorf("%s: %d calls were surely allowed in second %d, and %d maybe; want %d", name, surely[sec], sec-firstSec, maybe[sec], quota)
		}
	}
}
