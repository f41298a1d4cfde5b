package remote

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/redistest"
)

// Streams of calls through each of two cellservers, all of one organisation.
const (
	streams      = 100
	callsOfEach  = 10
	leastOfJoint = 4 // calls of a step on the Redis
)

// TestManyStreamsOnOneKey: many streams through two cellservers, all on one key of a Redis a millisecond
// away, are decided exactly and by few steps on it, as those of a cellserver that wait are one step.
// transact's TestTwoServersOnOneKey has what that takes in time.
func TestManyStreamsOnOneKey(t *testing.T) {
	for _, tt := range []struct {
		name     string
		commands int // of a call
		call     func(t *testing.T, c *redis.Client, names []any)
	}{
		{"checks", 1, check},
		{"budgets", 2, reserveAndCommit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := redistest.Server(t)
			proxy := redistest.NewProxy(t, store.Addr)
			limits := harness.WriteFile(t, "limits:\n"+
				"  user: {rules: [{algorithm: token_bucket, capacity: 100, refill: 100, period: 3600000s}]}\n"+
				"  team: {rules: [{algorithm: quota, max_count: 100000, every: month}]}\n"+
				"  org: {rules: [{algorithm: fixed_window, max_count: 100000, period: 3600000s}, {algorithm: funnel, capacity: 100000, count: 1, period: 1h}]}\n")
			var clients []*redis.Client
			for range 2 {
				p := harness.StartServer(t, "--store", "redis://"+proxy.Addr, "--store-timeout", never, "--limits-file", limits)
				awaitStore(t, p, 1)
				clients = append(clients, redistest.NewClient(t, redis.Options{Addr: p.Addr, Protocol: 2, DisableIdentity: true, PoolSize: streams}))
			}
			proxy.Delay(time.Millisecond / 2)
			before := scriptsOf(t, store)
			var wg sync.WaitGroup
			for n, c := range clients {
				for i := range streams {
					names := []any{"user", fmt.Sprintf("%d-%d", n, i), "team", strconv.Itoa(i % 20), "org", "one"}
					wg.Go(func() {
						for range callsOfEach {
							tt.call(t, c, names)
						}
					})
				}
			}
			wg.Wait()
			const calls = 2 * streams * callsOfEach
			if steps := scriptsOf(t, store) - before; steps > calls*tt.commands/leastOfJoint {
				t.Errorf("%d calls took %d scripts", calls*tt.commands, steps)
			} else {
				t.Logf("%d calls took %d scripts", calls*tt.commands, steps)
			}
			for name, want := range map[string]int64{"user 0-0": 100 - callsOfEach, "team 0": 100000 - calls/20, "org one": 100000 - calls} {
				if left := leftOf(t, clients[0], name); left != want {
					t.Errorf("%s has %d left, want %d", name, left, want)
				}
			}
		})
	}
}

// check takes a unit of each of three named limits.
func check(t *testing.T, c *redis.Client, names []any) {
	all, err := c.Do(t.Context(), append([]any{"CL.MCHECK", 3}, names...)...).Slice()
	if err != nil || len(all) != 4 || all[0] != int64(0) {
		t.Errorf("%v, %v", all, err)
	}
}

// reserveAndCommit holds five units of each of three named limits, and uses one.
func reserveAndCommit(t *testing.T, c *redis.Client, names []any) {
	with := func(command []any, units int) []any {
		for i := 0; i < len(names); i += 2 {
			command = append(command, names[i], names[i+1], units)
		}
		return command
	}
	all, err := c.Do(t.Context(), append(with([]any{"CL.MRESERVE", 3}, 5), "TTL", "1h")...).Slice()
	if err != nil || len(all) != 5 || all[0] != int64(0) {
		t.Errorf("%v, %v", all, err)
		return
	}
	if was, err := c.Do(t.Context(), with([]any{"CL.MCOMMIT", all[4], 3}, 1)...).Int(); err != nil || was != 1 {
		t.Errorf("%d, %v", was, err)
	}
}

// leftOf returns what a named limit's key has left.
func leftOf(t *testing.T, c *redis.Client, nameAndKey string) int64 {
	t.Helper()
	var name, key string
	if _, err := fmt.Sscan(nameAndKey, &name, &key); err != nil {
		t.Fatal(err)
	}
	all, err := c.Do(t.Context(), "CL.CHECK", name, key, 0).Int64Slice()
	if err != nil || len(all) != 5 {
		t.Fatalf("%v, %v", all, err)
	}
	return all[2]
}

var scriptCalls = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`)

// scriptsOf returns the number of scripts that a Redis has executed.
func scriptsOf(t *testing.T, store *redistest.Process) (n int) {
	t.Helper()
	text, err := store.Client().Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	if found := scriptCalls.FindStringSubmatch(text); found != nil {
		n, _ = strconv.Atoi(found[1])
	}
	return n
}
