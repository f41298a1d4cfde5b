package durability

import (
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
)

// callsOfKinds make a key of each kind; the second of each pair changes what is there.
func callsOfKinds(round int) [][]any {
	return [][]any{
		{"CL.THROTTLE", "funnel", 99, 1, 3600}, {"CL.TOKENBUCKET", "tokens", 100, 1, 3600},
		{"CL.PTHROTTLE", "ms", 99, 1, 3_600_000}, {"CL.RESERVE", "reserving", 99, 1, 3600, 2, 3_600_000},
		{"CL.FIXEDWINDOW", "window", 100, 86_400}, {"CL.SLIDINGWINDOW", "ring", 100, 86_400},
		{"CL.SLIDINGWINDOW", "approx", 5000, 86_400, 1, "APPROX"}, {"CL.BUCKET", "ADD", "bucket", 100, 7},
		{"CL.BUCKET", "ADD", "expiring", 100, 7}, {"PEXPIRE", "expiring", 3_600_000 + round},
		{"CL.CONCURRENCY", "ACQUIRE", "leases", 100, 3_600_000, fmt.Sprint("holder", round)},
		{"INCRBY", "counter", 7}, {"EXPIRE", "counter", 3600 + round}, {"SET", "text", fmt.Sprint("round", round)},
		{"SET", "large", strings.Repeat(fmt.Sprint(round), 64<<10), "EX", 3600}, {"GETEX", "large", "EX", 7200},
		{"INCREX", "bounded", "BYINT", 7, "UBOUND", 1000, "EX", 3600 + round}, {"INCREX", "ratio", "BYFLOAT", "0.25", "EX", 3600, "ENX"},
		{"SET", "past", round}, {"INCREX", "past", "EXAT", 1},
		{"SET", "gone", round, "PX", 1}, {"SET", "taken", round}, {"GETDEL", "taken"}, {"SET", "moved", round}, {"RENAME", "moved", "there"},
	}
}

// kinds is the number of keys made by callsOfKinds that stay.
const kinds = 16

// statesAndTimes are the states of the keys, and when each expires.
func statesAndTimes(t *testing.T, p *harness.Process) map[string]string {
	t.Helper()
	rdb, all := harness.Database(t, p, 0), harness.Dumps(t, p, 0)
	p.Eventually(t, "lose the key that expires", func() bool { return rdb.Exists(t.Context(), "gone").Val() == 0 })
	delete(all, "gone")
	for name := range all {
		at, err := rdb.Do(t.Context(), "PEXPIRETIME", name).Int64()
		if err != nil {
			t.Fatal(err)
		}
		all[name] += fmt.Sprint(" until ", at)
	}
	return all
}

// TestKindsSurviveKills: synced states of each kind survive kills, also after a snapshot and if only the
// payload changed.
func TestKindsSurviveKills(t *testing.T) {
	t.Parallel()
	for _, interval := range []string{"0", "1s"} {
		t.Run(interval, func(t *testing.T) {
			t.Parallel()
			dir, want := t.TempDir(), map[string]string{}
			for round := range 4 {
				p := harness.StartKeeping(t, dir, "--fsync-interval", interval)
				if got := statesAndTimes(t, p); !maps.Equal(got, want) {
					t.Fatalf("round %d: got %q, want %q", round, got, want)
				}
				rdb := harness.Database(t, p, 0)
				for _, args := range callsOfKinds(round) {
					if err := rdb.Do(t.Context(), args...).Err(); err != nil {
						t.Fatalf("%v: %v", args, err)
					}
				}
				if round == 1 {
					if err := rdb.Save(t.Context()).Err(); err != nil {
						t.Fatal(err)
					}
				}
				if interval != "0" {
					harness.SyncAll(t, p)
				}
				if want = statesAndTimes(t, p); len(want) != kinds {
					t.Fatalf("there are %d keys", len(want))
				}
				p.Stop(t, syscall.SIGKILL)
			}
		})
	}
}

