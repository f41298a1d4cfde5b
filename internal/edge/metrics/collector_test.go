package metrics

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/processtest"
	"cellserver/internal/wire/catalog"
)

func TestMaximum(t *testing.T) {
	h := newHarness()
	s := h.config.Store.(*shard.Store)
	s.SetMaxBytes(1, store.NoEviction)
	h.say(t, "CL.THROTTLE a 1 1 60\r\n")
	s.SetMaxBytes(1, store.VolatileTTL)
	for i := range 10_000 {
		h.say(t, "CL.THROTTLE "+strconv.Itoa(i)+" 1 1 60\r\n")
	}
	keys := value(t, h.gather(t)["cellserver_keys"])
	if keys == 10_000 {
		t.Error("no key was evicted")
	}
	h.expect(t, figure{"refused_keys_total", nil, 1}, figure{"evicted_keys_total", nil, 10_000 - keys}, figure{"table_max_bytes", nil, 1},
		figure{"memory_max_bytes", nil, 0}, figure{"memory_policy_info", []string{"volatile-ttl"}, 1})
}

// TestValueFigures: values that expire are evicted, and with none left others are refused.
func TestValueFigures(t *testing.T) {
	h := newHarness()
	s := h.config.Store.(*shard.Store)
	s.SetMaxValueBytes(1 << 20)
	h.say(t, "INCR counter\r\nSET text x EX 60\r\nSET other x\r\nCL.THROTTLE a 1 1 60\r\n")
	h.expect(t, figure{"keys", nil, 4}, figure{"values", nil, 3}, figure{"values_endless", nil, 2}, figure{"value_max_bytes", nil, 1 << 20},
		figure{"evicted_values_total", nil, 0}, figure{"refused_values_total", nil, 0})
}

func TestClientFigures(t *testing.T) {
	h := newHarness()
	h.config.Clients.SetMaxMemory(1 << 20)
	h.config.NewKeys.Limit(1)
	h.say(t, "CL.THROTTLE x 1 1 60\r\nCL.THROTTLE y 1 1 60\r\n")
	h.expect(t, []figure{
		{"client_memory_bytes", nil, 0},
		{"client_memory_max_bytes", nil, 1 << 20},
		{"new_keys_refused_total", nil, 1},
		{"connections_refused_total", []string{"maxclients_per_address"}, 0},
		{"connections_closed_total", []string{"memory"}, 0},
		{"connections_closed_total", []string{"input"}, 0},
	}...)
}

func TestFigures(t *testing.T) {
	h := newHarness()
	h.say(t, "CL.THROTTLE a 1 1 60 2\r\nCL.THROTTLE a 1 1 60 1\r\nCL.THROTTLE b 1 1 60 0\r\n")
	h.say(t, "CL.THROTTLE a\r\nFOO\r\nEVALSHA x 0\r\nAUTH user wrong\r\n")
	h.say(t, "*1\r\nfoo\r\n")
	h.say(t, "EVAL 'return 1' 0\r\nEVAL 'return redis.error_reply(\"MINE x\")' 0\r\nEVAL 'while true do end' 0\r\n"+
		"EVAL \"return redis.call('CL.THROTTLE', KEYS[1], 1, 1, 60)\" 1 c\r\nPING\r\n")
	h.expect(t, []figure{
		{"decisions_total", []string{"cl.throttle", "allowed"}, 3},
		{"decisions_total", []string{"cl.throttle", "denied"}, 1},
		{"tokens_asked_total", nil, 4},
		{"tokens_granted_total", nil, 3},
		{"keys", nil, 2},
		{"commands_total", []string{"cl.throttle"}, 5},
		{"commands_total", []string{"ping"}, 1},
		{"commands_total", []string{"eval"}, 4},
		{"errors_total", []string{"Cell"}, 1},
		{"errors_total", []string{"ERR"}, 3},
		{"errors_total", []string{"NOSCRIPT"}, 1},
		{"errors_total", []string{"WRONGPASS"}, 1},
		{"errors_total", []string{"other"}, 1},
		{"protocol_errors_total", nil, 1},
		{"auth_failures_total", nil, 1},
		{"scripts_total", []string{"completed"}, 2},
		{"scripts_total", []string{"failed"}, 1},
		{"scripts_total", []string{"ended"}, 1},
		{"connections_max", nil, 100},
		{"ready", nil, 1},
	}...)
	if size := h.gather(t)["cellserver_batch_size"].GetMetric()[0].GetHistogram(); size.GetSampleCount() != 2 || size.GetSampleSum() != 4 ||
		size.GetBucket()[0].GetCumulativeCount() != 1 || size.GetBucket()[2].GetCumulativeCount() != 2 {
		t.Errorf("batch sizes: got %s", size)
	}
}

