package durability

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/store"
)

// dayIn returns the number of the day in a zone.
func dayIn(t *testing.T, zone string) int32 {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().In(location)
	_, offset := at.Zone()
	return int32((at.Unix() + int64(offset)) / 86_400)
}

// TestSpentIsKept: what was spent is there after a stop, a kill and a snapshot, whatever became of the keys
// and of the limit. A day is one of the zone of the limit's first quota.
func TestSpentIsKept(t *testing.T) {
	t.Parallel()
	const ahead, behind = "Pacific/Kiritimati", "Pacific/Pago_Pago" // which never have the same day
	limits := func(zone string) string {
		return "limits:\n  org: {rules: [{algorithm: quota, max_count: 1000, every: month, time_zone: " + zone + "}]}\n" +
			"  user: {rules: [{algorithm: fixed_window, max_count: 1000, period: 24h}]}\n"
	}
	dir, file := t.TempDir(), harness.WriteFile(t, limits(ahead))
	start := func() *harness.Process {
		return harness.StartKeeping(t, dir, "--fsync-interval", "0", "--limits-file", file)
	}
	p := start()
	days := func() [3]int32 { return [3]int32{dayIn(t, behind), dayIn(t, "UTC"), dayIn(t, ahead)} }
	began := days()
	say := func(args ...any) {
		t.Helper()
		if err := harness.Database(t, p, 0).Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	want := func(after string, orgBehind, orgAhead, user int64) {
		t.Helper()
		harness.SyncAll(t, p)
		if days() != began {
			t.Skip("a day began")
		}
		want := []store.Spent{
			{SpentAt: store.SpentAt{Limit: "org", Day: began[0]}, Units: orgBehind},
			{SpentAt: store.SpentAt{Limit: "org", Day: began[2]}, Units: orgAhead},
			{SpentAt: store.SpentAt{Limit: "user", Day: began[1]}, Units: user},
		}
		want = slices.DeleteFunc(want, func(of store.Spent) bool { return of.Units == 0 })
		if got := harness.SpentIn(t, dir); !slices.Equal(got, want) {
			t.Errorf("after %s: spent %v, want %v", after, got, want)
		}
	}
	say("CL.CHECK", "org", "acme", 5, "DEBIT")
	say("CL.MRESERVE", 2, "org", "acme", 30, "user", "ann", 20, "TTL", "1h", "ID", "first")
	want("a debit and a hold", 0, 35, 20)
	p.Stop(t, syscall.SIGKILL)
	p = start()
	say("CL.MCOMMIT", "first", 2, "org", "acme", 10, "user", "ann", 25)
	want("a kill and a settle", 0, 15, 25)
	say("CL.MRESERVE", 1, "org", "acme", 1, "TTL", "1h", "ID", "second")
	say("SAVE")
	p.Stop(t, syscall.SIGTERM)
	if err := os.WriteFile(file, []byte(limits(behind)), 0o600); err != nil {
		t.Fatal(err)
	}
	p = start()
	want("a snapshot, a stop and another zone", 0, 16, 25)
	say("CL.CHECK", "org", "acme", 3, "DEBIT")
	say("CL.MCOMMIT", "second", 1, "org", "acme", 2)
	want("a settle of a hold that began in the other zone's day", 3+1, 16, 25)
	say("FLUSHALL")
	say("SAVE")
	if err := os.WriteFile(file, []byte("limits: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	say("CL.LIMIT", "RELOAD")
	want("all is gone", 4, 16, 25)
	p.Stop(t, syscall.SIGKILL)
	p = start()
	want("a kill", 4, 16, 25)
	if err := os.WriteFile(file, []byte(limits(ahead)), 0o600); err != nil {
		t.Fatal(err)
	}
	say("CL.LIMIT", "RELOAD")
	say("CL.CHECK", "org", "acme", 100, "DEBIT")
	want("the limit is there again", 4, 116, 25)
}
