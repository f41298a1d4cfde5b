package metrics

import (
	"fmt"
	"math/rand/v2"
	"os"
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

// TestSeries compares the names, types and labels of our series with a golden file: dashboards and alerts rely on them.
func TestSeries(t *testing.T) {
	var got []string
	r := newRig(persists(store.Durability{}), func(c *Config) { c.Remote = remoteStatus })
	r.say("CL.LIMIT SET login 4 5 60\r\n")
	for name, f := range r.gather(t) {
		if !strings.HasPrefix(name, "cellserver_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		got = append(got, fmt.Sprintf("%s %s %s", name, strings.ToLower(f.GetType().String()), strings.Join(labels, ",")))
	}
	slices.Sort(got)
	const golden = "testdata/series.txt"
	text := strings.Join(got, "\n") + "\n"
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || text != string(want) {
		t.Errorf("the series have changed (%v); if they should, update %s with UPDATE_DOCS=1:\n%s", err, golden, text)
	}
}

// TestMaximum: what is bounded, by which policy, and what found no room.
func TestMaximum(t *testing.T) {
	r := newRig()
	s := r.config.Store.(*shard.Store)
	s.SetMaxBytes(1, store.NoEviction)
	r.say("CL.THROTTLE a 1 1 60\r\n")
	s.SetMaxBytes(1, store.VolatileTTL)
	for i := range 10_000 {
		r.say("CL.THROTTLE " + strconv.Itoa(i) + " 1 1 60\r\n")
	}
	all := r.gather(t)
	keys := value(t, all["cellserver_keys"])
	for name, want := range map[string]float64{
		"refused_keys_total": 1, "evicted_keys_total": 10_000 - keys, "table_max_bytes": 1, "memory_max_bytes": 0,
	} {
		if got := value(t, all["cellserver_"+name]); got != want {
			t.Errorf("%s: got %g, want %g", name, got, want)
		}
	}
	if got := value(t, all["cellserver_memory_policy_info"], "volatile-ttl"); got != 1 || keys == 10_000 {
		t.Errorf("the policy's info is %g, %g keys are left", got, keys)
	}
}

// TestClientFigures: what is held for clients, and whom that and the limits of an address have cost something.
func TestClientFigures(t *testing.T) {
	r := newRig()
	r.engine.Clients.SetMaxMemory(1 << 20)
	r.engine.NewKeys.Limit(1)
	r.say("CL.THROTTLE x 1 1 60\r\nCL.THROTTLE y 1 1 60\r\n")
	all := r.gather(t)
	for _, tt := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"client_memory_bytes", nil, 0},
		{"client_memory_max_bytes", nil, 1 << 20},
		{"new_keys_refused_total", nil, 1},
		{"connections_refused_total", []string{"maxclients_per_address"}, 0},
		{"connections_closed_total", []string{"memory"}, 0},
		{"connections_closed_total", []string{"input"}, 0},
	} {
		if got := value(t, all["cellserver_"+tt.name], tt.labels...); got != tt.want {
			t.Errorf("%s %q: got %g, want %g", tt.name, tt.labels, got, tt.want)
		}
	}
}

func TestFigures(t *testing.T) {
	r := newRig()
	r.say("CL.THROTTLE a 1 1 60 2\r\nCL.THROTTLE a 1 1 60 1\r\nCL.THROTTLE b 1 1 60 0\r\n")
	r.say("CL.THROTTLE a\r\nFOO\r\nEVALSHA x 0\r\nAUTH user wrong\r\n")
	r.say("*1\r\nfoo\r\n")
	r.say("EVAL 'return 1' 0\r\nEVAL 'return redis.error_reply(\"MINE x\")' 0\r\nEVAL 'while true do end' 0\r\n" +
		"EVAL \"return redis.call('CL.THROTTLE', KEYS[1], 1, 1, 60)\" 1 c\r\nPING\r\n")
	all := r.gather(t)
	for _, tt := range []struct {
		name   string
		labels []string
		want   float64
	}{
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
	} {
		if got := value(t, all["cellserver_"+tt.name], tt.labels...); got != tt.want {
			t.Errorf("%s %q: got %g, want %g", tt.name, tt.labels, got, tt.want)
		}
	}
	if size := all["cellserver_batch_size"].GetMetric()[0].GetHistogram(); size.GetSampleCount() != 2 || size.GetSampleSum() != 4 ||
		size.GetBucket()[0].GetCumulativeCount() != 1 || size.GetBucket()[2].GetCumulativeCount() != 2 {
		t.Errorf("batch sizes: got %s", size)
	}
}

