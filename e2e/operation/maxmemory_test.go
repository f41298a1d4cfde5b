package operation

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/app/settings"
	"cellserver/internal/keep/memory"
	"cellserver/internal/test/racetest"
)

// TestFloodKeepsToMaxMemory: the server keeps to its maximum under a flood of keys, by either policy, and
// answers other clients.
func TestFloodKeepsToMaxMemory(t *testing.T) {
	t.Parallel()
	if racetest.OmitsLong() {
		t.Skip("takes some seconds, and many under the race detector")
	}
	const keys, maxMemory = 2_400_000, 48 << 20 // 120 MB without a maximum
	for _, policy := range memory.PolicyNames() {
		p := harness.StartServer(t, "--maxmemory", "48mb", "--maxmemory-policy", policy)
		honest := p.Dial(t)
		harness.SayTo(t, honest, "CL.THROTTLE honest 0 1 360000\r\n", ":360000\r\n")
		most, failed := 0, 0
		for i := range 8 {
			failed += harness.Flood(t, p, fmt.Sprint(i, ":"), keys/8)
			most = max(most, p.RSS(t))
		}
		held, evicted, refused := p.Metric(t, "cellserver_keys"), p.Metric(t, "cellserver_evicted_keys_total"), p.Metric(t, "cellserver_refused_keys_total")
		t.Logf("%s: resident at most %d MB; %.0f keys, %.0f evicted, %.0f refused", policy, most/1_000_000, held, evicted, refused)
		if most > 2*maxMemory {
			t.Errorf("%s: %d bytes are resident, of a maximum of %d", policy, most, maxMemory)
		}
		if got := p.Metric(t, "cellserver_table_bytes"); got > p.Metric(t, "cellserver_table_max_bytes") {
			t.Errorf("%s: the tables take %.0f bytes", policy, got)
		}
		if held+evicted+refused != keys+1 || int(refused) != failed || (policy == "noeviction") != (evicted == 0) || evicted+refused < keys/2 {
			t.Errorf("%s: %.0f keys, %.0f evicted, %.0f refused, %d errors", policy, held, evicted, refused, failed)
		}
		// The key that expires last survives either policy.
		if got := harness.SayTo(t, honest, "CL.THROTTLE honest 0 1 360000\r\n", "\r\n"); !strings.HasPrefix(got, "*5\r\n:1\r\n") {
			t.Errorf("%s: the key that expires last was allowed once more: %q", policy, got)
		}
		p.Logged(t, `"percent":90`)
		p.Logged(t, "new keys found no room")
	}
}

