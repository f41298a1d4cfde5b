package durability

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	rdbcodec "cellserver/internal/store/rdb"
)

// formatDirs are data directories that the first versions with each format wrote: one with a snapshot and two
// logs, one with a log of which a part was flushed. They stay as they are when there are other formats. Their
// keys expire in 90 years. From format 4 on, the manifest names files of limits and overrides beside; from
// format 6 on there are keys with holds, and from format 7 on they have what was spent.
var formatDirs = []string{"testdata/format1/snapshot", "testdata/format1/flushed", "testdata/format2/snapshot", "testdata/format2/flushed",
	"testdata/format3/snapshot", "testdata/format3/flushed", "testdata/format4/snapshot", "testdata/format4/flushed",
	"testdata/format5/snapshot", "testdata/format5/flushed", "testdata/format6/snapshot", "testdata/format6/flushed",
	"testdata/format7/snapshot", "testdata/format7/flushed"}

// formatKinds returns how many kinds of limiters the version had that wrote a directory.
func formatKinds(golden string) limiter.Kind {
	switch {
	case strings.Contains(golden, "format1"):
		return limiter.Funnel + 1
	case strings.Contains(golden, "format2"):
		return limiter.Named + 1
	default:
		return limiter.Quota + 1
	}
}

// formatHolds returns the keys with holds that the version had which wrote a directory.
func formatHolds(golden string) (names []string) {
	if formatNumber(golden) >= 6 {
		names = []string{"of holds", strings.Repeat("long:", 20) + "of holds"}
	}
	return names
}

// formatSpent returns what was spent by limit, as the version had it which wrote a directory.
func formatSpent(golden string) map[string]int64 {
	if formatNumber(golden) >= 7 {
		return map[string]int64{"api": 7}
	}
	return map[string]int64{}
}

func formatNumber(golden string) int {
	number, _ := strconv.Atoi(strings.TrimPrefix(filepath.Dir(golden), "testdata/format"))
	return number
}

// writtenFormat is the one that this version writes.
const writtenFormat = "format7"

// expectedFile has a line for each key: its database, its name and when it expires in milliseconds, or -2
// where it is gone, and from format 2 on behind it what DUMP returns.
const expectedFile = "expected.txt"

// TestFormats: what earlier versions wrote is read, and kept. UPDATE_FORMAT=1 writes that of this version
// anew, which only a change of a format that no release has can be a reason for.
func TestFormats(t *testing.T) {
	t.Parallel()
	for _, golden := range formatDirs {
		t.Run(strings.TrimPrefix(golden, "testdata/"), func(t *testing.T) {
			t.Parallel()
			kinds := formatKinds(golden)
			if strings.Contains(golden, writtenFormat) && os.Getenv("UPDATE_FORMAT") != "" {
				writeFormat(t, golden)
			}
			files := contents(t, golden)
			expected := asNow(t, string(files[expectedFile]))
			if strings.Count(expected, "CELLSTAT") < 3*int(kinds-1) || strings.Count(expected, "\n") < len(formatKeys())*len(formatDBs()) {
				t.Fatalf("%s has %q", golden, expected)
			}
			dir := write(t, lacking(files, expectedFile))
			for range 2 {
				p := harness.StartKeeping(t, dir)
				if got := keysAsExpected(t, p, golden); got != expected {
					t.Errorf("got\n%s, want\n%s", got, expected)
				}
				if files["OVERRIDES"] != nil {
					harness.Exchange(t, p.Dial(t), "CL.CHECK api mallory\r\n", "*5\r\n:1\r\n")
				}
				harness.SyncAll(t, p)
				p.Stop(t, syscall.SIGKILL)
				if got := harness.SpentByLimit(harness.SpentIn(t, dir)); !maps.Equal(got, formatSpent(golden)) {
					t.Errorf("spent %v, want %v", got, formatSpent(golden))
				}
			}
		})
	}
}

// asNow returns what is expected with the states of named limits in the form that this version writes.
func asNow(t *testing.T, expected string) string {
	t.Helper()
	codec := rdbcodec.NewCodec()
	lines := strings.SplitAfter(expected, "\n")
	for i, line := range lines {
		at := strings.LastIndex(line, ` "`)
		dump, err := strconv.Unquote(strings.TrimSpace(line[max(at, 0):]))
		if err != nil || !strings.Contains(line, limiter.Named.String()+`"`) {
			continue
		}
		s, err := codec.Read([]byte(dump))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines[i] = fmt.Sprintf("%s %q\n", line[:at], codec.Append(nil, &s))
	}
	return strings.Join(lines, "")
}

func formatKeys() []string {
	return []string{"short", "of sixteen bytes", strings.Repeat("long:", 20), "\x00\xff\r\n", "gone", "later", "refunded"}
}

func formatDBs() []int { return []int{0, 1, 15} }

