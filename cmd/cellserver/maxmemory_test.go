package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cellserver/internal/keep/memory"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/resptest"
)

// flood has n keys made that were not there, over two connections, and returns how many calls got an error.
func flood(t *testing.T, p *process, prefix string, n int) (failed int) {
	t.Helper()
	const piece, conns = 1000, 2
	var wg sync.WaitGroup
	var sum [conns]int
	for c := range conns {
		nc := p.dial(t)
		wg.Go(func() {
			for i := 0; i < n/conns; i += piece {
				var calls []byte
				for j := range piece {
					calls = resptest.Append(calls, "CL.THROTTLE", fmt.Sprint(prefix, c, ":", i+j), "0", "1", "3600")
				}
				if _, err := nc.Write(append(calls, "PING\r\n"...)); err != nil {
					t.Error(err)
					return
				}
				replies := readUpTo(t, nc, "+PONG\r\n")
				sum[c] += bytes.Count(replies, []byte("-OOM "))
			}
		})
	}
	wg.Wait()
	return sum[0] + sum[1]
}

// readUpTo is readTo for goroutines.
func readUpTo(t *testing.T, nc net.Conn, end string) (got []byte) {
	buf := make([]byte, 256<<10)
	for !bytes.HasSuffix(got, []byte(end)) {
		n, err := nc.Read(buf)
		if err != nil {
			t.Error(err)
			return got
		}
		got = append(got, buf[:n]...)
	}
	return got
}

// TestFloodKeepsToMaxMemory: a server stays at its maximum whatever keys come, by either policy, and others are answered.
func TestFloodKeepsToMaxMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() || isRace() {
		t.Skip("takes some seconds, and many under the race detector")
	}
	const keys, maxMemory = 4_000_000, 64 << 20 // which take 170 MB without a maximum
	for _, policy := range memory.PolicyNames() {
		p := startServer(t, "--maxmemory", "64mb", "--maxmemory-policy", policy)
		honest := p.dial(t)
		sayTo(t, honest, "CL.THROTTLE honest 0 1 360000\r\n", ":360000\r\n")
		most, failed := 0, 0
		for i := range 8 {
			failed += flood(t, p, fmt.Sprint(i, ":"), keys/8)
			most = max(most, p.rss(t))
		}
		held, evicted, refused := p.metric(t, "cellserver_keys"), p.metric(t, "cellserver_evicted_keys_total"), p.metric(t, "cellserver_refused_keys_total")
		t.Logf("%s: resident at most %d MB; %.0f keys, %.0f evicted, %.0f refused", policy, most/1_000_000, held, evicted, refused)
		if most > 2*maxMemory {
			t.Errorf("%s: %d bytes are resident, of a maximum of %d", policy, most, maxMemory)
		}
		if got := p.metric(t, "cellserver_table_bytes"); got > p.metric(t, "cellserver_table_max_bytes") {
			t.Errorf("%s: the tables take %.0f bytes", policy, got)
		}
		if held+evicted+refused != keys+1 || int(refused) != failed || (policy == "noeviction") != (evicted == 0) || evicted+refused < keys/2 {
			t.Errorf("%s: %.0f keys, %.0f evicted, %.0f refused, %d errors", policy, held, evicted, refused, failed)
		}
		// The one that expires last is still there, by either policy.
		if got := sayTo(t, honest, "CL.THROTTLE honest 0 1 360000\r\n", "\r\n"); !strings.HasPrefix(got, "*5\r\n:1\r\n") {
			t.Errorf("%s: the key that expires last was allowed once more: %q", policy, got)
		}
		p.Logged(t, `"percent":90`)
		p.Logged(t, "new keys found no room")
	}
}

