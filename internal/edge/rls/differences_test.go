package rls

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/server"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/wire/peer"
)

// difference is a row of the table in docs/ENVOY.md: what envoyproxy/ratelimit at f2fb157 does by its source,
// and what is done here, which the steps and also try.
type difference struct {
	what, there, here string

	config Config
	yaml   string // the configuration of domain d
	steps  []step
	also   func(t *testing.T, h *house)
}

const (
	minuteOf1  = "descriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 1}}]\n"
	minuteOf10 = "descriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 10}}]\n"
)

func differences() []difference {
	return slices.Concat(differencesOfCalls(), differencesOfFiles(), differencesOfCounts(), differencesOfPorts())
}

func differencesOfCalls() []difference {
	return []difference{
		{
			what:  "`is_negative_hits`",
			there: "is not read: the hits are added",
			here:  "the hits are returned",
			yaml:  minuteOf10, steps: []step{
				{"d a=1 +3", "OK: OK 7/10 MINUTE 40"}, // there the next has 5/10
				{"d a=1#-2", "OK: OK 9/10 MINUTE 40"},
			},
		},
		{
			what:  "`hits_addend` beyond 2^63 - 1",
			there: "Redis refuses it: UNKNOWN, so Envoy lets the request pass",
			here:  "is counted as 2^63 - 1, so the request is denied",
			yaml:  minuteOf10, steps: []step{{"d a=1#18446744073709551615", "OVER_LIMIT: OVER_LIMIT 0/10 MINUTE 40"}},
		},
		{
			what:  "`unit_multiplier` of a limit that a request brings",
			there: "is not read: 5 in 3 minutes are 5 in each minute; at `/json` an unknown field is 400",
			here:  "the window has that many units",
			yaml:  minuteOf10, steps: []step{{"d b=1!5/MINUTE*3", "OK: OK 4/5 MINUTE 180"}},
		},
		{
			what:  "a limit that a request brings without a unit",
			there: "ends the process, by a panic",
			here:  "INVALID_ARGUMENT",
			yaml:  minuteOf10, steps: []step{{"d b=1!5/UNKNOWN", "InvalidArgument: " + errUnit.Error()}},
		},
		{
			what:  "a key or value that is not UTF-8, such as of a visitor's header",
			there: "INTERNAL, so Envoy lets the request pass",
			here:  "is counted as its bytes; metrics and metadata have U+FFFD for what is not UTF-8",
			yaml:  minuteOf1, steps: []step{
				{"d a=\xff", "OK: OK 0/1 MINUTE 40"},
				{"d a=\xff", "OVER_LIMIT: OVER_LIMIT 0/1 MINUTE 40"},
			},
		},
		{
			what:  "the size of a call",
			there: "4 MiB; gzip is read",
			here:  "256 KiB, 128 descriptors, 128 entries in all of them; nothing compressed; see [the codes](#envoy)",
			yaml:  minuteOf1, steps: []step{{"d" + strings.Repeat(" b=1", maxDescriptors+1), "InvalidArgument: " + errTooMany.Error()}},
		},
		{
			what:  "the codes of errors",
			there: "UNKNOWN",
			here:  "[those above](#envoy); UNKNOWN only for `no rate limit configuration loaded`",
			yaml:  minuteOf1, steps: []step{{"d", "InvalidArgument: " + errNoDescriptors.Error()}},
		},
		{
			what:  "the key of a count",
			there: "domain, keys, values and the window's begin, joined by `_`: `a` = `b_c` and `a_b` = `c` count together, and so do limits of two units while their windows began together",
			here:  "each list of entries and each unit counts by itself",
			yaml:  "descriptors: [{key: a, value: b_c, rate_limit: {unit: minute, requests_per_unit: 1}}]\n", steps: []step{
				{"d a=b_c", "OK: OK 0/1 MINUTE 40"},
				{"d a_b=c", "OK: OK 0/1 MINUTE 40"},
				{"d x=1!1/SECOND", "OK: OK 0/1 SECOND 1"},
				{"d x=1!1/MINUTE", "OK: OK 0/1 MINUTE 40"},
			},
		},
		{
			what:   "`metadata` of a limit with `detailed_metric`, or whose series has values of the request",
			there:  "is lost",
			here:   "is in the dynamic metadata",
			config: Config{Metadata: true},
			yaml:   "descriptors: [{key: a, detailed_metric: true, metadata: {m: 1}, rate_limit: {unit: minute, requests_per_unit: 1}}]\n",
			also: func(t *testing.T, h *house) {
				r, err := h.ask(t, requestOf(t, "d a=1"), "")
				if err != nil || !equalJSON(t, r.DynamicMetadata.AsMap()["metadata"], map[string]any{"m": 1}) {
					t.Errorf("got %v, %v", r, err)
				}
			},
		},
		{
			what:   "`x-ratelimit-near` and the metadata's `near`",
			there:  "do not exist",
			here:   "[tell limits that are near](#near-the-limit)",
			config: Config{Headers: true},
			yaml:   minuteOf1, steps: []step{{"d a=1", `OK: OK 0/1 MINUTE 40 RateLimit-Limit=1 RateLimit-Remaining=0 RateLimit-Reset=40 x-ratelimit-near="a"`}},
		},
		{
			what:  "`algorithm` and `all_or_nothing`",
			there: "are refused as unknown",
			here:  "[are cellserver's own](#the-configuration)",
			yaml:  "all_or_nothing: true\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 2, algorithm: funnel}}]\n", steps: []step{
				{"d a=1", "OK: OK 1/2 MINUTE 30"},
			},
		},
		{
			what:  "the size of the configuration",
			there: "any",
			here:  "100,000 descriptors, on 32 levels",
			yaml:  minuteOf1,
			also: func(t *testing.T, _ *house) {
				level := "descriptors: [{key: a"
				deep := "domain: d\n" + level + strings.Repeat(", "+level, 32) + strings.Repeat("}]", 33)
				if _, err := envoyconfig.RulesOf([]envoyconfig.File{{Path: "f", Text: []byte(deep)}}); err == nil || !strings.Contains(err.Error(), "32 levels") {
					t.Errorf("33 levels: %v", err)
				}
			},
		},
	}
}

