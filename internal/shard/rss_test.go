package shard

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/test/racetest"
)

// residentBytes is the process's resident set.
func residentBytes(tb testing.TB) int {
	tb.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		tb.Skip("no /proc:", err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		tb.Fatal(err)
	}
	return resident * os.Getpagesize()
}

// residentKeyBytes has lengths of keys, and fixed windows with 20 more bytes, each with the permitted bytes a
// key: on average from one to four million keys, and at worst.
var residentKeyBytes = []struct {
	keyBytes, maxMean, maxWorst int
	kind                        limiter.Kind
}{
	{16, 48, 64, limiter.Funnel}, {24, 24 + 44, 24 + 60, limiter.Funnel}, {36, 36 + 44, 36 + 60, limiter.Funnel},
	{64, 64 + 44, 64 + 60, limiter.Funnel}, {16, 36 + 44, 36 + 60, limiter.FixedWindow},
}

// TestResidentBytes bounds the resident memory of growing stores, each in its own process.
func TestResidentBytes(t *testing.T) {
	if i, err := strconv.Atoi(os.Getenv("CELLSERVER_RESIDENT")); err == nil {
		growResident(t, residentKeyBytes[i].kind, residentKeyBytes[i].keyBytes, residentKeyBytes[i].maxMean, residentKeyBytes[i].maxWorst)
		return
	}
	if racetest.OmitsLong() {
		t.Skip("needs 1 GB, and more with the race detector")
	}
	if _, err := os.Stat("/proc/self/statm"); err != nil {
		t.Skip("no /proc:", err)
	}
	for i := range residentKeyBytes {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestResidentBytes$", "-test.v")
		cmd.Env = append(os.Environ(), fmt.Sprint("CELLSERVER_RESIDENT=", i))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "bytes a key") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

func growResident(t *testing.T, kind limiter.Kind, keyBytes, maxMean, maxWorst int) {
	const first, last, step = 1_000_000, 4_000_000, 100_000 // two doublings: segments split in the same phases again
	s, rule := New(), limiter.OfFunnel(limit(t, 1<<20, 1, 3600))
	if kind != limiter.Funnel {
		rule = windowRule(kind, 1<<20, 3600)
	}
	least, worst, sum, n := 1e9, 0.0, 0.0, 0
	for keys := step; keys <= last; keys += step {
		fillRules(s, rule, keyBytes, keys-step, keys)
		if keys < first {
			continue
		}
		perKey := float64(residentBytes(t)) / float64(keys)
		if keys%1_000_000 == 0 {
			t.Logf("%d keys of %d bytes, kind %d: %.1f bytes a key", keys, keyBytes, kind, perKey)
		}
		least, worst, sum, n = min(least, perKey), max(worst, perKey), sum+perKey, n+1
	}
	mean := sum / float64(n)
	t.Logf("keys of %d bytes, kind %d: at the least %.1f, on average %.1f, at the worst %.1f bytes a key", keyBytes, kind, least, mean, worst)
	if mean > float64(maxMean) || worst > float64(maxWorst) {
		t.Errorf("%.1f on average, %.1f at the worst, want %d, %d", mean, worst, maxMean, maxWorst)
	}
	runtime.KeepAlive(s)
}
