package remote

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/redistest"
)

// longPeriod is one in which nothing leaks meanwhile.
const longPeriod = "3600000s"

// raising is a client of named limits, which it defines in a file: over a store there is no other way.
type raising struct {
	*redis.Client
	t      *testing.T
	file   string
	limits map[string]string
}

func newRaising(t *testing.T) *raising {
	return &raising{t: t, file: harness.WriteFile(t, "limits: {}\n"), limits: map[string]string{}}
}

// of connects to a server that reads the file.
func (c *raising) of(p *harness.Process) { c.Client = harness.Database(c.t, p, 0) }

// rule returns a rule of the file. Its count is its capacity.
func rule(algorithm string, capacity int64) string {
	count := "count"
	if algorithm == "token_bucket" {
		count = "refill"
	}
	return fmt.Sprintf("rules: [{algorithm: %s, capacity: %d, %s: %d, period: %s}]", algorithm, capacity, count, capacity, longPeriod)
}

// define defines a limit of one rule anew, and of what is behind it.
func (c *raising) define(name, rule string, more ...string) {
	c.t.Helper()
	c.limits[name] = strings.Join(append([]string{rule}, more...), ", ")
	var b strings.Builder
	fmt.Fprintf(&b, "plans:\n  large: {%s}\nlimits:\n", largePlan)
	for name, text := range c.limits {
		fmt.Fprintf(&b, "  %s: {%s}\n", name, text)
	}
	if err := os.WriteFile(c.file, []byte(b.String()), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if c.Client != nil {
		c.do("CL.LIMIT RELOAD")
	}
}

func (c *raising) do(words string) any {
	c.t.Helper()
	var args []any
	for word := range strings.FieldsSeq(words) {
		args = append(args, word)
	}
	got, err := c.Do(c.t.Context(), args...).Result()
	if err != nil {
		c.t.Fatalf("%s: %v", words, err)
	}
	return got
}

// leaves asserts limited, limit and remaining of a reply.
func (c *raising) leaves(words string, limited, limit, remaining int64) {
	c.t.Helper()
	c.are(words, c.do(words), limited, limit, remaining)
}

func (c *raising) are(words string, got any, limited, limit, remaining int64) {
	c.t.Helper()
	if all, _ := got.([]any); len(all) != 5 || all[0] != limited || all[1] != limit || all[2] != remaining {
		c.t.Errorf("%s: got %v, want %d %d %d", words, got, limited, limit, remaining)
	}
}

// TestRaisedLimit: a limit is raised and lowered for keys in use, by reload, override and plan, in a shadow,
// in EXEC and by RESTORE; in memory over a kill, on a Redis, and by the policy while that is away.
func TestRaisedLimit(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		dir, c := t.TempDir(), newRaising(t)
		p := harness.StartKeeping(t, dir, "--fsync-interval", "0", "--limits-file", c.file)
		c.of(p)
		c.raise()
		c.define("api", rule("funnel", 5))
		p.Stop(t, syscall.SIGKILL)
		c.Client = nil
		c.define("api", rule("funnel", 500))
		c.of(harness.StartKeeping(t, dir, "--fsync-interval", "0", "--limits-file", c.file))
		c.leaves("CL.CHECK api k", 0, 500, 493)
	})
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		redis, c := redistest.Server(t), newRaising(t)
		start := func() {
			p := harness.StartServer(t, "--store", "redis://"+redis.Addr, "--store-timeout", "1m", "--limits-file", c.file)
			awaitStore(t, p, 1)
			c.of(p)
		}
		start()
		c.raise()
		c.define("api", rule("funnel", 500))
		start()
		c.leaves("CL.CHECK api k", 0, 500, 493)
	})
	t.Run("away", func(t *testing.T) {
		t.Parallel()
		redis, c := redistest.Server(t), newRaising(t)
		p := harness.StartServer(t, "--store", "redis://"+redis.Addr, "--store-timeout", "1m", "--limits-file", c.file,
			"--on-store-error", "local", "--local-share", "0.5")
		awaitStore(t, p, 1)
		redis.Kill()
		c.of(p)
		c.define("api", rule("funnel", 10))
		c.do("CL.CHECK api other")
		awaitStore(t, p, 0)
		c.leaves("CL.CHECK api k 5", 0, 5, 0)
		c.define("api", rule("funnel", 100))
		c.leaves("CL.CHECK api k 1", 0, 50, 44)
		c.define("api", rule("funnel", 10))
		c.leaves("CL.CHECK api k 1", 1, 5, 0)
	})
}

var largePlan = rule("funnel", 80)

// raise leaves the key k of the limit api with 6 units of 50.
func (c *raising) raise() {
	c.t.Helper()
	for _, algorithm := range []string{"funnel", "token_bucket"} {
		c.define("up", rule(algorithm, 5))
		c.leaves("CL.CHECK up k 5", 0, 5, 0)
		c.define("up", rule(algorithm, 50))
		c.leaves("CL.CHECK up k 0", 0, 50, 45)
		c.leaves("CL.CHECK up k", 0, 50, 44)
		c.define("up", rule(algorithm, 4))
		c.leaves("CL.CHECK up k", 1, 4, 0)
		c.define("up", rule(algorithm, 40))
		c.leaves("CL.CHECK up k 0", 0, 40, 36) // lowering has filled it at most
		c.do("DEL up:k")
	}
	c.define("debit", rule("funnel", 8))
	c.do("CL.CHECK debit k 20 DEBIT")
	c.define("debit", rule("funnel", 4))
	if got := fmt.Sprint(c.do("CL.LIMIT EXPLAIN debit k")); !strings.Contains(got, "9000000") { // 20 by the rate of 8
		c.t.Errorf("a debit's debt when lowered: %s", got)
	}

	c.define("over", rule("funnel", 5))
	c.leaves("CL.CHECK over k 4", 0, 5, 1)
	c.define("over", rule("funnel", 5), "overrides: [{keys: [k], "+rule("funnel", 50)+"}]")
	c.leaves("CL.CHECK over k 6", 0, 50, 40)
	c.define("over", rule("funnel", 5))
	c.leaves("CL.CHECK over k 0", 0, 5, 0)
	c.define("over", rule("funnel", 5), "overrides: [{keys: [k], plan: large}]")
	c.leaves("CL.CHECK over k", 0, 80, 69)

	c.define("dark", rule("funnel", 5), "shadow: true")
	c.leaves("CL.CHECK dark k 5", 0, 5, 0)
	c.define("dark", rule("funnel", 50), "shadow: true")
	c.leaves("CL.CHECK dark k", 0, 50, 44)

	c.define("api", rule("funnel", 5))
	c.leaves("CL.CHECK api k 5", 0, 5, 0)
	c.define("api", rule("funnel", 50))
	replies, err := c.TxPipelined(c.t.Context(), func(tx redis.Pipeliner) error {
		for quantity := range 2 {
			tx.Do(c.t.Context(), "CL.CHECK", "api", "k", quantity)
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.are("EXEC", replies[0].(*redis.Cmd).Val(), 0, 50, 45)
	c.are("EXEC", replies[1].(*redis.Cmd).Val(), 0, 50, 44)

	state, err := c.Dump(c.t.Context(), "api:k").Result()
	if err != nil {
		c.t.Fatal(err)
	}
	c.define("large", rule("funnel", 500))
	if err := c.Restore(c.t.Context(), "large:k", 0, state).Err(); err != nil {
		c.t.Fatal(err)
	}
	c.leaves("CL.CHECK large k", 0, 500, 493)
}