func differencesOfFiles() []difference {
	return []difference{
		{
			what:  "a mistake in a file at the start",
			there: "is logged, and calls are UNKNOWN until it is corrected",
			here:  "ends the start",
			yaml:  minuteOf1,
			also: func(t *testing.T, _ *house) {
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "f"), []byte("domain: d\nmistake: 1\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := envoyconfig.Open(dir, envoyconfig.Options{AllFiles: true}); err == nil {
					t.Error("opened")
				}
			},
		},
	}
}

func differencesOfCounts() []difference {
	return []difference{
		{
			what:  "where counts are",
			there: "in Redis or memcached",
			here: "in memory or in [the store behind it](TUNING.md#a-store-on-redis-or-valkey); with `--data-dir` they survive a restart, with [a second server](DEPLOY.md#a-second-server) " +
				"the loss of one, before which Envoy needs [a proxy](DEPLOY.md#sentinel)",
			yaml: minuteOf1, steps: []step{{"d a=1", "OK: OK 0/1 MINUTE 40"}},
			also: func(t *testing.T, h *house) {
				if got, _, _ := commandstest.Converse(t, h.Session(), "keys *\r\n"); !strings.Contains(got, "rls:minute:1:d1:a1:1") {
					t.Errorf("keys: %q", got)
				}
			},
		},
		{
			what:  "`LOCAL_CACHE_SIZE_IN_BYTES`, `EXPIRATION_JITTER_MAX_SECONDS`",
			there: "a denied key is remembered and no longer counted; keys outlive their window by up to 300 seconds",
			here:  "every hit is counted; keys end with their window",
			yaml:  minuteOf1, steps: []step{
				{"d a=1", "OK: OK 0/1 MINUTE 40"},
				{"d a=1 +5", "OVER_LIMIT: OVER_LIMIT 0/1 MINUTE 40"},
				{"d a=1#-5", "OK: OK 0/1 MINUTE 40"}, // of 6
				{"wait 40", ""},
				{"d a=1#0", "OK: OK 1/1 MINUTE 60"},
			},
		},
		{
			what:  "metrics of a denied call of several hits",
			there: "`near_limit` has those that would have fitted, `over_limit` and `shadow_mode` the rest",
			here:  "`over_limit`, and in shadow mode `shadow_mode`, has all",
			yaml:  minuteOf10, steps: []step{{"d a=1 +12", "OVER_LIMIT: OVER_LIMIT 0/10 MINUTE 40"}},
			also: func(t *testing.T, h *house) { // there near is 2 and over is 2
				if got, want := h.rows(), []string{"d|a 12 0 0 12 0"}; !slices.Equal(got, want) {
					t.Errorf("got %q", got)
				}
			},
		},
		{
			what: "labels of the series `ratelimit_service_rate_limit_*`",
			there: "`domain`, `key1` and `key2`: what is between the first dots, with `_` for colons, bars and the dots of IPv4; a third key is lost. " +
				"There is a series for each value, without bound",
			here: "`domain` and `descriptor`, which has all keys; 1,024 series, 512 of them with values of requests, and one for the others",
			yaml: "descriptors: [{key: a, descriptors: [{key: b, descriptors: [{key: ip, value_to_metric: true, rate_limit: {unit: minute, requests_per_unit: 1}}]}]}]\n", steps: []step{
				{"d a=1,b=2,ip=::192.0.2.1", "OK: OK 0/1 MINUTE 40"},
			},
			also: func(t *testing.T, h *house) {
				if got, want := h.rows(), []string{"d|a.b.ip_::192.0.2.1 1 1 1 0 0"}; !slices.Equal(got, want) {
					t.Errorf("got %q", got)
				}
			},
		},
		{
			what: "other metrics",
			there: "`ratelimit_service_rate_limit_DOMAIN_domain_not_found` by descriptor, `ratelimit_service_global_shadow_mode`, " +
				"`ratelimit_service_should_rate_limit_error`, `ratelimit_service_response_time_seconds`",
			here: "`cellserver_envoy_domains_unknown_total` by call, `cellserver_envoy_global_shadow_mode_total`, `cellserver_door_requests_total` and " +
				"`cellserver_door_request_duration_seconds`",
			config: Config{Shadow: true},
			yaml:   minuteOf1, steps: []step{{"nosuch a=1 a=2 a=3", "OK: OK 0, OK 0, OK 0"}, {"d a=1 +2", "OK: OVER_LIMIT 0/1 MINUTE 40"}},
			also: func(t *testing.T, h *house) {
				if m := h.service.Metrics; m.NotFound() != 1 || m.GlobalShadow() != 1 {
					t.Errorf("%d domains not found, %d allowed by the global shadow mode", m.NotFound(), m.GlobalShadow())
				}
			},
		},
	}
}

