package rls

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/server"
)

// TestSwitches: the settings of envoyproxy/ratelimit do what its source says.
func TestSwitches(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config Config
		yaml   string
		steps  []step
	}{
		{"SHADOW_MODE allows all, and descriptors keep their status", Config{Shadow: true, Headers: true},
			"domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 1}}]\n", []step{
				{"d a=1", `OK: OK 0/1 MINUTE 40 RateLimit-Limit=1 RateLimit-Remaining=0 RateLimit-Reset=40 x-ratelimit-near="a"`},
				{"d a=1", "OK: OVER_LIMIT 0/1 MINUTE 40 RateLimit-Limit=1 RateLimit-Remaining=0 RateLimit-Reset=40"},
				{"d b=1!0/MINUTE", "OK: OVER_LIMIT 0/0 MINUTE 40 RateLimit-Limit=0 RateLimit-Remaining=0 RateLimit-Reset=40"},
			}},
		{"QUOTA_MODE counts descriptors without a limit, too, but none without limits", Config{Quota: true}, `
domain: d
descriptors:
- {key: a, rate_limit: {unit: minute, requests_per_unit: 1, name: a}}
- {key: b, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: free, rate_limit: {unlimited: true}}
- {key: instead, rate_limit: {unit: minute, requests_per_unit: 1, replaces: [{name: a}]}}
`, []step{
			{"d a=1", "OK: OK 0/1 MINUTE 40"},
			{"d a=1 b=1", "OK: OVER_LIMIT 0/1 MINUTE 40, OK 0/1 MINUTE 40"},
			{"d a=1 b=1", "OVER_LIMIT: OVER_LIMIT 0/1 MINUTE 40, OVER_LIMIT 0/1 MINUTE 40"},
			{"d a=1 nosuch=1", "OK: OVER_LIMIT 0/1 MINUTE 40, OK 0"},
			{"d a=1 free=1", "OVER_LIMIT: OVER_LIMIT 0/1 MINUTE 40, OK 4294967295"},
			{"d a=1!1/HOUR a=1!0/HOUR", "OK: OK 0/1 HOUR 2800, OVER_LIMIT 0/0 HOUR 2800"},
			{"d instead=1 a=1", "OK: OK 0/1 MINUTE 40, OK 0"},
			{"d instead=1 a=1", "OK: OVER_LIMIT 0/1 MINUTE 40, OK 0"}, // what is replaced is a descriptor without a limit
		}},
		{"LIMIT_*_HEADER", Config{Headers: true, HeaderNames: [3]string{"x-limit", "", "x-reset"}},
			"domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 9}}]\n", []step{
				{"d a=1", "OK: OK 8/9 MINUTE 40 x-limit=9 RateLimit-Remaining=8 x-reset=40"},
			}},
		{"NEAR_LIMIT_RATIO", Config{Headers: true, NearRatio: 0.5},
			"domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 9}}]\n", []step{
				{"d a=1 +4", "OK: OK 5/9 MINUTE 40 RateLimit-Limit=9 RateLimit-Remaining=5 RateLimit-Reset=40"},
				{"d a=1", `OK: OK 4/9 MINUTE 40 RateLimit-Limit=9 RateLimit-Remaining=4 RateLimit-Reset=40 x-ratelimit-near="a"`},
			}},
		{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT charges only limits that the request exceeds, if there are any", Config{StopsWhenOver: true}, `
domain: d
descriptors:
- {key: a, rate_limit: {unit: minute, requests_per_unit: 3}}
- {key: b, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: s, rate_limit: {unit: minute, requests_per_unit: 1}, shadow_mode: true}
- {key: none, rate_limit: {unit: minute, requests_per_unit: 0}}
`, []step{
			{"d a=1 b=1", "OK: OK 2/3 MINUTE 40, OK 0/1 MINUTE 40"},
			{"d a=1 b=1", "OVER_LIMIT: OK 2/3 MINUTE 40, OVER_LIMIT 0/1 MINUTE 40"},
			{"d b=1#-1", "OK: OK 0/1 MINUTE 40"}, // the denied hit was counted: 2, then 1
			{"d a=1 none=1", "OVER_LIMIT: OK 2/3 MINUTE 40, OVER_LIMIT 0/0 MINUTE 40"},
			{"d a=1 none=1#0", "OVER_LIMIT: OK 2/3 MINUTE 40, OVER_LIMIT 0/0 MINUTE 40"},
			{"d a=1#-1 b=1", "OVER_LIMIT: OK 3/3 MINUTE 40, OVER_LIMIT 0/1 MINUTE 40"}, // what is returned is returned
			{"d a=1 s=1", "OK: OK 2/3 MINUTE 40, OK 0/1 MINUTE 40"},
			{"d a=1 s=1", "OK: OK 2/3 MINUTE 40, OK 0/1 MINUTE 40"}, // a shadow stops the others, too
			{"d a=1 +4", "OVER_LIMIT: OVER_LIMIT 0/3 MINUTE 40"},
			{"d a=1#0", "OVER_LIMIT: OVER_LIMIT 0/3 MINUTE 40"},
			{"d nosuch=1", "OK: OK 0"},
		}},
		{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT beside all_or_nothing", Config{StopsWhenOver: true}, `
domain: d
all_or_nothing: true
descriptors:
- {key: a, rate_limit: {unit: minute, requests_per_unit: 3}}
- {key: b, rate_limit: {unit: minute, requests_per_unit: 1}}
`, []step{
			{"d a=1 b=1", "OK: OK 2/3 MINUTE 40, OK 0/1 MINUTE 40"},
			{"d a=1 b=1", "OVER_LIMIT: OK 2/3 MINUTE 40, OVER_LIMIT 0/1 MINUTE 40"},
			{"d b=1#0", "OK: OK 0/1 MINUTE 40"},
		}},
		{"an empty configuration has no domain", Config{AwaitsRules: true}, "domain: other\n", []step{
			{"d a=1!1/MINUTE", "OK: OK 0"},
		}},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			tt.config.Rules = rulesOf(t, tt.yaml)
			h := open(t, tt.config, server.Limits{MaxClients: 10})
			for _, s := range tt.steps {
				h.expect(t, s.request, s.want)
			}
		})
	}
}

// TestMetricsOfSwitches: hits are counted by what happened to them.
func TestMetricsOfSwitches(t *testing.T) {
	const yaml = "domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 10}}, {key: b, rate_limit: {unit: minute, requests_per_unit: 0}}]\n"
	for _, tt := range []struct {
		config   Config
		requests []string
		shadow   uint64
		want     []string
	}{
		{Config{Shadow: true}, []string{"d b=1", "d a=1", "d b=1 +2", "d b=1#0"}, 3, []string{"d|a 1 1 0 0 0", "d|b 3 0 0 3 0"}},
		{Config{NearRatio: 0.35}, []string{"d a=1 +3", "d a=1", "d a=1 +7"}, 0, []string{"d|a 11 4 1 7 0"}},
		// a is not charged beside b, but within its limit
		{Config{StopsWhenOver: true}, []string{"d a=1 b=1 +9", "d a=1"}, 0, []string{"d|a 10 10 0 0 0", "d|b 9 0 0 9 0"}},
	} {
		tt.config.Rules = rulesOf(t, yaml)
		h := open(t, tt.config, server.Limits{MaxClients: 10})
		for _, request := range tt.requests {
			if _, err := h.ask(t, requestOf(t, request), ""); err != nil {
				t.Fatal(err)
			}
		}
		if got := h.rows(); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.requests, got, tt.want)
		}
		if got := h.service.Metrics.GlobalShadow(); got != tt.shadow {
			t.Errorf("%q: %d requests allowed by SHADOW_MODE, want %d", tt.requests, got, tt.shadow)
		}
	}
}

// TestAwaitedRules: before the first configuration calls fail with the code and the words of there, and the
// health is as HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED says.
func TestAwaitedRules(t *testing.T) {
	for _, withConfig := range []bool{false, true} {
		var rules *envoyconfig.Rules
		h := open(t, Config{AwaitsRules: true, HealthyWithConfig: withConfig, Rules: func() *envoyconfig.Rules { return rules }}, server.Limits{MaxClients: 10})
		expect := func(call codes.Code, ready bool) {
			t.Helper()
			_, err := h.ask(t, requestOf(t, "d a=1!1/MINUTE"), "")
			if status.Code(err) != call || call == codes.Unknown && status.Convert(err).Message() != "no rate limit configuration loaded" {
				t.Errorf("got %v, want %v", err, call)
			}
			if err := h.service.Ready(); (err == nil) != ready {
				t.Errorf("health, with a configuration %t: %v", withConfig, err)
			}
		}
		expect(codes.Unknown, !withConfig)
		h.expect(t, "d", "InvalidArgument: "+errNoDescriptors.Error())
		rules = &envoyconfig.Rules{} // no domains
		expect(codes.OK, !withConfig)
		rules = rulesOf(t, "domain: d\n")()
		expect(codes.OK, true)
		rules = &envoyconfig.Rules{}
		expect(codes.OK, !withConfig)
	}
}

// TestOneReadingACall: a call asks for the configuration once, whatever switches there are.
func TestOneReadingACall(t *testing.T) {
	readings := 0
	rules := rulesOf(t, "domain: d\ndescriptors: [{key: a, value: 'x*', value_to_metric: true, rate_limit: {unit: minute, requests_per_unit: 1}}]\n")
	h := open(t, Config{
		AwaitsRules: true, Shadow: true, Quota: true, StopsWhenOver: true, Headers: true, Metadata: true,
		Rules: func() *envoyconfig.Rules {
			readings++
			return rules()
		},
	}, server.Limits{MaxClients: 10})
	for i, request := range []string{"d a=xy a=xz b=1!0/HOUR", "nosuch a=x"} {
		if _, err := call(context.Background(), h.client, requestOf(t, request)); err != nil {
			t.Fatal(err)
		}
		if readings != i+1 {
			t.Errorf("%d readings after %d calls", readings, i+1)
		}
	}
}
