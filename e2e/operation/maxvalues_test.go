package operation

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
)

const outOfMemory = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"

// floodValues sets n values of 100 bytes with the options, and returns the number of OOM errors.
func floodValues(t *testing.T, p *harness.Process, prefix string, n int, options func(i int) []string) (refused int) {
	t.Helper()
	nc, text := p.Dial(t), strings.Repeat("x", 100)
	for at := 0; at < n; at += 1000 {
		var calls []byte
		for i := at; i < at+1000; i++ {
			calls = resptest.Append(calls, append([]string{"SET", prefix + strconv.Itoa(i), text}, options(i)...)...)
		}
		replies := harness.SayTo(t, nc, string(calls)+"PING\r\n", "+PONG\r\n")
		refused += strings.Count(replies, outOfMemory)
		if ok := strings.Count(replies, "+OK\r\n"); ok+strings.Count(replies, outOfMemory) != 1000 {
			t.Fatalf("%d of 1000 were set: %.300q", ok, replies)
		}
	}
	return refused
}

// endless is no option, expiring a time to live in seconds.
func endless(int) []string { return nil }

func expiring(sec int) func(i int) []string {
	return func(int) []string { return []string{"EX", strconv.Itoa(sec)} }
}

// TestFloodOfValues: it takes no more memory than values may, evicts no limiter, values that expire first go
// first, and of those that never expire, none is evicted.
func TestFloodOfValues(t *testing.T) {
	t.Parallel()
	if racetest.OmitsLong() {
		t.Skip("takes some seconds, and many under the race detector")
	}
	const honest, flood = 20_000, 100_000
	p := harness.StartServer(t, "--maxmemory", "48mb")
	nc := p.Dial(t)
	var charges []byte
	for i := range honest {
		charges = resptest.Append(charges, "CL.THROTTLE", fmt.Sprint("honest", i), "0", "1", "3600")
	}
	harness.SayTo(t, nc, string(charges)+"PING\r\n", "+PONG\r\n")
	harness.Exchange(t, nc, "SET lasting x EX 86400\r\nSET endless y\r\n", "+OK\r\n+OK\r\n")
	fits := func(when string) {
		t.Helper()
		bytes, most := p.Metric(t, "cellserver_value_bytes"), p.Metric(t, "cellserver_value_max_bytes")
		limiters := p.Metric(t, "cellserver_keys") - p.Metric(t, "cellserver_values")
		if bytes > most || limiters != honest || p.Metric(t, "cellserver_evicted_keys_total")+p.Metric(t, "cellserver_refused_keys_total") != 0 {
			t.Errorf("%s: %.0f of %.0f bytes, %.0f limiters", when, bytes, most, limiters)
		}
	}

	if n := floodValues(t, p, "short", flood, expiring(600)); n != 0 {
		t.Errorf("%d values that expire were refused", n)
	}
	fits("values that expire")
	harness.Exchange(t, nc, "MGET lasting endless\r\n", "*2\r\n$1\r\nx\r\n$1\r\ny\r\n") // those before them have gone
	harness.Exchange(t, nc, "CONFIG SET maxmemory-policy noeviction\r\n", "+OK\r\n")
	refusedBefore := p.Metric(t, "cellserver_refused_values_total")
	if n := floodValues(t, p, "none", 1000, expiring(600)); n < 500 || p.Metric(t, "cellserver_refused_values_total")-refusedBefore != float64(n) {
		t.Errorf("by noeviction %d values were refused", n)
	}
	harness.Exchange(t, nc, "CONFIG SET maxmemory-policy volatile-ttl\r\n", "+OK\r\n")

	if n := floodValues(t, p, "endless", flood, endless); n < flood/2 {
		t.Errorf("%d values that never expire were refused", n)
	}
	fits("values that never expire")
	if n, all := p.Metric(t, "cellserver_values_endless"), p.Metric(t, "cellserver_values"); n < 0.9*all {
		t.Errorf("of %.0f values %.0f never expire", all, n)
	}
	harness.Exchange(t, nc, "GET endless\r\nDEL endless0\r\nCL.THROTTLE new 0 1 60 0\r\n",
		"$1\r\ny\r\n:1\r\n*5\r\n:0\r\n:1\r\n:1\r\n:-1\r\n:0\r\n")
	if replies := harness.SayTo(t, nc, string(charges)+"PING\r\n", "+PONG\r\n"); strings.Count(replies, "*5\r\n:1\r\n") != honest {
		t.Errorf("%d of %d funnels have a debt", strings.Count(replies, "*5\r\n:1\r\n"), honest)
	}

	p.Logged(t, "the memory for values is almost used up")
	p.Logged(t, "values found no room")
	p.Eventually(t, "say that it is degraded", func() bool {
		_, text := p.Readiness(t)
		return strings.Contains(text, "degraded: values were evicted and refused in the last minute; raise --maxmemory-values")
	})
	info := harness.SayTo(t, nc, "INFO stats\r\n", "cell_dropped_script_log_lines:0\r\n\r\n")
	for name, metric := range map[string]string{"evicted_keys": "cellserver_evicted_values_total", "cell_refused_values": "cellserver_refused_values_total"} {
		if want := fmt.Sprintf("\r\n%s:%.0f\r\n", name, p.Metric(t, metric)); !strings.Contains(info, want) {
			t.Errorf("INFO lacks %q: %s", want, info)
		}
	}
}

