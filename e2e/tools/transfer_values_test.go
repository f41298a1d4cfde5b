package tools

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
)

// keptValue is a value, and the time since 1970 at which it expires, or -1.
type keptValue struct {
	text string
	at   time.Duration
}

// makeValues makes values of all sorts, half of them with a time to live.
func makeValues(t *testing.T, p *harness.Process) map[string]keptValue {
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
	return valuesOf(t, client)
}

func valuesOf(t *testing.T, client *redis.Client) map[string]keptValue {
	t.Helper()
	found := map[string]keptValue{}
	for _, key := range client.Keys(t.Context(), "*").Val() {
		text, err := client.Get(t.Context(), key).Result()
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		found[key] = keptValue{text, client.PExpireTime(t.Context(), key).Val()}
	}
	return found
}

// TestValuesAreMoved: by stream, CSV and directory, with their times to live, beside the limiters.
func TestValuesAreMoved(t *testing.T) {
	t.Parallel()
	first := harness.StartServer(t)
	want := makeValues(t, first)
	dir := t.TempDir()
	file, data, lines := filepath.Join(dir, "keys.dump"), filepath.Join(dir, "data"), filepath.Join(dir, "keys.csv")
	n := len(want)
	transferred(t, fmt.Sprintf("dump: %d keys\n", n), "dump", "--from", url(first), file)
	transferred(t, fmt.Sprintf("keys        %d\nloaded      %[1]d\n", n), "load", "--into", data, file)
	transferred(t, fmt.Sprintf("dump: %d keys\n", n), "dump", "--from", data, "--format", "csv", lines)
	second := harness.StartServer(t)
	for _, again := range []string{
		fmt.Sprintf("keys        %d\nloaded      %[1]d\n", n),
		fmt.Sprintf("keys        %d\nloaded      0\nleft        %[1]d: the target's state is the same or later\n", n),
	} {
		transferred(t, again, "load", "--into", url(second), "--format", "csv", lines)
	}
	if code, out, errOut := harness.Call(t, nil, "check", data); code != 0 || !strings.HasSuffix(out, fmt.Sprintf("\nlive keys  %d\n           %[1]d value\n", n)) {
		t.Errorf("check: %d, %q, %q", code, out, errOut)
	}
	third := harness.StartServer(t, "--data-dir", data)
	for _, p := range []*harness.Process{second, third} {
		if got := valuesOf(t, harness.Database(t, p, 0)); !maps.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if got := harness.Dumps(t, second, 0); !maps.Equal(got, harness.Dumps(t, first, 0)) {
		t.Errorf("the dumps are %q", got)
	}
	third.Stop(t, syscall.SIGTERM)
}

// TestValuesAreImported into a cellserver and into a Redis. Of two values the later or the higher one stays.
func TestValuesAreImported(t *testing.T) {
	t.Parallel()
	from := harness.StartServer(t)
	source, want := harness.Database(t, from, 0), makeValues(t, from)
	code, out, _ := harness.Call(t, nil, "import", "--dry-run", "--match", "1h*:1", url(from))
	if code != 0 || !strings.Contains(out, `"1h0m0s:1"  value, expires in 5`) || !strings.HasSuffix(out, "\nto import   1\n") {
		t.Errorf("a dry run: %d, %q", code, out)
	}
	imported := fmt.Sprintf("keys        %d\nimported    %[1]d\n", len(want))
	for _, into := range []*harness.Process{harness.StartServer(t), harness.StartRedis(t)} {
		target := harness.Database(t, into, 0)
		transferred(t, imported, "import", "--into", url(into), url(from))
		for key, got := range valuesOf(t, target) {
			if w := want[key]; got.text != w.text || max(got.at-w.at, w.at-got.at) > measured {
				t.Errorf("%s: got %+v, want %+v", key, got, w)
			}
		}
		for _, c := range []struct {
			on   *redis.Client
			args []any
		}{
			{target, []any{"INCRBY", "1h0m0s:1", 10}}, {source, []any{"INCR", "1h0m0s:1"}}, {source, []any{"INCRBY", "0s:1", 20}},
			{target, []any{"SET", "1h0m0s:4", "other", "EX", 30}}, {target, []any{"SET", "0s:4", "other"}},
		} {
			if err := c.on.Do(t.Context(), c.args...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		transferred(t, "keys        4\nimported    2\nleft        2: the target's state is the same or later\n",
			"import", "--into", url(into), "--match", "*[sm]:[14]", url(from))
		got := valuesOf(t, target)
		for key, text := range map[string]string{"1h0m0s:1": "15", "0s:1": source.Get(t.Context(), "0s:1").Val(), "1h0m0s:4": "hello", "0s:4": "other"} {
			if got[key].text != text {
				t.Errorf("%s is %q, want %q", key, got[key].text, text)
			}
		}
		source.Do(t.Context(), "SET", "1h0m0s:1", 5, "KEEPTTL")
		source.Do(t.Context(), "SET", "0s:1", 5)
	}
}

// TestValuesReplaceNothingElse: neither limiters nor lists; and the target's settings refuse some.
func TestValuesReplaceNothingElse(t *testing.T) {
	t.Parallel()
	from, into, other := harness.StartServer(t), harness.StartServer(t, "--require-ttl", "--max-value-bytes", "1024"), harness.StartRedis(t)
	makeValues(t, from)
	makeFunnels(t, into, 0, 2, "1h0m0s:")
	asRedisCell(t, other, 0, 2, "1h0m0s:")
	harness.Exchange(t, harness.DialTCP(t, other.Addr), "LPUSH 0s:1 1\r\n", ":1\r\n")
	before := harness.Dumps(t, into, 0)
	const held = "refused     %d: the target's key holds something else\n"
	for p, want := range map[*harness.Process][]string{
		other: {"imported    17\n", fmt.Sprintf(held, 3)},
		into:  {"imported    7\n", "refused     9: ERR the value would never expire, ", "refused     2: ERR value is longer than 1024 bytes", fmt.Sprintf(held, 2)},
	} {
		code, out, _ := harness.Call(t, nil, "import", "--into", url(p), url(from))
		if code != 1 || slices.ContainsFunc(want, func(line string) bool { return !strings.Contains(out, "\n"+line) }) {
			t.Errorf("got %d, %q, want %q", code, out, want)
		}
	}
	after := harness.Dumps(t, into, 0)
	for key, dumped := range before {
		if after[key] != dumped {
			t.Errorf("%s was %q and is %q", key, dumped, after[key])
		}
	}
}