// kindKeys are the keys of other limiters than funnels.
func kindKeys(kinds limiter.Kind) (names []string) {
	for kind := range kinds {
		if kind != limiter.Funnel {
			names = append(names, "of "+kind.String(), strings.Repeat("long:", 20)+kind.String())
		}
	}
	return names
}

// keysAsExpected returns what expectedFile has.
func keysAsExpected(t *testing.T, p *harness.Process, golden string) string {
	t.Helper()
	kinds := formatKinds(golden)
	keys := slices.Concat(formatKeys(), kindKeys(kinds), formatHolds(golden))
	dumps := kinds > limiter.Funnel+1
	var b strings.Builder
	for _, db := range formatDBs() {
		rdb := harness.Database(t, p, db)
		for _, key := range keys {
			ms, err := rdb.Do(t.Context(), "PEXPIRETIME", key).Int64()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%d %q %d", db, key, ms)
			if dumps {
				fmt.Fprintf(&b, " %q", dumped(t, rdb, key))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// dumped returns what DUMP does, but of a funnel its TAT in decimal, as DUMP did when the files were written.
func dumped(t *testing.T, client *redis.Client, key string) string {
	t.Helper()
	if encoding, _ := client.ObjectEncoding(t.Context(), key).Result(); encoding == "int" {
		tat, err := client.Get(t.Context(), key).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		s := limiter.ValueOf(tat, limiter.NeverNs)
		return string(rdbcodec.NewCodec().Append(nil, &s))
	}
	state, err := client.Dump(t.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return state
}

// restore gives a key a state that other calls would have made an hour before it expires, in 90 years.
func restore(t *testing.T, rdb *redis.Client, key string, units int64) {
	t.Helper()
	put := func(s limiter.State, err error) {
		t.Helper()
		if err == nil {
			err = rdb.RestoreReplace(t.Context(), key, 0, string(rdbcodec.NewCodec().Append(nil, &s))).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	inNs := time.Now().AddDate(90, 0, 0).UnixNano()
	if strings.HasSuffix(key, "holds") {
		budget, err := limitertest.Budget(1000, 3600)
		if err != nil {
			t.Fatal(err)
		}
		put(limitertest.Held(budget, inNs, int(units)))
		return
	}
	for kind := range limiter.Kinds {
		if strings.HasSuffix(key, kind.String()) {
			put(limitertest.State(kind, inNs, units))
		}
	}
}

// writeFormat writes a directory of this version.
func writeFormat(t *testing.T, golden string) {
	t.Helper()
	dir := t.TempDir()
	p := harness.StartKeeping(t, dir, "--fsync-interval", "0")
	say := func(db int, args ...any) {
		t.Helper()
		rdb := harness.Database(t, p, db)
		if err := rdb.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	chargeAll := func(keys []string) {
		t.Helper()
		for _, db := range formatDBs() {
			for i, key := range keys {
				say(db, "CL.THROTTLE", key, 400_000, 1, 10_000, 300_000+i)
			}
		}
	}
	restoreAll := func(keys []string, units int64) {
		t.Helper()
		for _, db := range formatDBs() {
			for _, key := range keys {
				restore(t, harness.Database(t, p, db), key, units)
			}
		}
	}
	keys, kinds := formatKeys(), slices.Concat(kindKeys(formatKinds(golden)), formatHolds(golden))
	chargeAll(keys[:5])
	restoreAll(kinds, 1)
	say(0, "CL.LIMIT", "SET", "api", 4, 5, 60)
	say(0, "CL.LIMIT", "OVERRIDE", "api", "mallory", "DENY")
	say(0, "CL.CHECK", "api", "debited", 2, "DEBIT")
	say(0, "CL.MRESERVE", 1, "api", "held", 1, "TTL", "24h", "CHARGE")
	say(0, "SAVE")
	say(0, "DEL", keys[4])
	say(1, "CL.THROTTLE", keys[0], 400_000, 1, 10_000, 1)
	if filepath.Base(golden) == "flushed" {
		say(0, "FLUSHALL")
		chargeAll(keys[1:3])
		restoreAll(kinds, 2)
	}
	p.Stop(t, syscall.SIGKILL)
	p = harness.StartKeeping(t, dir, "--fsync-interval", "0")
	chargeAll(keys[5:])
	say(0, "CL.CHECK", "api", "debited", 4, "DEBIT")
	restoreAll(kinds[len(kinds)/2:], 4)
	say(15, "CL.THROTTLE", keys[6], 400_000, 1, 10_000, -5)
	expected := keysAsExpected(t, p, golden)
	p.Stop(t, syscall.SIGKILL)
	if err := os.RemoveAll(golden); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(golden, 0o755); err != nil { //nolint:gosec // a part of the source
		t.Fatal(err)
	}
	for name, b := range having(contents(t, dir), expectedFile, []byte(expected)) {
		if err := os.WriteFile(filepath.Join(golden, name), b, 0o644); err != nil { //nolint:gosec // a part of the source
			t.Fatal(err)
		}
	}
}
