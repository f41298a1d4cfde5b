//go:build unix

package durability

import (
	"syscall"
	"testing"
	"time"

	"cellserver/e2e/harness"
)

// TestKillAcrossABoundary: what was confirmed before a kill holds until its window's end, and not beyond,
// also if the server starts again in the next window. Debits beyond the quota hold, too.
func TestKillAcrossABoundary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := harness.StartKeeping(t, dir, "--fsync-interval", "0")
	quota := func(key string, args ...any) []int64 {
		t.Helper()
		numbers, err := harness.Database(t, p, 0).Do(t.Context(), append([]any{"CL.QUOTA", key}, args...)...).Int64Slice()
		if err != nil || len(numbers) != 5 {
			t.Fatal(numbers, err)
		}
		return numbers
	}
	again := func() {
		t.Helper()
		p.Stop(t, syscall.SIGKILL)
		p = harness.StartKeeping(t, dir, "--fsync-interval", "0")
	}
	if r := quota("year", 9, "YEAR", 7, "DEBIT", "TZ", "Europe/Berlin"); r[0] != 0 || r[2] != 2 {
		t.Fatal(r)
	}
	quota("over", 9, "YEAR", 20, "DEBIT")
	for range 3 {
		began := time.Now()
		r := quota("second", 9, "SECOND", 9)
		answered := time.Now()
		again()
		asked := time.Now()
		next := quota("second", 9, "SECOND", 1)
		switch now := time.Now(); {
		case r[0] != 0:
			t.Fatalf("the first call of a second: %v", r)
		case next[0] == 1 && asked.Truncate(time.Second).After(answered.Truncate(time.Second)):
			t.Errorf("the window of a second was not over after %v: %v", asked.Sub(answered), next)
		case next[0] == 0 && now.Truncate(time.Second).Equal(began.Truncate(time.Second)):
			t.Errorf("the kill has emptied a window: %v", next)
		}
		if r := quota("year", 9, "YEAR", 0); r[2] != 2 || r[4] < 1 {
			t.Errorf("the year's quota: %v", r)
		}
		if r := quota("over", 25, "YEAR", 0); r[2] != 5 {
			t.Errorf("the debit: %v", r)
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	}
}
