package clients

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
)

// TestConditionalWrites: go-redis's methods for locks and caches of Redis 8.4, whose effects outlast a
// restart. What it tries whenever it connects counts as no error of a code.
func TestConditionalWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := harness.StartKeeping(t, dir, "--fsync-interval", "0")
	ctx, client := t.Context(), harness.GoRedis(t, redis.Options{Addr: p.Addr})
	want := func(what string, err error, ok bool) {
		t.Helper()
		if err != nil && !errors.Is(err, redis.Nil) || !ok {
			t.Errorf("%s: %t, %v", what, ok, err)
		}
	}
	is := func(what string, r *redis.StatusCmd, ok bool) {
		t.Helper()
		want(what, r.Err(), (r.Val() == "OK") == ok)
	}
	deleted := func(what string, a redis.DelExArgs, n int64) {
		t.Helper()
		r := client.DelExArgs(ctx, "lock", a)
		want(what, r.Err(), r.Val() == n)
	}
	is("take", client.SetIFNE(ctx, "lock", "mine", "mine", time.Hour), true)
	is("prolong another's", client.SetIFEQ(ctx, "lock", "theirs", "theirs", time.Hour), false)
	is("prolong", client.SetIFEQ(ctx, "lock", "mine", "mine", 2*time.Hour), true)
	digest := client.Digest(ctx, "lock")
	want("digest", digest.Err(), digest.Val() != 0)
	is("by its digest", client.SetIFDEQ(ctx, "lock", "next", digest.Val(), time.Hour), true)
	is("by the old digest", client.SetIFDEQ(ctx, "lock", "last", digest.Val(), time.Hour), false)
	deleted("release another's", redis.DelExArgs{Mode: "IFEQ", MatchValue: "mine"}, 0)
	deleted("release by the digest", redis.DelExArgs{Mode: "IFDNE", MatchDigest: digest.Val()}, 1)
	together := redis.MSetEXArgs{Condition: redis.NX, Expiration: &redis.ExpirationOption{Mode: redis.EX, Value: 3600}}
	for n := int64(1); n >= 0; n-- {
		r := client.MSetEX(ctx, together, "a", "1", "b", "2")
		want("set together", r.Err(), r.Val() == n)
	}
	if n := p.Metric(t, `cellserver_errors_total{code="ERR"}`); n != 0 {
		t.Errorf("%.0f errors", n)
	}
	p.Signal(t, syscall.SIGKILL)
	p.Await(t)
	p = harness.StartKeeping(t, dir, "--fsync-interval", "0")
	client = harness.GoRedis(t, redis.Options{Addr: p.Addr})
	if n, err := client.Exists(ctx, "lock", "a", "b").Result(); n != 2 || client.TTL(ctx, "a").Val() <= 0 {
		t.Errorf("%d keys are left, %v", n, err)
	}
}