// TestDecisionsByCommand: a decision counts as one of the command that its limiter is known by, wherever it was made; a look
// is one, too, but not what only gives back or tells.
func TestDecisionsByCommand(t *testing.T) {
	r := newRig()
	names := catalog.New()
	for kind := range limiter.Kinds {
		for _, outcome := range []string{"allowed", "denied"} {
			if n := value(t, r.gather(t)["cellserver_decisions_total"], kind.Row().Command, outcome); n != 0 {
				t.Errorf("%s %s: %g before there were any", kind.Row().Command, outcome, n)
			}
		}
		if names.Lookup([]byte(kind.Row().Command)) == nil {
			t.Errorf("%s is no command", kind.Row().Command)
		}
	}
	r.say("CL.PTHROTTLE f 0 1 60000\r\nCL.TOKENBUCKET t 1 1 60 2\r\nCL.MTHROTTLE 2 m 0 1 60 1 n 0 1 60 1\r\nCL.RESERVE f 0 1 60 1 1000\r\n")
	r.say("CL.RESERVE r 4 1 60 2 60000\r\nCL.THROTTLE r 4 1 60 4\r\nCL.COMMIT r 1 1\r\n")
	r.say("MULTI\r\nCL.FIXEDWINDOW w 1 60\r\nCL.FIXEDWINDOW w 1 60\r\nCL.SLIDINGWINDOW s 1 60\r\nEXEC\r\nCL.SLIDINGWINDOW a 9999 60 1 APPROX\r\n")
	r.say("CL.BUCKET RESET b 2\r\nCL.BUCKET TAKE b 2\r\nCL.BUCKET TAKE b 2 2\r\nCL.BUCKET LEN b\r\n")
	r.say("CL.CONCURRENCY ACQUIRE c 1 1000 x\r\nCL.CONCURRENCY ACQUIRE c 1 1000 y\r\nCL.CONCURRENCY RELEASE c x\r\n")
	r.say("CL.LIMIT SET name 0 1 60\r\nCL.LIMIT SET shadow 0 1 60 SHADOW\r\n" +
		"CL.CHECK name k\r\nCL.CHECK name k\r\nCL.CHECK shadow k\r\nCL.CHECK shadow k\r\n")
	decisions := r.gather(t)["cellserver_decisions_total"]
	for _, want := range []struct {
		command         string
		allowed, denied float64
	}{
		{"cl.throttle", 3, 2}, {"cl.reserve", 1, 1}, {"cl.fixedwindow", 1, 1}, {"cl.slidingwindow", 2, 0}, {"cl.bucket", 1, 1},
		{"cl.concurrency", 1, 1}, {"cl.check", 3, 1},
	} {
		if got := value(t, decisions, want.command, "allowed"); got != want.allowed {
			t.Errorf("%s: %g allowed, want %g", want.command, got, want.allowed)
		}
		if got := value(t, decisions, want.command, "denied"); got != want.denied {
			t.Errorf("%s: %g denied, want %g", want.command, got, want.denied)
		}
	}
}