// TestDecisionsByCommand checks that a decision counts for the command of its limiter, wherever it was made,
// and that giving back and reading count for none.
func TestDecisionsByCommand(t *testing.T) {
	h := newHarness()
	names := catalog.New()
	for kind := range limiter.Value { // all but values are decided
		command := kind.Row().Command
		h.expect(t, figure{"decisions_total", []string{command, "allowed"}, 0}, figure{"decisions_total", []string{command, "denied"}, 0})
		if names.Lookup([]byte(command)) == nil {
			t.Errorf("%s is no command", command)
		}
	}
	h.say(t, "CL.PTHROTTLE f 0 1 60000\r\nCL.TOKENBUCKET t 1 1 60 2\r\nCL.MTHROTTLE 2 m 0 1 60 1 n 0 1 60 1\r\nCL.RESERVE f 0 1 60 1 1000\r\n")
	h.say(t, "CL.RESERVE r 4 1 60 2 60000\r\nCL.THROTTLE r 4 1 60 4\r\nCL.COMMIT r 1 1\r\n")
	h.say(t, "MULTI\r\nCL.FIXEDWINDOW w 1 60\r\nCL.FIXEDWINDOW w 1 60\r\nCL.SLIDINGWINDOW s 1 60\r\nEXEC\r\nCL.SLIDINGWINDOW a 9999 60 1 APPROX\r\n")
	h.say(t, "CL.BUCKET RESET b 2\r\nCL.BUCKET TAKE b 2\r\nCL.BUCKET TAKE b 2 2\r\nCL.BUCKET LEN b\r\n")
	h.say(t, "CL.CONCURRENCY ACQUIRE c 1 1000 x\r\nCL.CONCURRENCY ACQUIRE c 1 1000 y\r\nCL.CONCURRENCY RELEASE c x\r\n")
	h.say(t, "CL.LIMIT SET name 0 1 60\r\nCL.LIMIT SET shadow 0 1 60 SHADOW\r\n"+
		"CL.CHECK name k\r\nCL.CHECK name k\r\nCL.CHECK shadow k\r\nCL.CHECK shadow k\r\n")
	for _, want := range []struct {
		command         string
		allowed, denied float64
	}{
		{"cl.throttle", 3, 2}, {"cl.reserve", 1, 1}, {"cl.fixedwindow", 1, 1}, {"cl.slidingwindow", 2, 0}, {"cl.bucket", 1, 1},
		{"cl.concurrency", 1, 1}, {"cl.check", 3, 1},
	} {
		h.expect(t, figure{"decisions_total", []string{want.command, "allowed"}, want.allowed},
			figure{"decisions_total", []string{want.command, "denied"}, want.denied})
	}
}