func differencesOfPorts() []difference {
	return []difference{
		{
			what:  "the health of `" + ServiceName + "`",
			there: "NOT_FOUND",
			here:  "that of `ratelimit`",
			yaml:  minuteOf1,
			also: func(t *testing.T, h *house) {
				r, err := grpc_health_v1.NewHealthClient(h.client).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: ServiceName})
				if err != nil || r.Status != grpc_health_v1.HealthCheckResponse_SERVING {
					t.Errorf("got %v, %v", r, err)
				}
			},
		},
		{
			what:  "watchers of the health",
			there: "any number; a shutdown waits for them",
			here:  "64, of a host 32; further ones are UNIMPLEMENTED, by which gRPC's clients go on without the health; a shutdown ends them",
			yaml:  minuteOf1,
			also: func(t *testing.T, h *house) {
				const ofHost = 32
				for i := range ofHost + 1 {
					w, err := grpc_health_v1.NewHealthClient(h.client).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
					if err == nil {
						_, err = w.Recv()
					}
					if want := map[bool]codes.Code{true: codes.Unimplemented}[i == ofHost]; status.Code(err) != want {
						t.Errorf("watcher %d: %v", i, err)
					}
				}
			},
		},
		{
			what:  "who may ask `/json` and the debug port",
			there: "everybody, and each web page in the browser of one who reaches it",
			here:  "who may call over gRPC, by the same tokens; web pages may not; `/healthcheck` is for everybody",
			yaml:  minuteOf1,
			also: func(t *testing.T, h *house) {
				h.refuse = "protected"
				url, _ := h.serveHTTP(t, peer.RatelimitHTTP, NewHTTP(h.service))
				debug, _ := h.serveHTTP(t, peer.RatelimitDebug, NewDebug(h.service, DebugConfig{}))
				for path, want := range map[string]int{url + "/json": 400, url + "/healthcheck": 200, debug + "/rlconfig": 403} {
					if got := sayHTTP(t, "POST", path, "{}"); got.code != want {
						t.Errorf("%s: %+v", path, got)
					}
				}
			},
		},
		{
			what:  "the debug port's `/stats` and `/debug/pprof/`",
			there: "the command line and the memory's figures; profiles for everybody",
			here:  "the counters, as `NAME: VALUE`; profiles only with `--pprof`, for users with all rights",
			yaml:  minuteOf1, steps: []step{{"d a=1", "OK: OK 0/1 MINUTE 40"}},
			also: func(t *testing.T, h *house) {
				url, _ := h.serveHTTP(t, peer.RatelimitDebug, NewDebug(h.service, DebugConfig{}))
				if got := sayHTTP(t, "GET", url+"/stats", ""); !strings.Contains(got.text, "ratelimit.service.rate_limit.d.a.total_hits: 1\n") {
					t.Errorf("stats: %+v", got)
				}
				if got := sayHTTP(t, "GET", url+"/debug/pprof/heap", ""); !strings.HasPrefix(got.text, "/rlconfig: ") {
					t.Errorf("a profile: %.100q", got.text)
				}
			},
		},
	}
}

