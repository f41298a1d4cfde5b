package clients

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/redistest"
)

// TestClientSideCache: go-redis with its cache turned on reads what others write. It asks for the default
// mode of CLIENT TRACKING, as redis-py, Jedis and node-redis do, and caches nothing if that is refused.
func TestClientSideCache(t *testing.T) {
	ctx, server := t.Context(), harness.StartServer(t)
	caching := redistest.NewClient(t, redis.Options{Addr: server.Addr, ClientSideCacheConfig: &redis.ClientSideCacheConfig{}})
	other := redistest.NewClient(t, redis.Options{Addr: server.Addr})
	for want := int64(1); want <= 3; want++ {
		if got, err := other.Incr(ctx, "counter").Result(); got != want {
			t.Fatalf("INCR: %d, %v", got, err)
		}
		if got, err := caching.Get(ctx, "counter").Int64(); got != want {
			t.Errorf("GET: %d, %v; want %d", got, err, want)
		}
	}
	store := harness.StartServer(t, "--store", "redis://"+harness.StartRedis(t).Addr, "--store-timeout", "30s")
	for _, client := range []*redis.Client{other, redistest.NewClient(t, redis.Options{Addr: store.Addr})} {
		if err := client.Do(ctx, "CLIENT", "TRACKING", "ON").Err(); err == nil || !strings.Contains(err.Error(), "turn client-side caching off") {
			t.Errorf("CLIENT TRACKING ON: %v, want what to turn off", err)
		}
		if err := client.Do(ctx, "CLIENT", "TRACKING", "ON", "OPTIN").Err(); err != nil {
			t.Error(err)
		}
	}
}
