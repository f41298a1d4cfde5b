package operation

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/test/certtest"
	"cellserver/internal/test/resptest"
)

const loginLimit = "limits:\n  login:\n    windows:\n      - {max_burst: 4, count: 5, period: 10h}\n"

// TestLimitsFile: the file is read at the start and at SIGHUP, completely or not at all; usage survives.
func TestLimitsFile(t *testing.T) {
	t.Parallel()
	file := harness.WriteFile(t, loginLimit)
	p := harness.StartServer(t, "--limits-file", file)
	nc := p.Dial(t)
	harness.Exchange(t, nc, "CONFIG GET limits-file\r\n", string(resptest.Append(nil, "limits-file", file)))
	harness.Exchange(t, nc, "CL.CHECK login bob 5\r\n", "*5\r\n:0\r\n:5\r\n:0\r\n:-1\r\n:36000\r\n")
	p.Rewrite(t, file, strings.Replace(loginLimit, "max_burst", "burst", 1), file+`:4: unknown field \"burst\"; there are max_burst or capacity, count and period`)
	harness.Exchange(t, nc, "CL.CHECK login bob\r\n", "*5\r\n:1\r\n:5\r\n:0\r\n:7")
	if failed := p.Metric(t, "cellserver_limits_file_reload_failed"); failed != 1 {
		t.Errorf("metric %v", failed)
	}
	p.Rewrite(t, file, strings.Replace(loginLimit, "4, c", "6, c", 1)+"  more: {windows: [{capacity: 1, count: 1, period: 1}]}\n", `"limits":2,"added":1,"changed":1,"removed":0`)
	nc = p.Dial(t)
	harness.Exchange(t, nc, "CL.CHECK login bob 2\r\n", "*5\r\n:0\r\n:7\r\n:0\r\n:-1\r\n:50")
	for series, want := range map[string]float64{
		"cellserver_limits": 2, "cellserver_limits_file_reload_failed": 0, "cellserver_limit_decisions_total": 3,
	} {
		if got := p.Metric(t, series); got != want {
			t.Errorf("%s: %v, want %v", series, got, want)
		}
	}
	if _, page := p.Fetch(t, "/?lang=en", ""); !strings.Contains(page, `>login</a></th><td class="words minor">7 at once, 5 per 10 h</td>`) {
		t.Error("the page does not show the limit")
	}
	harness.Exchange(t, p.Dial(t), "INFO limits\r\n", "$")
}

// TestBadLimitsFile: the server does not start, and says why in one line.
func TestBadLimitsFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits.yml")
	if code, said := harness.RefusedStart(t, "--limits-file", file); code != 1 || said != "cellserver: --limits-file: cannot read "+file+": no such file or directory\n" {
		t.Errorf("without the file: %d, %q", code, said)
	}
	certtest.Write(t, file, []byte("limits:\n  a: {}\n  b: 1\n"))
	want := "cellserver: --limits-file: " + file + ":2: the limit a must have rules, windows, plan, deny: true or unlimited: true; " + file + ":3: the limit b must be a mapping\n"
	if code, said := harness.RefusedStart(t, "--limits-file", file); code != 1 || said != want {
		t.Errorf("with a bad one: %d, %q", code, said)
	}
}