// TestMaxMemoryIsASetting: as Redis has it, at once, and a smaller one evicts.
func TestMaxMemoryIsASetting(t *testing.T) {
	t.Parallel()
	p := startServer(t, "--maxmemory", "200mb")
	nc := p.dial(t)
	for _, tt := range []struct{ in, want string }{
		{"CONFIG GET maxmemory*\r\n", "*6\r\n$9\r\nmaxmemory\r\n$9\r\n209715200\r\n$17\r\nmaxmemory-clients\r\n$3\r\n25%\r\n$16\r\nmaxmemory-policy\r\n$12\r\nvolatile-ttl\r\n"},
		{"CONFIG SET maxmemory 10mb\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be 0 for no maximum, or at least 48mb, got 10485760 bytes\r\n"},
		{"CONFIG SET maxmemory much\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value\r\n"},
		{"CONFIG SET maxmemory-clients 180mb\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory-clients') - argument leaves less than 4mb for keys: maxmemory is 209715200 bytes and maxmemory-clients 180mb; raise the one or lower the other\r\n"},
		{"CONFIG SET maxmemory-policy allkeys-lru\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument: the policy allkeys-lru is not supported; set volatile-ttl or noeviction\r\n"},
		{"CONFIG SET maxmemory 0 maxmemory-policy noeviction\r\n", "+OK\r\n"},
		{"CONFIG GET maxmemory*\r\n", "*6\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n$17\r\nmaxmemory-clients\r\n$3\r\n25%\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n"},
		// Together they must fit, and need not one by one.
		{"CONFIG SET maxmemory-clients 150mb\r\n", "+OK\r\n"},
		{"CONFIG SET maxmemory 64mb\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument leaves less than 4mb for keys: maxmemory is 67108864 bytes and maxmemory-clients 150mb; raise the one or lower the other\r\n"},
		{"CONFIG SET maxmemory 200mb maxmemory-clients 160mb\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument leaves less than 4mb for keys: maxmemory is 209715200 bytes and maxmemory-clients 160mb; raise the one or lower the other\r\n"},
		{"CONFIG SET maxmemory 64mb maxmemory-clients 1%x\r\n", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument leaves less than 4mb for keys: maxmemory is 67108864 bytes and maxmemory-clients 150mb; raise the one or lower the other\r\n"},
		{"CONFIG SET maxmemory 64mb maxmemory-clients 10mb\r\n", "+OK\r\n"},
		{"CONFIG GET maxmemory*\r\n", "*6\r\n$9\r\nmaxmemory\r\n$8\r\n67108864\r\n$17\r\nmaxmemory-clients\r\n$4\r\n10mb\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n"},
		{"CONFIG SET maxmemory-clients 25% maxmemory 0\r\n", "+OK\r\n"},
	} {
		if got := sayTo(t, nc, tt.in, tt.want[max(0, len(tt.want)-10):]); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.in, got, tt.want)
		}
	}
	flood(t, p, "k", 300_000)
	full := p.metric(t, "cellserver_table_bytes")
	sayTo(t, nc, "CONFIG SET maxmemory 48mb maxmemory-policy volatile-ttl\r\n", "+OK\r\n")
	most := float64(memory.Split(48<<20, defaultClients()).Tables)
	if full < 2*most {
		t.Fatalf("%.0f bytes are not much more than %.0f", full, most)
	}
	p.Eventually(t, "evict", func() bool { return p.metric(t, "cellserver_table_bytes") <= most })
	info := sayTo(t, nc, "INFO memory\r\nINFO stats\r\n", "cell_dropped_script_log_lines:0\r\n\r\n")
	for _, want := range []string{
		"maxmemory:50331648\r\nmaxmemory_human:48.00M\r\nmaxmemory_policy:volatile-ttl\r\n", fmt.Sprintf("maxmemory_dataset:%.0f\r\n", most),
		fmt.Sprintf("evicted_keys:%.0f\r\n", p.metric(t, "cellserver_evicted_keys_total")),
	} {
		if !strings.Contains(info, want) {
			t.Errorf("INFO lacks %q: %s", want, info)
		}
	}
	for name, want := range map[string]float64{"cellserver_memory_max_bytes": 48 << 20, "cellserver_client_memory_max_bytes": 12 << 20} {
		if n := p.metric(t, name); n != want {
			t.Errorf("%s is %.0f, want %.0f", name, n, want)
		}
	}
}

// TestMaxMemoryOptions: what is wrong is said, with what to do.
func TestMaxMemoryOptions(t *testing.T) {
	for _, tt := range []struct{ flags, want string }{
		{"--maxmemory=lots", `--maxmemory takes auto or a size, such as 150mb; got "lots"`},
		{"--maxmemory=-1", `--maxmemory takes auto or a size, such as 150mb; got "-1"`},
		{"--maxmemory=1mb", "--maxmemory must be 0 for no maximum, or at least 48mb, got 1048576 bytes"},
		{"--maxmemory-policy=allkeys-lfu", `--maxmemory-policy takes volatile-ttl or noeviction; got "allkeys-lfu"`},
		{"--maxmemory-policy=x", `--maxmemory-policy takes volatile-ttl or noeviction; got "x"`},
	} {
		if _, err := parseOptions([]string{tt.flags}); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.flags, err, tt.want)
		}
	}
	for _, flags := range []string{"--maxmemory=auto", "--maxmemory=0", "--maxmemory=48mb", "--maxmemory=1G", "--maxmemory-policy=noeviction"} {
		if _, err := parseOptions([]string{flags}); err != nil {
			t.Errorf("%s: %v", flags, err)
		}
	}
}

// TestMemoryWarnings: one line a crossing, and for what found no room one at once and then one a minute.
func TestMemoryWarnings(t *testing.T) {
	var log bytes.Buffer
	nowNs := int64(0)
	w := memoryWarnings{
		log: slog.New(slog.NewTextHandler(&log, nil)), now: func() int64 { return nowNs }, bound: memory.NewBound(shard.New()),
		short: &memory.Shortage{},
	}
	for i, step := range []struct {
		bytes            int
		evicted, refused uint64
		after            time.Duration
		want             string
	}{
		{bytes: 74},
		{bytes: 76, want: "percent=75 bytes=76 of=100"},
		{bytes: 77},
		{bytes: 100, evicted: 5, want: "evicted=5 refused=0"},
		{bytes: 100, evicted: 9, after: time.Second},
		{bytes: 100, evicted: 9, after: time.Hour},
		{bytes: 100, evicted: 10, refused: 2, want: "evicted=5 refused=2"},
		{bytes: 100, evicted: 10, refused: 2, after: time.Hour},
	} {
		nowNs += int64(step.after)
		log.Reset()
		w.look(store.Stats{Bytes: step.bytes, MaxBytes: 100, Evicted: step.evicted, Refused: step.refused})
		if got := log.String(); !strings.Contains(got, step.want) || (got == "") != (step.want == "") {
			t.Errorf("step %s: got %q, want %q", strconv.Itoa(i), got, step.want)
		}
	}
}