// TestDifferences tries each row of the table, and holds the document to them. UPDATE_DOCS=1 renews it.
func TestDifferences(t *testing.T) {
	const path, head = "../../../docs/ENVOY.md", "| what | envoyproxy/ratelimit | cellserver |\n| --- | --- | --- |\n"
	table := head
	for _, d := range differences() {
		table += "| " + d.what + " | " + d.there + " | " + d.here + " |\n"
		t.Run(strings.ReplaceAll(d.what, " ", "_"), func(t *testing.T) {
			d.config.Rules = rulesOf(t, "domain: d\n"+d.yaml)
			h := open(t, d.config, server.Limits{MaxClients: 100})
			for _, s := range d.steps {
				if seconds, ok := strings.CutPrefix(s.request, "wait "); ok {
					h.Clock.Advance(int64(number(t, seconds)) * 1e9)
					continue
				}
				h.expect(t, s.request, s.want)
			}
			if d.also != nil {
				d.also(t, h)
			}
		})
	}
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(document), head)
	if !ok {
		t.Fatalf("%s lacks the table", path)
	}
	for strings.HasPrefix(rest, "|") {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	text := before + table + rest
	if text == string(document) {
		return
	}
	if os.Getenv("UPDATE_DOCS") == "" {
		t.Errorf("%s is not up to date; UPDATE_DOCS=1 renews it", path)
	} else if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
