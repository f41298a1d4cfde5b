package remote

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/e2e/remotetest"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/redistest"
)

// The limits of --store's tests: a timeout that is over soon where a server is away, and one that no busy
// machine reaches.
const (
	soon  = "200ms"
	never = "1m"
)

// startRemote starts a server in front of a store, and returns a client of it that calls once.
func startRemote(t *testing.T, url string, args ...string) (*harness.Process, *redis.Client) {
	t.Helper()
	p := harness.StartServer(t, append([]string{"--store", url}, args...)...)
	return p, harness.Database(t, p, 0)
}

// throttle returns the five numbers, or the error.
func throttle(t *testing.T, client *redis.Client, key string) string {
	t.Helper()
	numbers, err := client.Do(t.Context(), "CL.THROTTLE", key, 15, 30, 60).Slice()
	if err != nil {
		return err.Error()
	}
	return strings.Trim(fmt.Sprint(numbers), "[]")
}

const firstOfSixteen = "0 16 15 -1 2"

// isDown reports whether a reply is the store's error, and says one of some words.
func isDown(reply string, words ...string) bool {
	if !strings.HasPrefix(reply, "STOREDOWN ") || strings.ContainsAny(reply, "\r\n") {
		return false
	}
	for _, word := range words {
		if strings.Contains(reply, word) {
			return true
		}
	}
	return len(words) == 0
}

// TestRemoteFaults: each fault of a store has its error, its metric, and a part in /readyz that says no
// password.
func TestRemoteFaults(t *testing.T) {
	for _, test := range []struct {
		name   string
		server []string // its arguments
		user   string   // in the URL
		says   []string // one of these, in the reply
		reason string
	}{
		{"wrong password", []string{"--requirepass", "right"}, ":wrong@", []string{"WRONGPASS", "password"}, "auth"},
		{"no password", []string{"--requirepass", "right"}, "", []string{"NOAUTH", "password"}, "auth"},
		{"no EVALSHA", []string{"--rename-command", "EVALSHA", ""}, "", []string{"evalsha", "EVALSHA"}, "no_scripting"},
		{"no rights for scripts", []string{"--user", "default", "on", "nopass", "~*", "&*", "+@all", "-@scripting"}, "", []string{"evalsha", "EVALSHA"}, "no_scripting"},
		{"full memory", []string{"--maxmemory", "1", "--maxmemory-policy", "noeviction"}, "", []string{"OOM", "memory"}, "oom"},
		{"replica", []string{"--replicaof", "127.0.0.1 1"}, "", []string{"READONLY", "read"}, "readonly"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			store := redistest.Server(t, test.server...)
			p, client := startRemote(t, "redis://"+test.user+store.Addr, "--store-timeout", "2s")
			// The first replies may only say that it took too long.
			p.Eventually(t, fmt.Sprintf("reply STOREDOWN and one of %q", test.says), func() bool {
				return isDown(throttle(t, client, "k"), test.says...)
			})
			if n := p.Metric(t, `cellserver_store_failures_total{reason="`+test.reason+`"}`); n < 1 {
				t.Errorf("%v failures of reason %s", n, test.reason)
			}
			checkNotReady(t, p)
			if log := p.Log.String(); strings.Contains(log, "wrong@") || !strings.Contains(log, "store") {
				t.Errorf("the log:\n%s", log)
			}
		})
	}
}

// checkNotReady waits until /readyz says that the store is away, which it may find out by itself.
func checkNotReady(t *testing.T, p *harness.Process) {
	t.Helper()
	var status int
	var body string
	p.Eventually(t, "be not ready", func() bool {
		status, body = p.Fetch(t, "/readyz", "")
		return status == http.StatusServiceUnavailable
	})
	if !strings.Contains(body, "store") {
		t.Errorf("/readyz: %d %q", status, body)
	}
}

// TestRemoteStartsBeforeItsStore: an unreachable store is no error at the start, and nobody needs to start
// the server again.
func TestRemoteStartsBeforeItsStore(t *testing.T) {
	t.Parallel()
	store := redistest.Server(t)
	store.Kill()
	p, client := startRemote(t, "redis://"+store.Addr, "--store-timeout", soon)
	if got := throttle(t, client, "k"); !isDown(got) {
		t.Errorf("got %q", got)
	}
	checkNotReady(t, p)
	if err := store.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Eventually(t, "find the store", func() bool {
		return throttle(t, client, "k") == firstOfSixteen || client.Exists(t.Context(), "k").Val() == 1
	})
	p.Eventually(t, "be ready", func() bool { return p.Ask(t, "/readyz", "", nil) == http.StatusOK })
}

