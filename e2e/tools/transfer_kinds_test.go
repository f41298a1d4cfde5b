package tools

import (
	"errors"
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
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	rdbcodec "cellserver/internal/store/rdb"
	"cellserver/internal/test/redistest"
)

// makeHolds makes keys of a named limit with holds.
func makeHolds(t *testing.T, p *harness.Process, db int) (keys int) {
	t.Helper()
	budget, err := limitertest.Budget(10_000, 3600)
	if err != nil {
		t.Fatal(err)
	}
	some := []int{1, 20, 4096}
	for _, holds := range some {
		s, err := limitertest.Held(budget, time.Now().UnixNano(), holds)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("budget:%d", holds)
		if err := harness.Database(t, p, db).Restore(t.Context(), name, 0, string(rdbcodec.NewCodec().Append(nil, &s))).Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return len(some)
}

// makeKinds makes a key of each kind, named after it.
func makeKinds(t *testing.T, p *harness.Process, db int) {
	t.Helper()
	rdb := harness.Database(t, p, db)
	for kind := range limiter.Kinds {
		s, err := limitertest.State(kind, time.Now().UnixNano()+limitertest.LifeNs, 3)
		if err != nil {
			t.Fatal(err)
		}
		if err := rdb.Restore(t.Context(), kind.String(), 0, string(rdbcodec.NewCodec().Append(nil, &s))).Err(); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
	}
}

func transferred(t *testing.T, want string, args ...string) {
	t.Helper()
	if code, out, errOut := harness.Call(t, nil, args...); code != 0 || out+errOut != want {
		t.Fatalf("%q: got %d, %q, %q, want %q", args, code, out, errOut, want)
	}
}

// TestKindsAreMoved: limiters of all kinds move by stream, CSV and directory, and are the same afterwards.
func TestKindsAreMoved(t *testing.T) {
	t.Parallel()
	first := harness.StartServer(t)
	makeKinds(t, first, 0)
	makeKinds(t, first, 7)
	dir := t.TempDir()
	file, data, lines := filepath.Join(dir, "keys.dump"), filepath.Join(dir, "data"), filepath.Join(dir, "keys.csv")
	n := 2 * int(limiter.Kinds)
	dumped := fmt.Sprintf("dump: %d keys\n", n)
	transferred(t, dumped, "dump", "--from", url(first), file)
	transferred(t, fmt.Sprintf("keys        %d\nloaded      %[1]d\n", n), "load", "--into", data, file)
	transferred(t, dumped, "dump", "--from", data, "--format", "csv", lines)
	want := harness.Dumps(t, first, 0)
	for _, load := range [][]string{{"load", file}, {"load", "--format", "csv", lines}} {
		p := harness.StartServer(t)
		args := append(slices.Clone(load), "--into", url(p))
		transferred(t, fmt.Sprintf("keys        %d\nloaded      %[1]d\n", n), args...)
		transferred(t, fmt.Sprintf("keys        %d\nloaded      0\nleft        %[1]d: the target's state is the same or later\n", n), args...)
		for _, db := range []int{0, 7} {
			if got := harness.Dumps(t, p, db); !maps.Equal(got, harness.Dumps(t, first, db)) {
				t.Errorf("%q: database %d has %q", load, db, got)
			}
		}
	}
	code, out, errOut := harness.Call(t, nil, "check", data)
	kinds := fmt.Sprintf("live keys  %d\n", n)
	for kind := range limiter.Kinds {
		kinds += fmt.Sprintf("           2 %s\n", kind)
	}
	if code != 0 || errOut != "" || !strings.HasSuffix(out, "\n"+kinds) {
		t.Errorf("check: %d, %q, %q", code, out, errOut)
	}
	p := harness.StartServer(t, "--data-dir", data)
	if got := harness.Dumps(t, p, 0); !maps.Equal(got, want) {
		t.Errorf("from the directory: %q, want %q", got, want)
	}
	p.Stop(t, syscall.SIGTERM)
}

// TestHoldsAreMoved: keys with holds move by stream, CSV, directory and import, and are the same afterwards.
func TestHoldsAreMoved(t *testing.T) {
	t.Parallel()
	first := harness.StartServer(t)
	n := makeHolds(t, first, 0)
	want, dir := harness.Dumps(t, first, 0), t.TempDir()
	file, data, lines := filepath.Join(dir, "keys.dump"), filepath.Join(dir, "data"), filepath.Join(dir, "keys.csv")
	transferred(t, fmt.Sprintf("dump: %d keys\n", n), "dump", "--from", url(first), file)
	transferred(t, fmt.Sprintf("keys        %d\nloaded      %[1]d\n", n), "load", "--into", data, file)
	transferred(t, fmt.Sprintf("dump: %d keys\n", n), "dump", "--from", data, "--format", "csv", lines)
	for _, load := range [][]string{{"load", file}, {"load", "--format", "csv", lines}} {
		p := harness.StartServer(t)
		transferred(t, fmt.Sprintf("keys        %d\nloaded      %[1]d\n", n), append(slices.Clone(load), "--into", url(p))...)
		if got := harness.Dumps(t, p, 0); !maps.Equal(got, want) {
			t.Errorf("%q: other states", load)
		}
	}
	if code, out, errOut := harness.Call(t, nil, "check", data); code != 0 || errOut != "" || !strings.HasSuffix(out, fmt.Sprintf("%d cl-limit\n", n)) {
		t.Errorf("check: %d, %q, %q", code, out, errOut)
	}
	if got := harness.Dumps(t, harness.StartServer(t, "--data-dir", data), 0); !maps.Equal(got, want) {
		t.Error("from the directory: other states")
	}
	into := harness.StartServer(t)
	if code, out, errOut := harness.Call(t, nil, "import", "--into", url(into), url(first)); code != 0 || out != fmt.Sprintf("keys        %d\nimported    %[1]d\n", n) {
		t.Errorf("import: %d, %q, %q", code, out, errOut)
	}
	for name, state := range harness.Dumps(t, into, 0) { // by another clock
		if len(state) != len(want[name]) {
			t.Errorf("%s was imported with %d bytes of %d", name, len(state), len(want[name]))
		}
	}
}

// TestKindsAreImported into another cellserver, shifted to its clock, keeping stricter states there.
func TestKindsAreImported(t *testing.T) {
	t.Parallel()
	from, into := harness.StartServer(t), harness.StartServer(t)
	makeKinds(t, from, 0)
	target := harness.Database(t, into, 0)
	for _, made := range [][]any{
		{"CL.THROTTLE", "cl-window", 4, 1, 3600}, {"CL.BUCKET", "RESET", "cl-bucket", 2}, {"CL.SLIDINGWINDOW", "cl-slidingwindow", 5, 7200},
	} {
		if err := target.Do(t.Context(), made...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	kept := harness.Dumps(t, into, 0)
	code, out, errOut := harness.Call(t, nil, "import", "--into", url(into), url(from))
	want := fmt.Sprintf("keys        %d\nimported    %d\nleft        2: the target's state is the same or later\n"+
		"refused     1: the target's key holds something else\n", limiter.Kinds, limiter.Kinds-3)
	if code != 1 || out != want || errOut != "cellserver: import: 1 key was refused\n" {
		t.Errorf("got %d, %q, %q", code, out, errOut)
	}
	for name, dumped := range kept {
		if got := harness.Dumps(t, into, 0)[name]; got != dumped {
			t.Errorf("%s was %q and is %q", name, dumped, got)
		}
	}
	source := harness.Database(t, from, 0)
	for kind := range limiter.Kinds {
		name := kind.String()
		if _, ok := kept[name]; ok {
			continue
		}
		typed, err := target.Type(t.Context(), name).Result()
		wantNs, err1 := source.PExpireTime(t.Context(), name).Result()
		gotNs, err2 := target.PExpireTime(t.Context(), name).Result()
		if errors.Join(err, err1, err2) != nil || typed != kind.Type() || max(gotNs-wantNs, wantNs-gotNs) > measured {
			t.Errorf("%s is a %s that expires at %d, want %d: %v", name, typed, gotNs, wantNs, errors.Join(err, err1, err2))
		}
	}
	code, out, _ = harness.Call(t, nil, "import", "--dry-run", url(from))
	for _, line := range []string{`db 0  "funnel"  empty in `, `db 0  "cl-window"  cl-window, expires in `, `db 0  "cl-bucket"  cl-bucket` + "\n"} {
		if code != 0 || !strings.Contains(out, line) {
			t.Errorf("a dry run: %d, %q, which lacks %q", code, out, line)
		}
	}
}

// TestFunnelsAndValuesGoToRedis: other limiters are counted and left out, except what reservations have
// debited.
func TestFunnelsAndValuesGoToRedis(t *testing.T) {
	t.Parallel()
	from, into := harness.StartServer(t), harness.StartRedis(t)
	makeKinds(t, from, 0)
	file := filepath.Join(t.TempDir(), "keys.dump")
	transferred(t, fmt.Sprintf("dump: %d keys\n", limiter.Kinds), "dump", "--from", url(from), file)
	others := ""
	for _, kind := range slices.Sorted(maps.Keys(harness.Dumps(t, from, 0))) {
		if kind != "funnel" && kind != "cl-reserving" && kind != "value" {
			others += fmt.Sprintf("skipped     1: a %s, which Redis cannot hold\n", kind)
		}
	}
	transferred(t, fmt.Sprintf("keys        %d\nimported    3\n", limiter.Kinds)+others, "import", "--into", url(into), url(from))
	transferred(t, fmt.Sprintf("keys        %d\nloaded      0\nleft        3: the target's state is the same or later\n", limiter.Kinds)+others, "load", "--into", url(into), file)
	source, target := harness.Database(t, from, 0), redistest.NewClient(t, redis.Options{Addr: into.Addr})
	for _, name := range []string{"funnel", "cl-reserving"} {
		want, err1 := source.Get(t.Context(), name).Int64()
		got, err2 := target.Get(t.Context(), name).Int64()
		if errors.Join(err1, err2) != nil || max(want-got, got-want) > int64(measured) {
			t.Errorf("%s: %d, want %d: %v", name, got, want, errors.Join(err1, err2))
		}
	}
	// States of other limiters that a Redis holds for safe keeping are no funnels.
	if err := target.Restore(t.Context(), "kept", time.Hour, harness.Dumps(t, from, 0)["cl-window"]).Err(); err != nil {
		t.Fatal(err)
	}
	transferred(t, "keys        2\nimported    0\nskipped     1: does not expire\nskipped     1: not a number of nanoseconds\n",
		"import", "--into", url(from), "--match", "[kv]*", url(into))
}

// TestUserWhoMayNotDump: funnels are read by GET; other keys are reported.
func TestUserWhoMayNotDump(t *testing.T) {
	t.Parallel()
	users := harness.WriteFile(t, "user default on nopass ~* &* +@all\nuser mover on >pw ~* +scan +get +pttl +info +select +time +multi +exec\n")
	from, into := harness.StartServer(t, "--aclfile", users), harness.StartServer(t)
	makeKinds(t, from, 0)
	transferred(t, fmt.Sprintf("keys        %d\nimported    2\nskipped     %d: not a funnel; the user needs permission to DUMP\n", limiter.Kinds, limiter.Kinds-2),
		"import", "--into", url(into), "redis://mover:pw@"+from.Addr)
}
