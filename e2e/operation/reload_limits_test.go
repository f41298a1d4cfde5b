package operation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/randtest"
	"cellserver/internal/test/redistest"
)

// manyLimits is a file of 1,000 limits and 20,000 overrides, whose last capacity is given.
func manyLimits(capacity int) string {
	var b strings.Builder
	b.WriteString("limits:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  l%d:\n    rules: [{algorithm: fixed_window, max_count: 1000, period: 24h}]\n    overrides:\n      - keys: [", i)
		for key := range 20 {
			fmt.Fprintf(&b, "k%d, ", key)
		}
		fmt.Fprintf(&b, "last]\n        rules: [{algorithm: fixed_window, max_count: 2000, period: 24h}]\n      - {pattern: 'p*', rules: [{algorithm: quota, max_count: %d, every: year}]}\n", capacity)
	}
	return b.String()
}

// TestReloadUnderLoad: while a large file is read again and again, every call is decided by the rules of one
// of its versions, and the unchanged limits lose and grant nothing.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	file := harness.WriteFile(t, manyLimits(3000))
	p := harness.StartServer(t, "--limits-file", file)
	client := harness.Database(t, p, 0)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for key, capacity := range map[string][]int64{"own": {1000}, "k7": {2000}, "pattern": {3000, 3001}} {
		all.Go(func() {
			allowed := int64(0)
			for done := false; !done || allowed < capacity[0]; {
				select {
				case <-stop:
					done = true
				default:
				}
				r, err := client.Do(t.Context(), "CL.CHECK", "l500", key).Int64Slice()
				switch {
				case err != nil || len(r) != 5:
					t.Errorf("%s: %v, %v", key, r, err)
					return
				case r[1] != capacity[0] && r[1] != capacity[len(capacity)-1]:
					t.Errorf("%s: decided by a limit of %d, want one of %d", key, r[1], capacity)
					return
				case r[0] == 0:
					allowed++
				}
			}
			if allowed > capacity[len(capacity)-1] {
				t.Errorf("%s: %d were allowed, want at most %d", key, allowed, capacity)
			}
		})
	}
	for i := range 6 {
		if err := os.WriteFile(file, []byte(manyLimits(3000+(i+1)%2)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := client.Do(t.Context(), "CL.LIMIT", "RELOAD").Err(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	all.Wait()
}

const fileNames = 32 // limits of a file whose max_counts are alike

// alike is a file of limits, with overrides of the keys "plan" and "script-plan" by a plan.
func alike(maxCount int64) string {
	b := fmt.Appendf(nil, "plans: {p: {rules: [{algorithm: fixed_window, max_count: %d, period: 24h}]}}\nlimits:\n", maxCount)
	for i := range fileNames {
		b = fmt.Appendf(b, "  l%d: {rules: [{algorithm: fixed_window, max_count: %d, period: 24h}], overrides: [{keys: [plan, script-plan], plan: p}]}\n", i, maxCount)
	}
	return string(b)
}

// TestCallsAreOfOneFile: calls of many names, in memory and over a store, each see one version of a file that
// is read again all the while.
func TestCallsAreOfOneFile(t *testing.T) {
	t.Parallel()
	const least, versions = 1_000_000, 5
	calls := 300
	if testing.Short() {
		calls = 100
	}
	seed := randtest.Seed(t, 47)
	for name, args := range map[string][]string{"memory": {"--lua-time-limit", "1h"}, "store": {"--store", "redis://" + redistest.Server(t).Addr, "--store-timeout", "30s"}} {
		file := harness.WriteFile(t, alike(least))
		p := harness.StartServer(t, append(args, "--limits-file", file, "--http-addr", "127.0.0.1:0")...)
		client := harness.Database(t, p, 0)
		ways := []func(keys []string) ([]int64, error){
			func(keys []string) ([]int64, error) { return checkTogether(t, client, keys) },
			func(keys []string) ([]int64, error) { return checkInExec(t, client, keys) },
			func(keys []string) ([]int64, error) { return checkByHTTP(t, p, keys) },
		}
		if name == "memory" { // a store takes scripts of one call
			ways = append(ways, func(keys []string) ([]int64, error) { return checkInScript(t, client, keys) })
		}
		var all sync.WaitGroup
		var left atomic.Int64
		left.Store(int64(len(ways)))
		for i, way := range ways {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			all.Go(func() {
				defer left.Add(-1)
				for range calls {
					limits, err := way([]string{"own", "plan"}[random.IntN(2):])
					if n := len(limits); err != nil || n != fileNames || slices.Min(limits) != slices.Max(limits) {
						t.Errorf("%s, way %d: %d names, decided by %v, %v", name, i, n, limits, err)
						return
					}
				}
			})
		}
		for version := int64(0); left.Load() > 0; version++ {
			if err := os.WriteFile(file, []byte(alike(least+version%versions)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := client.Do(t.Context(), "CL.LIMIT", "RELOAD").Err(); err != nil {
				t.Error(err)
			}
		}
		all.Wait()
	}
}

// checkTogether checks all names, with one of the keys by turns, and returns the limits of the replies.
func checkTogether(t *testing.T, client *redis.Client, keys []string) (limits []int64, err error) {
	args := []any{"CL.MCHECK", fileNames}
	for i := range fileNames {
		args = append(args, fmt.Sprint("l", i), keys[i%len(keys)])
	}
	reply, err := client.Do(t.Context(), args...).Slice()
	if err != nil {
		return nil, err
	}
	return limitsOf(reply[1:]), nil
}

// limitsOf returns the second of each five integers.
func limitsOf(replies []any) (limits []int64) {
	for _, r := range replies {
		if r, _ := r.([]any); len(r) == 5 {
			n, _ := r[1].(int64)
			limits = append(limits, n)
		}
	}
	return limits
}

func checkInExec(t *testing.T, client *redis.Client, keys []string) (limits []int64, err error) {
	commands, err := client.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range fileNames {
			p.Do(t.Context(), "CL.CHECK", fmt.Sprint("l", i), keys[i%len(keys)])
		}
		return nil
	})
	var replies []any
	for _, c := range commands {
		replies = append(replies, c.(*redis.Cmd).Val())
	}
	return limitsOf(replies), err
}

// checkInScript has keys of its own: a script that others keep from its keys for too long is an error.
func checkInScript(t *testing.T, client *redis.Client, keys []string) (limits []int64, err error) {
	const script = "local all = {} for i, key in ipairs(KEYS) do local name, of = key:match('^(%w+):(.*)$') all[i] = redis.call('cl.check', name, of) end return all"
	var of []string
	for i := range fileNames {
		of = append(of, fmt.Sprintf("l%d:script-%s", i, keys[i%len(keys)]))
	}
	reply, err := client.Eval(t.Context(), script, of).Slice()
	return limitsOf(reply), err
}

func checkByHTTP(t *testing.T, p *harness.Process, keys []string) (limits []int64, err error) {
	var body strings.Builder
	body.WriteString(`{"checks":[`)
	for i := range fileNames {
		fmt.Fprintf(&body, `{"limit":"l%d","key":"%s"},`, i, keys[i%len(keys)])
	}
	text := strings.TrimSuffix(body.String(), ",") + "]}"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.HTTP+"/v1/check", strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var all struct{ Checks []struct{ Limit int64 } }
	err = json.NewDecoder(answer.Body).Decode(&all)
	for _, c := range all.Checks {
		limits = append(limits, c.Limit)
	}
	return limits, err
}