// TestRemoteWrongType: a key that is not a limiter's is an error whatever the policy, and stays as it is; the
// store is not down.
func TestRemoteWrongType(t *testing.T) {
	t.Parallel()
	store := redistest.Server(t)
	ctx := t.Context()
	if err := store.Client().LPush(ctx, "list", "a").Err(); err != nil {
		t.Fatal(err)
	}
	if err := store.Client().Set(ctx, "text", "hello", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{"error", "allow", "deny", "local"} {
		p, client := startRemote(t, "redis://"+store.Addr, "--on-store-error", policy, "--store-timeout", never)
		for _, key := range []string{"list", "text"} {
			if got := throttle(t, client, key); !strings.HasPrefix(got, "WRONGTYPE ") {
				t.Errorf("%s, %s: %q", policy, key, got)
			}
		}
		if got := throttle(t, client, policy); got != firstOfSixteen {
			t.Errorf("%s: %q", policy, got)
		}
		p.Eventually(t, "be ready", func() bool { return p.Ask(t, "/readyz", "", nil) == http.StatusOK })
	}
	if got := store.Client().LRange(ctx, "list", 0, -1).String() + store.Client().Get(ctx, "text").String(); !strings.Contains(got, "[a]") || !strings.Contains(got, "hello") {
		t.Errorf("the keys are %s", got)
	}
}

// TestRemoteAwayPilesNothingUp: what waits for a store that stands still is bounded, and nothing of it is
// left.
func TestRemoteAwayPilesNothingUp(t *testing.T) {
	t.Parallel()
	store := redistest.Server(t)
	p, client := startRemote(t, "redis://"+store.Addr, "--on-store-error", "deny", "--store-timeout", "50ms")
	p.Eventually(t, "decide", func() bool { return p.Ask(t, "/readyz", "", nil) == http.StatusOK })
	load := &remotetest.Load{Servers: []string{p.Addr}, Clients: 100, Limits: []remotetest.Limit{{MaxBurst: 15, Count: 30, PeriodSeconds: 60}}}
	for i := range 1000 {
		load.Keys = append(load.Keys, fmt.Sprint("away", i))
	}
	before := p.Metric(t, "go_goroutines")
	store.Stop()
	defer store.Continue()
	calling, end := context.WithCancel(t.Context())
	go func() {
		defer end()
		patience.Until(func() bool { return p.Metric(t, "cellserver_store_policy_decisions_total") >= 100 })
	}()
	record, err := load.Run(calling)
	if err != nil || len(record.Errors) > 0 {
		t.Fatalf("%v, %s", err, record.ErrorsText())
	}
	if allowed, all := record.Total(remotetest.Allowed), record.Total(remotetest.Limited); allowed > 0 || all < 100 {
		t.Errorf("by the policy deny %d calls were allowed, and %d limited", allowed, all)
	}
	// The clients have hung up, and half of their number is more than the pool and the loops have.
	p.Eventually(t, "let goroutines end", func() bool { return p.Metric(t, "go_goroutines") < before+50 })
	p.Eventually(t, "let go of what waits", func() bool {
		return p.Metric(t, "cellserver_store_waiting_requests") == 0 && p.Metric(t, "cellserver_store_waiting_bytes") == 0
	})
	store.Continue()
	p.Eventually(t, "decide again", func() bool {
		return throttle(t, client, fmt.Sprint(time.Now().UnixNano())) == firstOfSixteen
	})
}

// TestRemoteFindsThePromotedMaster behind sentinels.
func TestRemoteFindsThePromotedMaster(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	set := redistest.Sentinels(t)
	p, client := startRemote(t, set.URL(), "--store-timeout", soon)
	p.Eventually(t, "decide", func() bool { return strings.HasPrefix(throttle(t, client, "k"), "0 16 ") })
	set.Master.Kill()
	// An idle connection tells it at once, and a busy server would answer by policy.
	if got := throttle(t, client, "k"); !isDown(got) {
		t.Errorf("without a master: %q", got)
	}
	p.Eventually(t, "find the promoted master", func() bool {
		return strings.HasPrefix(throttle(t, client, "k2"), "0 16 ") // a late one was executed
	})
}

// TestRemoteIsRefused where it cannot be what the user wants.
func TestRemoteIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--store", "memcached://127.0.0.1"},
		{"--store", "redis-cluster://"},
		{"--store", "redis://127.0.0.1:" + strings.TrimPrefix(processtest.FreeAddr(t), "127.0.0.1:"), "--data-dir", t.TempDir()},
		{"--store", "redis://127.0.0.1:1", "--max-new-keys-per-second", "1"},
		{"--store", "redis://127.0.0.1:1", "--databases", "2"},
		{"--store", "redis://127.0.0.1:1", "--on-store-error", "panic"},
		{"--on-store-error", "allow"},
	} {
		code, _, said := harness.Call(t, nil, append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"}, args...)...)
		if code == 0 || strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "cellserver: ") {
			t.Errorf("%q: %d, %q", args, code, said)
		}
	}
}