// TestDurationsAreNativeAndClassic: the protobuf format, which carries native histograms, has both forms.
func TestDurationsAreNativeAndClassic(t *testing.T) {
	r := newRig()
	r.say(strings.Repeat("CL.THROTTLE a 1 1 60\r\n", 5) + "EVAL 'while true do end' 0\r\n")
	f := r.gather(t)["cellserver_command_duration_seconds"]
	for command, want := range map[string]struct {
		count    uint64
		from, to float64
	}{"cl.throttle": {5, 0, 1}, "script": {1, 0.05, 10}, "other": {0, 0, 0}} {
		h := series(f, command).GetHistogram()
		if got := h.GetSampleSum(); h.GetSampleCount() != want.count || got < want.from || got > 5*want.to {
			t.Errorf("%s: %d in %g s", command, h.GetSampleCount(), got)
		}
		if h.GetSchema() != 3 || want.count > 0 && len(h.GetPositiveSpan()) == 0 || h.GetCreatedTimestamp().AsTime().Year() < 2000 {
			t.Errorf("%s: no native histogram: %s", command, h)
		}
		buckets := h.GetBucket()
		if len(buckets) < 20 || want.count > 0 && want.to == 1 && buckets[len(buckets)-1].GetCumulativeCount() != want.count {
			t.Errorf("%s: no classic histogram: %s", command, h)
		}
	}
	if text := r.scrape(t); !strings.Contains(text, `cellserver_command_duration_seconds_bucket{command="cl.throttle",le="2.5"} 5`) {
		t.Error("the text has no classic buckets")
	}
}

// TestSeriesAreBounded: no client input creates a new series.
func TestSeriesAreBounded(t *testing.T) {
	r := newRig()
	before := names(r.scrape(t))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		word := fmt.Sprintf("W%xZ", rng.Uint64())
		r.say(word + "\r\nCLIENT " + word + "\r\nCLIENT SETNAME " + word + "\r\nCL.THROTTLE " + word + " 1 1 60\r\n" +
			"CL.THROTTLE k " + word + " 1 60\r\nCONFIG SET " + word + " 1\r\n" +
			"EVAL \"return redis.error_reply('" + word + " mine')\" 0\r\nEVAL \"error({err='" + word + " mine'})\" 0\r\n" +
			"EVAL \"return redis.pcall('" + word + "')\" 0\r\n")
		if i%100 == 0 {
			r.say("CONFIG RESETSTAT\r\n*1\r\n" + word + "\r\n")
		}
	}
	r.say("EVALSHA x 0\r\n")
	text := r.scrape(t)
	if after := names(text); !slices.Equal(before, after) {
		t.Errorf("%d series before, %d after", len(before), len(after))
	}
	if !strings.Contains(text, `cellserver_errors_total{code="NOSCRIPT"} 1`) {
		t.Error("one of our own codes is not counted any more")
	}
}

// names returns our series in a scrape, without their values.
func names(text string) (all []string) {
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(line, " "); ok && strings.HasPrefix(name, "cellserver_") {
			all = append(all, name)
		}
	}
	return all
}

// TestScrapesUnderLoad: sums never decrease, and are right at the end.
func TestScrapesUnderLoad(t *testing.T) {
	r := newRig()
	const clients, rounds, batch = 8, 50, 20
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for range rounds {
				r.say(strings.Repeat("CL.THROTTLE k"+strconv.Itoa(i)+" 5 1 60\r\n", batch) + "FOO\r\nPING\r\nEVAL 'return 1' 0\r\n")
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
		f := r.gather(t)["cellserver_decisions_total"]
		now := value(t, f, "cl.throttle", "allowed") + value(t, f, "cl.throttle", "denied")
		if now < last {
			t.Fatalf("decisions went from %g back to %g", last, now)
		}
		last = now
	}
	if last != clients*rounds*batch {
		t.Errorf("%g decisions, want %d", last, clients*rounds*batch)
	}
	h := series(r.gather(t)["cellserver_command_duration_seconds"], "cl.throttle").GetHistogram()
	if h.GetSampleCount() != clients*rounds*batch || r.config.Records.ThrottleDurations().Count != h.GetSampleCount() {
		t.Errorf("%d durations, and %d", h.GetSampleCount(), r.config.Records.ThrottleDurations().Count)
	}
}

func TestPromtoolFindsNothing(t *testing.T) {
	cmd := processtest.Command(t, processtest.Need(t, "promtool", "prometheus"), "check", "metrics")
	cmd.Stdin = strings.NewReader(everything(t).scrape(t))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