// TestClientsAreBoundedByDefault: without --maxmemory clients may hold a quarter of what the process may
// take, as the log says at the start.
func TestClientsAreBoundedByDefault(t *testing.T) {
	t.Parallel()
	const available, most = 64 << 20, 16 << 20
	start := func(args ...string) *harness.Process {
		cmd := harness.Command(t, append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--log-format", "json", "--maxmemory", "0"}, args...)...)
		cmd.Env = append(cmd.Environ(), fmt.Sprint("GOMEMLIMIT=", available))
		p := harness.Start(t, cmd)
		p.Eventually(t, "be ready", p.ReadReady)
		return p
	}
	p := start()
	p.Logged(t, fmt.Sprintf(`"clients":%d,"maxmemory_clients":"25%%","available":%d`, most, available))
	honest := p.Dial(t)
	for range 40 { // 36 MB
		nc := p.Dial(t)
		go func() { _, _ = io.WriteString(nc, "*1\r\n$1000000\r\n"+strings.Repeat("x", 900_000)) }()
	}
	p.Eventually(t, "close clients that hold most", func() bool {
		return p.Metric(t, `cellserver_connections_closed_total{reason="memory"}`) > 10 && p.Metric(t, "cellserver_client_memory_bytes") <= most
	})
	harness.Exchange(t, honest, "PING\r\n", "+PONG\r\n")
	if open := start("--maxmemory-clients", "0"); open.Metric(t, "cellserver_client_memory_max_bytes") != 0 {
		t.Error("a bound that was turned off is there")
	} else {
		open.Logged(t, "also for what clients hold")
	}
}

// TestMaxMemoryIsASetting: CONFIG SET maxmemory applies at once, as Redis's does, and a smaller one evicts.
func TestMaxMemoryIsASetting(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--maxmemory", "200mb")
	nc := p.Dial(t)
	for _, tt := range []struct{ in, want string }{
		{"CONFIG GET maxmemory*\r\n", "*8\r\n$9\r\nmaxmemory\r\n$9\r\n209715200\r\n$17\r\nmaxmemory-clients\r\n$3\r\n25%\r\n$16\r\nmaxmemory-values\r\n$3\r\n25%\r\n$16\r\nmaxmemory-policy\r\n$12\r\nvolatile-ttl\r\n"},
		{"CONFIG SET maxmemory 10mb\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be 0 for no maximum, or at least 48mb, got 10485760 bytes\r\n"},
		{"CONFIG SET maxmemory much\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value\r\n"},
		{"CONFIG SET maxmemory-clients 180mb\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory-clients') - argument leaves less than 4mb for keys: maxmemory is 209715200 bytes and maxmemory-clients 180mb; raise the one or lower the other\r\n"},
		{"CONFIG SET maxmemory-policy allkeys-lru\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument: the policy allkeys-lru is not supported; set volatile-ttl or noeviction\r\n"},
		{"CONFIG SET maxmemory 0 maxmemory-policy noeviction\r\n", "+OK\r\n"},
		{"CONFIG GET maxmemory*\r\n", "*8\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n$17\r\nmaxmemory-clients\r\n$3\r\n25%\r\n$16\r\nmaxmemory-values\r\n$3\r\n25%\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n"},
		{"CONFIG SET maxmemory-values 0\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory-values') - argument must be a memory or percent value, such as 64mb or 25%\r\n"},
		// The two must fit together, not in this order.
		{"CONFIG SET maxmemory-clients 150mb\r\n", "+OK\r\n"},
		{"CONFIG SET maxmemory 64mb\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument leaves less than 4mb for keys: maxmemory is 67108864 bytes and maxmemory-clients 150mb; raise the one or lower the other\r\n"},
		{"CONFIG SET maxmemory 200mb maxmemory-clients 160mb\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument leaves less than 4mb for keys: maxmemory is 209715200 bytes and maxmemory-clients 160mb; raise the one or lower the other\r\n"},
		{"CONFIG SET maxmemory 64mb maxmemory-clients 1%x\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument leaves less than 4mb for keys: maxmemory is 67108864 bytes and maxmemory-clients 150mb; raise the one or lower the other\r\n"},
		{"CONFIG SET maxmemory 64mb maxmemory-clients 10mb\r\n", "+OK\r\n"},
		{"CONFIG GET maxmemory*\r\n", "*8\r\n$9\r\nmaxmemory\r\n$8\r\n67108864\r\n$17\r\nmaxmemory-clients\r\n$4\r\n10mb\r\n$16\r\nmaxmemory-values\r\n$3\r\n25%\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n"},
		{"CONFIG SET maxmemory-clients 25% maxmemory 0\r\n", "+OK\r\n"},
	} {
		if got := harness.SayTo(t, nc, tt.in, tt.want[max(0, len(tt.want)-10):]); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.in, got, tt.want)
		}
	}
	harness.Flood(t, p, "k", 300_000)
	full := p.Metric(t, "cellserver_table_bytes")
	harness.SayTo(t, nc, "CONFIG SET maxmemory 48mb maxmemory-policy volatile-ttl\r\n", "+OK\r\n")
	most := float64(memory.State{MaxBytes: 48 << 20, Clients: settings.Quarter(), Values: settings.Quarter()}.Split().Tables)
	if full < 2*most {
		t.Fatalf("%.0f bytes are not much more than %.0f", full, most)
	}
	p.Eventually(t, "evict", func() bool { return p.Metric(t, "cellserver_table_bytes") <= most })
	info := harness.SayTo(t, nc, "INFO memory\r\nINFO stats\r\n", "cell_dropped_script_log_lines:0\r\n\r\n")
	for _, want := range []string{
		"maxmemory:50331648\r\nmaxmemory_human:48.00M\r\nmaxmemory_policy:volatile-ttl\r\n", fmt.Sprintf("maxmemory_dataset:%.0f\r\n", most+p.Metric(t, "cellserver_value_max_bytes")),
		fmt.Sprintf("evicted_keys:%.0f\r\n", p.Metric(t, "cellserver_evicted_keys_total")),
	} {
		if !strings.Contains(info, want) {
			t.Errorf("INFO lacks %q: %s", want, info)
		}
	}
	for name, want := range map[string]float64{"cellserver_memory_max_bytes": 48 << 20, "cellserver_client_memory_max_bytes": 12 << 20} {
		if n := p.Metric(t, name); n != want {
			t.Errorf("%s is %.0f, want %.0f", name, n, want)
		}
	}
}
