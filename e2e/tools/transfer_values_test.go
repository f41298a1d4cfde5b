package tools

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
)

// makeValues makes values of all sorts, half of them with a time to live, and returns what they are.
func makeValues(t *testing.T, p *harness.Process) map[string]string {
	t.Helper()
	client := harness.Database(t, p, 0)
	for i, text := range []string{
		"", "5", "-9223372036854775808", "007", "hello", strings.Repeat("compressed ", 100), "\x00\xff\r\n,", "CELLSTAT", "CELLSTAT and more",
		fmt.Sprint(time.Now().Add(time.Hour).UnixNano()), // as a funnel's TAT
	} {
		for _, left := range []time.Duration{0, time.Hour} {
			if err := client.Set(t.Context(), fmt.Sprintf("%s:%d", left, i), text, left).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return strings2(t, p.Addr)
}

// strings2 returns the strings of a server and the milliseconds at which they expire.
func strings2(t *testing.T, addr string) map[string]string {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	keys, err := client.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, key := range keys {
		text, err := client.Get(t.Context(), key).Result()
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		found[key] = fmt.Sprintf("%q, %d", text, client.PExpireTime(t.Context(), key).Val().Milliseconds())
	}
	return found
}
