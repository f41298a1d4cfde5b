package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// formatDirs are data directories that the versions with format 1 wrote: one with a snapshot and two logs, one with a log of
// which a part was flushed. They stay as they are when there are other formats. Their keys expire in 90 years.
var formatDirs = []string{"testdata/format1/snapshot", "testdata/format1/flushed"}

// expectedFile has a line for each key: its database, its name and when it expires in milliseconds, or -2 where it is gone.
const expectedFile = "expected.txt"

// TestFormat1: what earlier versions wrote is read, and kept. UPDATE_FORMAT=1 writes it anew, which only a change of a format
// that no release has can be a reason for.
func TestFormat1(t *testing.T) {
	t.Parallel()
	for _, golden := range formatDirs {
		t.Run(filepath.Base(golden), func(t *testing.T) {
			t.Parallel()
			if os.Getenv("UPDATE_FORMAT") != "" {
				writeFormat(t, golden)
			}
			files := contents(t, golden)
			expected := string(files[expectedFile])
			if strings.Count(expected, "\n") != len(formatKeys())*len(formatDBs()) {
				t.Fatalf("%s has %q", golden, expected)
			}
			dir := write(t, lacking(files, expectedFile))
			for range 2 {
				p := startKeeping(t, dir)
				if got := expiries(t, p); got != expected {
					t.Errorf("got\n%s, want\n%s", got, expected)
				}
				syncAll(t, p)
				p.Stop(t, syscall.SIGKILL)
			}
		})
	}
}

func formatKeys() []string {
	return []string{"short", "of sixteen bytes", strings.Repeat("long:", 20), "\x00\xff\r\n", "gone", "later", "refunded"}
}

func formatDBs() []int { return []int{0, 1, 15} }

func database(t *testing.T, p *process, db int) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: p.addr, DB: db, Protocol: 2, DisableIdentity: true, MaxRetries: -1, ReadTimeout: ioTimeout})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// expiries returns what expectedFile has.
func expiries(t *testing.T, p *process) string {
	t.Helper()
	var b strings.Builder
	for _, db := range formatDBs() {
		rdb := database(t, p, db)
		for _, key := range formatKeys() {
			ms, err := rdb.Do(t.Context(), "PEXPIRETIME", key).Int64()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%d %q %d\n", db, key, ms)
		}
	}
	return b.String()
}

// writeFormat writes a directory of this version.
func writeFormat(t *testing.T, golden string) {
	t.Helper()
	dir := t.TempDir()
	p := startKeeping(t, dir, "--fsync-interval", "0")
	say := func(db int, args ...any) {
		t.Helper()
		rdb := database(t, p, db)
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
	keys := formatKeys()
	chargeAll(keys[:5])
	say(0, "SAVE")
	say(0, "DEL", keys[4])
	say(1, "CL.THROTTLE", keys[0], 400_000, 1, 10_000, 1)
	if filepath.Base(golden) == "flushed" {
		say(0, "FLUSHALL")
		chargeAll(keys[1:3])
	}
	p.Stop(t, syscall.SIGKILL)
	p = startKeeping(t, dir, "--fsync-interval", "0")
	chargeAll(keys[5:])
	say(15, "CL.THROTTLE", keys[6], 400_000, 1, 10_000, -5)
	expected := expiries(t, p)
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