// TestDurationsAreNativeAndClassic checks both forms of the histogram.
func TestDurationsAreNativeAndClassic(t *testing.T) {
	h := newHarness()
	h.say(t, strings.Repeat("CL.THROTTLE a 1 1 60\r\n", 5)+"EVAL 'while true do end' 0\r\n")
	f := h.gather(t)["cellserver_command_duration_seconds"]
	for command, want := range map[string]struct {
		count    uint64
		from, to float64
	}{"cl.throttle": {5, 0, 1}, "script": {1, 0.05, 10}, "other": {0, 0, 0}} {
		d := series(f, command).GetHistogram()
		if got := d.GetSampleSum(); d.GetSampleCount() != want.count || got < want.from || got > 5*want.to {
			t.Errorf("%s: %d in %g s", command, d.GetSampleCount(), got)
		}
		if d.GetSchema() != 3 || want.count > 0 && len(d.GetPositiveSpan()) == 0 || d.GetCreatedTimestamp().AsTime().Year() < 2000 {
			t.Errorf("%s: no native histogram: %s", command, d)
		}
		buckets := d.GetBucket()
		if len(buckets) < 20 || want.count > 0 && want.to == 1 && buckets[len(buckets)-1].GetCumulativeCount() != want.count {
			t.Errorf("%s: no classic histogram: %s", command, d)
		}
	}
	if text := h.scrape(t); !strings.Contains(text, `cellserver_command_duration_seconds_bucket{command="cl.throttle",le="2.5"} 5`) {
		t.Error("the text has no classic buckets")
	}
}

// TestSeriesAreBounded checks that no client input creates a series.
func TestSeriesAreBounded(t *testing.T) {
	h := newHarness()
	before := names(h.scrape(t))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		word := fmt.Sprintf("W%xZ", rng.Uint64())
		h.say(t, word+"\r\nCLIENT "+word+"\r\nCLIENT SETNAME "+word+"\r\nCL.THROTTLE "+word+" 1 1 60\r\n"+
			"CL.THROTTLE k "+word+" 1 60\r\nCONFIG SET "+word+" 1\r\n"+
			"EVAL \"return redis.error_reply('"+word+" mine')\" 0\r\nEVAL \"error({err='"+word+" mine'})\" 0\r\n"+
			"EVAL \"return redis.pcall('"+word+"')\" 0\r\n")
		if i%100 == 0 {
			h.say(t, "CONFIG RESETSTAT\r\n*1\r\n"+word+"\r\n")
		}
	}
	h.say(t, "EVALSHA x 0\r\n")
	text := h.scrape(t)
	if after := names(text); !slices.Equal(before, after) {
		t.Errorf("%d series before, %d after", len(before), len(after))
	}
	if !strings.Contains(text, `cellserver_errors_total{code="NOSCRIPT"} 1`) {
		t.Error("the code NOSCRIPT is no longer counted")
	}
}

// names returns our series in a scrape, without values.
func names(text string) (all []string) {
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(line, " "); ok && strings.HasPrefix(name, "cellserver_") {
			all = append(all, name)
		}
	}
	return all
}

// TestScrapesUnderLoad checks that sums never decrease and end right.
func TestScrapesUnderLoad(t *testing.T) {
	h := newHarness()
	const clients, rounds, batch = 8, 50, 20
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for range rounds {
				h.say(t, strings.Repeat("CL.THROTTLE k"+strconv.Itoa(i)+" 5 1 60\r\n", batch)+"FOO\r\nPING\r\nEVAL 'return 1' 0\r\n")
			}
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	last := 0.0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		f := h.gather(t)["cellserver_decisions_total"]
		now := value(t, f, "cl.throttle", "allowed") + value(t, f, "cl.throttle", "denied")
		if now < last {
			t.Fatalf("decisions went from %g back to %g", last, now)
		}
		last = now
	}
	if last != clients*rounds*batch {
		t.Errorf("%g decisions, want %d", last, clients*rounds*batch)
	}
	d := series(h.gather(t)["cellserver_command_duration_seconds"], "cl.throttle").GetHistogram()
	if d.GetSampleCount() != clients*rounds*batch || h.config.Records.ThrottleDurations().Count != d.GetSampleCount() {
		t.Errorf("%d durations, and %d", d.GetSampleCount(), h.config.Records.ThrottleDurations().Count)
	}
}

func TestPromtoolFindsNothing(t *testing.T) {
	cmd := processtest.Command(t, processtest.Need(t, "promtool"), "check", "metrics")
	cmd.Stdin = strings.NewReader(everything(t).scrape(t))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