// listed returns the names of CL.LIMIT LIST.
func listed(t *testing.T, p *harness.Process) (names []string) {
	t.Helper()
	nc := p.Dial(t)
	harness.Send(t, nc, "CL.LIMIT LIST\r\n")
	r := bufio.NewReader(nc)
	var n int
	if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
		t.Fatal(err)
	}
	for range n {
		var length int
		var name string
		if _, err := fmt.Fscanf(r, "$%d\r\n%s\r\n", &length, &name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// TestLimitsOverKill: after a kill -9 every acknowledged definition is there, and at most one more.
func TestLimitsOverKill(t *testing.T) {
	t.Parallel()
	const clients = 3
	dir := t.TempDir()
	p := harness.StartKeeping(t, dir)
	var wg sync.WaitGroup
	answered := make([]int, clients)
	for client := range clients {
		nc := p.Dial(t)
		r := bufio.NewReader(nc)
		wg.Go(func() {
			for {
				if _, err := fmt.Fprintf(nc, "CL.LIMIT SET l%d-%03d 4 5 60 99 100 86400 SHADOW\r\n", client, answered[client]); err != nil {
					return
				}
				if line, err := r.ReadString('\n'); err != nil || line != "+OK\r\n" {
					return
				}
				answered[client]++
			}
		})
	}
	p.Eventually(t, "have set some limits", func() bool { return p.Metric(t, "cellserver_limits") > 20 })
	p.Stop(t, syscall.SIGKILL)
	wg.Wait()
	p = harness.StartKeeping(t, dir)
	names := listed(t, p)
	for client, n := range answered {
		for i := range n {
			if name := fmt.Sprintf("l%d-%03d", client, i); !slices.Contains(names, name) {
				t.Errorf("%s is gone", name)
			}
		}
	}
	if all := answered[0] + answered[1] + answered[2]; len(names) < all || len(names) > all+clients {
		t.Errorf("%d limits, and %d were answered", len(names), all)
	}
	nc := p.Dial(t)
	harness.Exchange(t, nc, "CL.LIMIT SET kept 0 1 60\r\nCL.LIMIT DEL kept\r\nCL.LIMIT SET last 0 1 60\r\n", "+OK\r\n:1\r\n+OK\r\n")
	p.Stop(t, syscall.SIGTERM)
	if again := listed(t, harness.StartKeeping(t, dir)); len(again) != len(names)+1 || !slices.Contains(again, "last") {
		t.Errorf("%d limits after %d and another", len(again), len(names))
	}
}

// TestStartCountsTheFile: those by commands are not among the limits that a start has read.
func TestStartCountsTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := harness.StartKeeping(t, dir)
	harness.Exchange(t, p.Dial(t), "CL.LIMIT SET other 0 1 60\r\n", "+OK\r\n")
	p.Stop(t, syscall.SIGTERM)
	file := harness.WriteFile(t, loginLimit)
	p = harness.StartKeeping(t, dir, "--limits-file", file)
	if names := listed(t, p); len(names) != 2 || !strings.Contains(p.Log.String(), `"msg":"limits read","file":"`+file+`","limits":1}`) {
		t.Errorf("limits %q, the log:\n%s", names, p.Log.String())
	}
}

// TestChecksOverKill: usage of all windows survives a kill -9, also of a limit redefined meanwhile.
func TestChecksOverKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := harness.StartKeeping(t, dir, "--fsync-interval", "0")
	harness.Exchange(t, p.Dial(t), "CL.LIMIT SET login 4 5 36000 9 10 360000\r\nCL.CHECK login bob 5\r\n", "+OK\r\n*5\r\n:0\r\n:5\r\n:0\r\n:-1\r\n:36000\r\n")
	p.Stop(t, syscall.SIGKILL)
	p = harness.StartKeeping(t, dir, "--fsync-interval", "0")
	nc := p.Dial(t)
	harness.Exchange(t, nc, "TYPE login:bob\r\nCL.CHECK login bob\r\n", "+cl-limit\r\n*5\r\n:1\r\n:5\r\n:0\r\n:7")
	nc = p.Dial(t)
	harness.Exchange(t, nc, "CL.LIMIT SET login 5 6 43200 9 10 360000\r\nCL.CHECK login bob 6\r\n", "+OK\r\n*5\r\n:1\r\n:10\r\n:5\r\n:3")
}

// TestDamagedLimits: the server refuses to start with less than there was unless told to; check names the
// damage.
func TestDamagedLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, limitsfile.KeptName)
	p := harness.StartKeeping(t, dir)
	harness.Exchange(t, p.Dial(t), "CL.LIMIT SET a 4 5 60\r\nCL.LIMIT SET b 4 5 60\r\n", "+OK\r\n+OK\r\n")
	p.Stop(t, syscall.SIGKILL)
	if code, said, _ := harness.Call(t, nil, "check", dir); code != 0 || !strings.Contains(said, "\nLIMITS  2 named limits, 76 bytes  ok\n") {
		t.Errorf("check: %d, %q", code, said)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	certtest.Write(t, file, []byte(strings.Replace(string(text), "FUNNEL 5", "FUNNEL 9", 1)))
	if code, said, _ := harness.Call(t, nil, "check", dir); code != 1 || !strings.Contains(said, "\nLIMITS  0 named limits, 76 bytes  DAMAGED: ") {
		t.Errorf("check: %d, %q", code, said)
	}
	if code, said := harness.RefusedStart(t, "--data-dir", dir); code != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "LIMITS") || !strings.Contains(said, "--data-recover") {
		t.Errorf("a start: %d, %q", code, said)
	}
	if names := listed(t, harness.StartKeeping(t, dir, "--data-recover")); len(names) != 0 {
		t.Errorf("limits of a damaged file: %q", names)
	}
	if _, err := os.Stat(filepath.Join(dir, "damaged-1-"+limitsfile.KeptName)); err != nil {
		t.Error(err)
	}
}
