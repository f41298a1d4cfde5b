package harness

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/killtest"
	"cellserver/internal/test/redistest"
)

// StartKeeping starts a server with a data directory and waits until it is loaded. Replies wait for a busy
// disk without a limit, unless the arguments set one.
func StartKeeping(t *testing.T, dir string, args ...string) *Process {
	t.Helper()
	if i := slices.Index(args, "--fsync-interval"); i >= 0 && args[i+1] == "0" && !slices.Contains(args, "--fsync-timeout") {
		args = append(args, "--fsync-timeout", "1h")
	}
	p := StartServer(t, append([]string{"--data-dir", dir}, args...)...)
	p.Eventually(t, "load its data", func() bool { return p.Ask(t, "/readyz", "", nil) == 200 })
	return p
}

func Charge(t *testing.T, p *Process, keys ...string) {
	t.Helper()
	if err := killtest.Charge(t.Context(), p.Addr, keys...); err != nil {
		t.Fatal(err)
	}
}

// Units fails the test unless want units are charged to each key.
func Units(t *testing.T, p *Process, want int64, keys ...string) {
	t.Helper()
	got, err := killtest.Charged(t.Context(), p.Addr, keys...)
	if err != nil || slices.ContainsFunc(got, func(n int64) bool { return n != want }) {
		t.Errorf("%.200q have %.200d units, want %d: %v", keys, got, want, err)
	}
}

func SyncAll(t *testing.T, p *Process) {
	t.Helper()
	if err := killtest.Sync(t.Context(), p.Addr); err != nil {
		t.Fatal(err)
	}
}

// ManyKeys returns more keys than fit into the last page of a file on a full disk.
func ManyKeys(prefix string) (keys []string) {
	for i := range 300 {
		keys = append(keys, fmt.Sprintf("%s:%060d", prefix, i))
	}
	return keys
}

// AwaitFault waits until the metric of disk faults has a value.
func (p *Process) AwaitFault(t *testing.T, want float64) {
	t.Helper()
	p.Eventually(t, fmt.Sprintf("say a fault of %.0f", want), func() bool {
		return p.Metric(t, "cellserver_persistence_disk_fault") == want
	})
}

func (p *Process) Signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.Cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// RefusedStart starts a server that exits by itself, and returns its output.
func RefusedStart(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	p := Start(t, Command(t, append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", ""}, args...)...))
	p.Eventually(t, "end", p.HasExited)
	return p.Await(t), p.Log.String()
}

func Database(t *testing.T, p *Process, db int) *redis.Client {
	t.Helper()
	return redistest.NewClient(t, redis.Options{Addr: p.Addr, DB: db, Protocol: 2, DisableIdentity: true})
}

// Dumps returns the DUMP of each key of a database.
func Dumps(t *testing.T, p *Process, db int) map[string]string {
	t.Helper()
	rdb, all := Database(t, p, db), map[string]string{}
	names, err := rdb.Keys(t.Context(), "*").Result()
	for _, name := range names {
		var dumped string
		if dumped, err = rdb.Dump(t.Context(), name).Result(); err != nil {
			break
		}
		all[name] = dumped
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}
