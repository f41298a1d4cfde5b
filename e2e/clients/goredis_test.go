package clients

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
)

func TestGoRedis(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "cell.sock")
	open := harness.StartServer(t, "--unixsocket", socket)
	locked := harness.StartServer(t, "--requirepass", "open sesame")
	tests := []struct {
		name    string
		options redis.Options
	}{
		{"RESP3", redis.Options{Addr: open.Addr}},
		{"RESP2", redis.Options{Addr: open.Addr, Protocol: 2}},
		{"unix socket", redis.Options{Network: "unix", Addr: socket}},
		{"password", redis.Options{Addr: locked.Addr, Password: "open sesame"}},
		{"password, user, RESP2", redis.Options{Addr: locked.Addr, Username: "default", Password: "open sesame", Protocol: 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client := harness.GoRedis(t, tt.options)
			if err := client.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			testGoRedisCalls(t, client)
			testGoRedisPipeline(t, client)
			testGoRedisExactly(t, client)
			other := tt.options
			other.DB, other.ClientName = 3, "other"
			testGoRedisDatabases(t, client, harness.GoRedis(t, other))
		})
	}
}

// throttleArgs returns a call that is allowed burst+1 times and then limited for the rest of the test.
func throttleArgs(key string, burst int) []any {
	return []any{"CL.THROTTLE", key, burst, 1, 1_000_000}
}

func testGoRedisCalls(t *testing.T, client *redis.Client) {
	ctx := t.Context()
	for _, want := range [][]int64{{0, 16, 15, -1}, {0, 16, 14, -1}} {
		got, err := client.Do(ctx, "CL.THROTTLE", "laoqian:reply", 15, 1, 3600, 1).Int64Slice()
		if err != nil || len(got) != 5 || !slices.Equal(got[:4], want) {
			t.Fatalf("got %v, %v, want %v and the time until it is empty", got, err, want)
		}
	}
	if got, err := client.Do(ctx, "CL.THROTTLE", "a").Result(); err == nil || !strings.HasPrefix(err.Error(), "Cell error: ") {
		t.Errorf("too few arguments got %v, %v", got, err)
	}
	if ttl, err := client.PTTL(ctx, "laoqian:reply").Result(); err != nil || ttl <= time.Hour || ttl > 2*time.Hour {
		t.Errorf("the key lives for %s, %v; want at most two hours", ttl, err)
	}
	if n, err := client.Del(ctx, "laoqian:reply", "no such key").Result(); err != nil || n != 1 {
		t.Errorf("DEL got %d, %v, want 1", n, err)
	}
}

func testGoRedisPipeline(t *testing.T, client *redis.Client) {
	const calls = 1000
	pipe := client.Pipeline()
	for range calls {
		pipe.Do(t.Context(), throttleArgs("pipeline", calls-1)...)
	}
	replies, err := pipe.Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, reply := range replies {
		got, err := reply.(*redis.Cmd).Int64Slice()
		if err != nil || len(got) != 5 || got[0] != 0 || got[2] != int64(calls-1-i) {
			t.Fatalf("reply %d is %v, %v; want %d remaining", i, got, err, calls-1-i)
		}
	}
}

// testGoRedisExactly: many clients on one key get exactly as many calls allowed as its limit.
func testGoRedisExactly(t *testing.T, client *redis.Client) {
	const limit, clients, callsEach = 100, 16, 25
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range callsEach {
				got, err := client.Do(t.Context(), throttleArgs("exactly", limit-1)...).Int64Slice()
				if err != nil || len(got) != 5 {
					t.Errorf("got %v, %v", got, err)
					return
				}
				allowed.Add(1 - got[0])
			}
		})
	}
	wg.Wait()
	if n := allowed.Load(); n != limit {
		t.Errorf("%d calls passed, want %d", n, limit)
	}
}

func testGoRedisDatabases(t *testing.T, first, other *redis.Client) {
	ctx := t.Context()
	for i, client := range []*redis.Client{first, other, first} {
		got, err := client.Do(ctx, throttleArgs("one of two", 0)...).Int64Slice()
		want := int64(i / 2) // the other database has its own key
		if err != nil || len(got) != 5 || got[0] != want {
			t.Errorf("call %d got %v, %v; want limited %d", i, got, err, want)
		}
	}
	if n, err := other.DBSize(ctx).Result(); err != nil || n != 1 {
		t.Errorf("the other database has %d keys, %v, want 1", n, err)
	}
	if name, err := other.ClientGetName(ctx).Result(); err != nil || name != "other" {
		t.Errorf("the client's name is %q, %v", name, err)
	}
	if info, err := other.ClientInfo(ctx).Result(); err != nil || info.DB != 3 || info.Name != "other" || !strings.HasPrefix(info.LibName, "go-redis") {
		t.Errorf("the client's info is %+v, %v", info, err)
	}
	if err := other.FlushDB(ctx).Err(); err != nil {
		t.Error(err)
	}
	if n, err := first.Exists(ctx, "one of two").Result(); err != nil || n != 1 {
		t.Errorf("after the other's FLUSHDB the key counts %d, %v, want 1", n, err)
	}
}

func TestGoRedisWithoutThePassword(t *testing.T) {
	locked := harness.StartServer(t, "--requirepass", "open sesame")
	for password, want := range map[string]string{"": "NOAUTH ", "open sesam": "WRONGPASS "} {
		client := harness.GoRedis(t, redis.Options{Addr: locked.Addr, Password: password})
		err := client.Do(t.Context(), throttleArgs("a", 0)...).Err()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("with the password %q: got %v, want %s", password, err, want)
		}
	}
	if n := locked.Metric(t, "cellserver_decisions_total"); n != 0 {
		t.Errorf("%g decisions were made for clients without the password", n)
	}
}