// atServer executes a command and returns its time by the server's clock.
func atServer(t *testing.T, rdb *redis.Client, args ...any) (at time.Time, reply any) {
	t.Helper()
	var now *redis.TimeCmd
	var done *redis.Cmd
	_, err := rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		now, done = p.Time(t.Context()), p.Do(t.Context(), args...)
		return nil
	})
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return now.Val(), done.Val()
}

// TestReservationsSurviveKills: open reservations and leases survive a kill, end in time, and can be
// committed and released.
func TestReservationsSurviveKills(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	const shortMs, longMs = 4000, 600_000
	dir := t.TempDir()
	p := harness.StartKeeping(t, dir, "--fsync-interval", "0")
	rdb := harness.Database(t, p, 0)
	reserve := func(units, ttlMs int) (ends time.Time, id any) {
		t.Helper()
		at, reply := atServer(t, rdb, "CL.RESERVE", "cost", 99, 1, 3600, units, ttlMs)
		return at.Add(time.Duration(ttlMs) * time.Millisecond), reply.([]any)[5]
	}
	acquire := func(token string, leaseMs int) (ends time.Time) {
		t.Helper()
		at, _ := atServer(t, rdb, "CL.CONCURRENCY", "ACQUIRE", "jobs", 2, leaseMs, token)
		return at.Add(time.Duration(leaseMs) * time.Millisecond)
	}
	_, longID := reserve(50, longMs)
	shortEnds, shortID := reserve(30, shortMs)
	acquire("long", longMs)
	leaseEnds := acquire("short", shortMs)

	p.Stop(t, syscall.SIGKILL)
	p = harness.StartKeeping(t, dir, "--fsync-interval", "0")
	rdb = harness.Database(t, p, 0)
	for ended := 0; ended < 2; time.Sleep(50 * time.Millisecond) {
		ended = 0
		at, reply := atServer(t, rdb, "CL.THROTTLE", "cost", 99, 1, 3600, 0)
		want := int64(20)
		if !at.Before(shortEnds) { // the clock of TIME is cut to microseconds, and that of limiters is not
			want, ended = 50, ended+1
		}
		if left := reply.([]any)[2]; left != want && at.Sub(shortEnds).Abs() > time.Millisecond {
			t.Fatalf("%s after the reservation's end %v units are left, want %d", at.Sub(shortEnds), left, want)
		}
		at, reply = atServer(t, rdb, "CL.CONCURRENCY", "LEN", "jobs")
		want = 2
		if !at.Before(leaseEnds) {
			want, ended = 1, ended+1
		}
		if reply != want && at.Sub(leaseEnds).Abs() > time.Millisecond {
			t.Fatalf("%s after the lease's end there are %v holders, want %d", at.Sub(leaseEnds), reply, want)
		}
	}

	for _, tt := range []struct {
		want string // the beginning of the reply
		args []any
	}{
		{"0", []any{"CL.COMMIT", "cost", shortID, 30}},
		{"1", []any{"CL.COMMIT", "cost", longID, 10}},
		{"0", []any{"CL.COMMIT", "cost", longID, 10}},
		{"[0 100 90 -1 ", []any{"CL.THROTTLE", "cost", 99, 1, 3600, 0}},
		{"0", []any{"CL.CONCURRENCY", "RELEASE", "jobs", "short"}},
		{"1", []any{"CL.CONCURRENCY", "RENEW", "jobs", longMs, "long"}},
		{"1", []any{"CL.CONCURRENCY", "RELEASE", "jobs", "long"}},
		{"0", []any{"EXISTS", "jobs"}},
	} {
		got, err := rdb.Do(t.Context(), tt.args...).Result()
		if !strings.HasPrefix(fmt.Sprint(got), tt.want) || err != nil {
			t.Errorf("%v: got %v, %v, want %v", tt.args, got, err, tt.want)
		}
	}
	want := harness.Dumps(t, p, 0)
	p.Stop(t, syscall.SIGKILL)
	if got := harness.Dumps(t, harness.StartKeeping(t, dir), 0); !maps.Equal(got, want) {
		t.Errorf("after another kill: %q, want %q", got, want)
	}
}