// TestFloodOfLimitersLeavesValues: nor do limiters evict values.
func TestFloodOfLimitersLeavesValues(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--maxmemory", "48mb")
	floodValues(t, p, "v", 2000, expiring(600))
	harness.Flood(t, p, "f", 200_000)
	if n, evicted := p.Metric(t, "cellserver_values"), p.Metric(t, "cellserver_evicted_keys_total"); n != 2000 || evicted == 0 {
		t.Errorf("%.0f values are left, %.0f limiters were evicted", n, evicted)
	}
}

// TestValueSettings: CONFIG SET and SIGHUP change the values' part, and a smaller one evicts.
func TestValueSettings(t *testing.T) {
	t.Parallel()
	path := harness.WriteFile(t, "maxmemory-values: 20mb\n")
	p := harness.StartServer(t, "--config", path)
	nc := p.Dial(t)
	p.Get(t, "maxmemory-values", "20mb")
	mustBe := func(want float64) {
		t.Helper()
		if n := p.Metric(t, "cellserver_value_max_bytes"); n != want {
			t.Errorf("values may take %.0f bytes, want %.0f", n, want)
		}
	}
	mustBe(20 << 20) // a size holds without --maxmemory
	floodValues(t, p, "v", 20_000, expiring(3600))
	before := p.Metric(t, "cellserver_value_bytes")
	harness.Exchange(t, nc, "CONFIG SET maxmemory-values 2mb\r\n", "+OK\r\n")
	mustBe(2 << 20)
	if before < 2<<20 {
		t.Fatalf("%.0f bytes are too few", before)
	}
	p.Eventually(t, "evict values", func() bool { return p.Metric(t, "cellserver_value_bytes") <= 2<<20 })
	harness.Exchange(t, nc, "CONFIG SET maxmemory 200mb maxmemory-values 10%\r\n", "+OK\r\n")
	mustBe(20 << 20)
	p.Rewrite(t, path, "maxmemory-values: 30mb\n", `"settings":"maxmemory-values"`)
	mustBe(30 << 20)
	harness.Exchange(t, nc, "CONFIG SET maxmemory-values 90%\r\n", "+OK\r\n")
	if limiters, values := p.Metric(t, "cellserver_table_max_bytes"), p.Metric(t, "cellserver_value_max_bytes"); values > limiters {
		t.Errorf("limiters keep %.0f bytes, values %.0f", limiters, values)
	}
}

// TestRequireTTL: values that would never expire are refused, and what makes them expire at once is not.
func TestRequireTTL(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--require-ttl")
	nc := p.Dial(t)
	for _, refused := range []string{"SET a 1", "INCR a", "MSET a 1 b 2", "MSETNX a 1 b 2", "MSETEX 1 a 1", "GETSET a 1", "SET a 1 IFNE x"} {
		if got := harness.SayTo(t, nc, refused+"\r\n", "\r\n"); !strings.HasPrefix(got, "-ERR ") {
			t.Errorf("%s: %q", refused, got)
		}
	}
	harness.Exchange(t, nc, "SET a 1 EX 60\r\nINCR a\r\nMULTI\r\nINCR b\r\nEXPIRE b 60\r\nEXEC\r\nDBSIZE\r\n", "+OK\r\n:2\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:1\r\n:2\r\n")
	if n := p.Metric(t, "cellserver_values_endless"); n != 0 {
		t.Errorf("%.0f values never expire", n)
	}
}
