package durability

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/racetest"
)

// longLoad returns a data directory that takes a while to load, and how many keys there are.
func longLoad(t *testing.T) (dir string, keys int) {
	t.Helper()
	if keys = 1_000_000; racetest.Enabled {
		keys = 150_000
	}
	dir = t.TempDir()
	p := harness.StartKeeping(t, dir, "--fsync-interval", "no")
	harness.Flood(t, p, "f", keys)
	p.Stop(t, syscall.SIGTERM)
	return dir, keys
}

// catchLoading starts servers until one is caught while it loads, on a connection that is to tell.
func catchLoading(t *testing.T, dir string) (*harness.Process, net.Conn) {
	t.Helper()
	for range 50 { // a busy machine may have it load before it is asked
		addr, web := processtest.FreeAddr(t), processtest.FreeAddr(t)
		p := harness.Start(t, harness.Command(t, "--addr", addr, "--metrics-addr", web, "--data-dir", dir))
		p.Addr, p.Metrics = addr, web
		var nc net.Conn
		p.Eventually(t, "listen", func() (ok bool) {
			var err error
			nc, err = net.Dial("tcp", addr)
			return err == nil
		})
		t.Cleanup(func() { _ = nc.Close() })
		if isLoading(t, nc) {
			return p, nc
		}
		p.Stop(t, syscall.SIGKILL)
	}
	t.Fatal("no server was seen while it loads")
	return nil, nil
}

func isLoading(t *testing.T, nc net.Conn) bool {
	t.Helper()
	return strings.HasPrefix(harness.SayTo(t, nc, "PING\r\n", "\r\n"), "-LOADING ")
}

// TestLoading: clients are told, but for what has Redis's flag; /readyz says so; and then all is there.
func TestLoading(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	racetest.OneAtATime(t)
	dir, keys := longLoad(t)
	seen, ready := false, 200
	for range 25 { // until the answers to all were given while it loads
		p, nc := catchLoading(t, dir)
		const calls = "CL.THROTTLE new 1 1 1\r\nDBSIZE\r\nINFO persistence\r\nHELLO 2\r\nAUTH x\r\nFLUSHALL\r\nPING\r\nQUIT\r\n"
		got := harness.SayTo(t, nc, calls, "+OK\r\n")
		status := p.Ask(t, "/readyz", "", nil)
		still := isLoading(t, p.Dial(t))
		if still {
			ready = status
		}
		if seen = seen || strings.Count(got, "-LOADING ") >= 4; still && seen {
			checkLoadingReplies(t, got)
		}
		p.Eventually(t, "have loaded", func() bool { return p.Ask(t, "/readyz", "", nil) == 200 })
		harness.Exchange(t, p.Dial(t), "DBSIZE\r\nCL.THROTTLE f0:0 0 1 3600 0\r\n", fmt.Sprintf(":%d\r\n*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n", keys))
		p.Stop(t, syscall.SIGTERM)
		if seen && ready == 503 {
			return
		}
	}
	t.Errorf("calls while it loads: %t; /readyz: %d", seen, ready)
}

func checkLoadingReplies(t *testing.T, got string) {
	t.Helper()
	const loading = "-LOADING "
	lines := strings.Split(got, "\r\n")
	for i := range 2 { // CL.THROTTLE, DBSIZE
		if !strings.HasPrefix(lines[i], loading) {
			t.Errorf("line %d is %q", i, lines[i])
		}
	}
	for _, want := range []string{"loading:1\r\n", "-ERR AUTH <password> called", "$6\r\nserver\r\n$5\r\nredis\r\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// TestEndWhileLoading: a server that is ended while it loads, or killed, takes nothing with it.
func TestEndWhileLoading(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	racetest.OneAtATime(t)
	dir, keys := longLoad(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p, _ := catchLoading(t, dir)
		begin := time.Now()
		if code := p.Stop(t, sig); sig == syscall.SIGTERM && code != 0 {
			t.Errorf("it ended with %d", code)
		}
		t.Logf("%s: ended after %s", sig, time.Since(begin))
	}
	p := harness.StartKeeping(t, dir)
	harness.Exchange(t, p.Dial(t), "DBSIZE\r\n", fmt.Sprintf(":%d\r\n", keys))
	if names, err := os.ReadDir(dir); err != nil || len(names) > 6 {
		t.Errorf("%v are left: %v", names, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "MANIFEST")); err != nil {
		t.Error(err)
	}
}

// TestEndWhileSaving: an unfinished snapshot harms nothing, and later changes are kept.
func TestEndWhileSaving(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	racetest.OneAtATime(t)
	dir, keys := longLoad(t)
	for i, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p := harness.StartKeeping(t, dir)
		saving := harness.SayTo(t, p.Dial(t), "BGSAVE\r\nINFO persistence\r\nPING\r\n", "+PONG\r\n")
		if !strings.HasPrefix(saving, "+Background saving started\r\n") || !strings.Contains(saving, "rdb_bgsave_in_progress:1\r\n") {
			t.Errorf("BGSAVE: %q", saving)
		}
		harness.Charge(t, p, fmt.Sprint("meanwhile:", i), "always")
		if sig == syscall.SIGKILL {
			harness.SyncAll(t, p)
		}
		info := harness.SayTo(t, p.Dial(t), "INFO persistence\r\nPING\r\n", "+PONG\r\n")
		t.Logf("%s while it saves: %t", sig, strings.Contains(info, "rdb_bgsave_in_progress:1\r\n"))
		p.Stop(t, sig)
		p = harness.StartKeeping(t, dir)
		harness.Exchange(t, p.Dial(t), "DBSIZE\r\n", fmt.Sprintf(":%d\r\n", keys+i+2))
		harness.Units(t, p, int64(i+1), "always")
		p.Stop(t, syscall.SIGKILL)
	}
}
