package rls

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/edge/server"
)

// step is a request and its response; "wait N" lets seconds pass.
type step struct{ request, want string }

// T0 of the harness is 20 s after the beginning of a minute, and 800 s after that of an hour.
func scenarios() map[string]struct {
	yaml  string
	steps []step
} {
	return map[string]struct {
		yaml  string
		steps []step
	}{
		"fixed values": {"domain: mongo\ndescriptors:\n- {key: database, value: users, rate_limit: {unit: second, requests_per_unit: 2}}\n", []step{
			{"mongo database=users", "OK: OK 1/2 SECOND 1"},
			{"mongo database=users", "OK: OK 0/2 SECOND 1"},
			{"mongo database=users", "OVER_LIMIT: OVER_LIMIT 0/2 SECOND 1"},
			{"mongo database=other", "OK: OK 0"},
			{"nosuch database=users", "OK: OK 0"},
			{"mongo database=users,x=y", "OK: OK 0"},
			{"wait 1", ""},
			{"mongo database=users", "OK: OK 1/2 SECOND 1"},
		}},
		"nested": {`
domain: messaging
descriptors:
- key: message_type
  value: marketing
  descriptors:
  - {key: to_number, rate_limit: {unit: day, requests_per_unit: 1}}
- {key: to_number, rate_limit: {unit: day, requests_per_unit: 3}}
`, []step{
			{"messaging message_type=marketing,to_number=1 to_number=1", "OK: OK 0/1 DAY 6400, OK 2/3 DAY 6400"},
			{"messaging message_type=marketing,to_number=2 to_number=2", "OK: OK 0/1 DAY 6400, OK 2/3 DAY 6400"},
			{"messaging message_type=marketing,to_number=1 to_number=1", "OVER_LIMIT: OVER_LIMIT 0/1 DAY 6400, OK 1/3 DAY 6400"},
			{"messaging message_type=marketing", "OK: OK 0"},
		}},
		"a limit of 0": {"domain: d\ndescriptors:\n- {key: ip, rate_limit: {unit: hour, requests_per_unit: 1}}\n" +
			"- {key: ip, value: bad, rate_limit: {unit: hour, requests_per_unit: 0}}\n", []step{
			{"d ip=bad#0", "OK: OK 0/0 HOUR 2800"},
			{"d ip=bad", "OVER_LIMIT: OVER_LIMIT 0/0 HOUR 2800"},
			{"d ip=bad#0", "OVER_LIMIT: OVER_LIMIT 0/0 HOUR 2800"}, // its hit is counted
			{"d ip=bad#-1", "OK: OK 0/0 HOUR 2800"},
			{"d ip=bad#0", "OK: OK 0/0 HOUR 2800"},
			{"d own=1!0/HOUR", "OVER_LIMIT: OVER_LIMIT 0/0 HOUR 2800"},
			{"d own=1#0!0/HOUR", "OVER_LIMIT: OVER_LIMIT 0/0 HOUR 2800"},
			{"d own=2#0!0/HOUR*2", "OK: OK 0/0 HOUR 0"}, // no window of there: its hits are not counted
			{"d own=2!0/HOUR*2", "OVER_LIMIT: OVER_LIMIT 0/0 HOUR 0"},
			{"d own=2#0!0/HOUR*2", "OK: OK 0/0 HOUR 0"},
			{"wait 3600", ""},
			{"d own=1#0!0/HOUR", "OK: OK 0/0 HOUR 2800"},
			{"d ip=good", "OK: OK 0/1 HOUR 2800"},
		}},
		"unlimited": {"domain: d\ndescriptors: [{key: ldap, rate_limit: {unlimited: true}}]\n", []step{
			{"d ldap=x", "OK: OK 4294967295"},
		}},
		"shadow": {"domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 1}, shadow_mode: true}]\n", []step{
			{"d a=1", "OK: OK 0/1 MINUTE 40"},
			{"d a=1", "OK: OK 0/1 MINUTE 40"},
		}},
		"replaces": {`
domain: d
descriptors:
- {key: a, rate_limit: {unit: minute, requests_per_unit: 1, name: old}}
- {key: b, rate_limit: {unit: minute, requests_per_unit: 2, replaces: [{name: old}]}}
- {key: c, rate_limit: {unlimited: true, replaces: [{name: old}]}}
`, []step{
			{"d a=1 b=1", "OK: OK 0, OK 1/2 MINUTE 40"},
			{"d a=1 c=1", "OK: OK 0, OK 4294967295"},
			{"d a=1", "OK: OK 0/1 MINUTE 40"},
			{"d a=1", "OVER_LIMIT: OVER_LIMIT 0/1 MINUTE 40"},
			{"d b=1 a=1", "OK: OK 0/2 MINUTE 40, OK 0"},
		}},
		"quota mode": {`
domain: d
descriptors:
- {key: s, value: "1", quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: s, value: "2", quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 2}}
- {key: hard, rate_limit: {unit: minute, requests_per_unit: 3}}
`, []step{
			{"d s=1 s=2 hard=x", "OK: OK 0/1 MINUTE 40, OK 1/2 MINUTE 40, OK 2/3 MINUTE 40"},
			{"d s=1 s=2 hard=x", "OK: OVER_LIMIT 0/1 MINUTE 40, OK 0/2 MINUTE 40, OK 1/3 MINUTE 40"},
			{"d s=1 s=2 hard=x", "OVER_LIMIT: OVER_LIMIT 0/1 MINUTE 40, OVER_LIMIT 0/2 MINUTE 40, OK 0/3 MINUTE 40"},
		}},
		"wildcards": {`
domain: d
descriptors:
- {key: f, value: "files/*", share_threshold: true, rate_limit: {unit: hour, requests_per_unit: 2}}
- {key: f, value: "own/*", rate_limit: {unit: hour, requests_per_unit: 1}}
`, []step{
			{"d f=files/a", "OK: OK 1/2 HOUR 2800"},
			{"d f=files/b", "OK: OK 0/2 HOUR 2800"},
			{"d f=files/c", "OVER_LIMIT: OVER_LIMIT 0/2 HOUR 2800"},
			{"d f=own/a", "OK: OK 0/1 HOUR 2800"},
			{"d f=own/b", "OK: OK 0/1 HOUR 2800"},
		}},
		"hits": {"domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 10}}, {key: b, rate_limit: {unit: minute, requests_per_unit: 10}}]\n", []step{
			{"d a=1 b=1 +3", "OK: OK 7/10 MINUTE 40, OK 7/10 MINUTE 40"},
			{"d a=1#0 b=1#2 +3", "OK: OK 7/10 MINUTE 40, OK 5/10 MINUTE 40"},
			{"d a=1#8", "OVER_LIMIT: OVER_LIMIT 0/10 MINUTE 40"},
			{"d a=1", "OVER_LIMIT: OVER_LIMIT 0/10 MINUTE 40"},   // the denied 8 count
			{"d a=1#0", "OVER_LIMIT: OVER_LIMIT 0/10 MINUTE 40"}, // a look, too
			{"d a=1#-5", "OK: OK 3/10 MINUTE 40"},
			{"d b=1#18446744073709551615", "OVER_LIMIT: OVER_LIMIT 0/10 MINUTE 40"},
		}},
		"limits of requests": {"domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 10}}]\n", []step{
			{"d a=1!1/MINUTE", "OK: OK 0/1 MINUTE 40"},
			{"d a=1!1/MINUTE", "OVER_LIMIT: OVER_LIMIT 0/1 MINUTE 40"},
			{"d a=1", "OK: OK 7/10 MINUTE 40"},
			{"d new=1!5/YEAR", "OK: OK 4/5 YEAR 2944000"},
			{"d new=1!5/MINUTE*5", "OK: OK 4/5 MINUTE 300"},
			{"other new=1!5/HOUR", "OK: OK 0"}, // there is no such domain
			{"other new=1!5/UNKNOWN", "OK: OK 0"},
			{"d new=1!5/UNKNOWN", "InvalidArgument: " + errUnit.Error()},
			{"d new=1!5/WEEK", "OK: OK 4/5 WEEK 92800"},
			{"d new=1!5/YEAR*4000000000", "InvalidArgument: " + errLong.Error()},
		}},
		"algorithms": {`
domain: d
descriptors:
- {key: funnel, rate_limit: {unit: minute, requests_per_unit: 2, algorithm: funnel}}
- {key: bucket, rate_limit: {unit: minute, requests_per_unit: 2, algorithm: token_bucket}}
- {key: fixed, rate_limit: {unit: minute, requests_per_unit: 2, algorithm: fixed_window}}
- {key: sliding, rate_limit: {unit: minute, requests_per_unit: 2, algorithm: sliding_window}}
- {key: approx, rate_limit: {unit: minute, requests_per_unit: 2, algorithm: approximate_window}}
- {key: quota, rate_limit: {unit: minute, requests_per_unit: 2, algorithm: quota}}
`, []step{
			{"d funnel=1 bucket=1 fixed=1 sliding=1 approx=1 quota=1 +2",
				"OK: OK 0/2 MINUTE 60, OK 0/2 MINUTE 60, OK 0/2 MINUTE 60, OK 0/2 MINUTE 60, OK 0/2 MINUTE 120, OK 0/2 MINUTE 40"},
			{"wait 31", ""},
			{"d funnel=1 bucket=1 fixed=1 sliding=1 +1", "OVER_LIMIT: OK 0/2 MINUTE 59, OK 0/2 MINUTE 59, OVER_LIMIT 0/2 MINUTE 29, OVER_LIMIT 0/2 MINUTE 29"},
		}},
		"all or nothing": {`
domain: d
all_or_nothing: true
descriptors:
- {key: a, rate_limit: {unit: minute, requests_per_unit: 3}}
- {key: b, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: s, rate_limit: {unit: minute, requests_per_unit: 1}, shadow_mode: true}
`, []step{
			{"d a=1 b=1 s=1", "OK: OK 2/3 MINUTE 40, OK 0/1 MINUTE 40, OK 0/1 MINUTE 40"},
			{"d a=1 b=1 s=1", "OVER_LIMIT: OK 2/3 MINUTE 40, OVER_LIMIT 0/1 MINUTE 40, OK 0/1 MINUTE 40"},
			{"d a=1 s=1", "OK: OK 1/3 MINUTE 40, OK 0/1 MINUTE 40"},
		}},
		"all or nothing beside a limit of 0": {`
domain: d
all_or_nothing: true
descriptors:
- {key: a, rate_limit: {unit: minute, requests_per_unit: 3}}
- {key: none, rate_limit: {unit: minute, requests_per_unit: 0}}
- {key: s, rate_limit: {unit: minute, requests_per_unit: 0}, shadow_mode: true}
`, []step{
			{"d a=1 none=1", "OVER_LIMIT: OK 3/3 MINUTE 40, OVER_LIMIT 0/0 MINUTE 40"},
			{"d a=1 none=1 +4", "OVER_LIMIT: OVER_LIMIT 0/3 MINUTE 40, OVER_LIMIT 0/0 MINUTE 40"},
			{"d a=1 none=1#0", "OK: OK 2/3 MINUTE 40, OK 0/0 MINUTE 40"}, // nothing is denied
			{"d a=1 s=1", "OK: OK 1/3 MINUTE 40, OK 0/0 MINUTE 40"},      // a shadow denies nothing
			{"d none=1 a=1", "OVER_LIMIT: OVER_LIMIT 0/0 MINUTE 40, OK 1/3 MINUTE 40"},
		}},
		"requests": {"domain: d\ndescriptors: []\n", []step{
			{"d", "InvalidArgument: " + errNoDescriptors.Error()},
			{"d" + strings.Repeat(" a=1", maxDescriptors+1), "InvalidArgument: " + errTooMany.Error()},
			{"d a=" + strings.Repeat("x", 60_000) + "!1/MINUTE", "OK: OK 0/1 MINUTE 40"},
			{"d a=" + strings.Repeat("x", 60_000) + "!1/MINUTE", "OVER_LIMIT: OVER_LIMIT 0/1 MINUTE 40"},
			{"d a=" + strings.Repeat("x", 59_999) + "y!1/MINUTE", "OK: OK 0/1 MINUTE 40"},
		}},
	}
}

func TestScenarios(t *testing.T) {
	for name, tt := range scenarios() {
		t.Run(name, func(t *testing.T) {
			h := open(t, Config{Rules: rulesOf(t, tt.yaml)}, server.Limits{MaxClients: 10})
			for _, s := range tt.steps {
				if seconds, ok := strings.CutPrefix(s.request, "wait "); ok {
					h.Clock.Advance(int64(number(t, seconds)) * 1e9)
					continue
				}
				h.expect(t, s.request, s.want)
			}
		})
	}
}

// TestWithoutConfiguration: only the limits of requests apply.
func TestWithoutConfiguration(t *testing.T) {
	h := open(t, Config{}, server.Limits{MaxClients: 10})
	h.expect(t, "d a=1 a=2!1/MINUTE", "OK: OK 0, OK 0/1 MINUTE 40")
	h.expect(t, "d a=1 a=2!1/MINUTE", "OVER_LIMIT: OK 0, OVER_LIMIT 0/1 MINUTE 40")
}

// TestOneFileARequest: each request is decided by the rules of one moment, which change at every reading.
func TestOneFileARequest(t *testing.T) {
	const yaml = "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: minute, requests_per_unit: %[1]d}}\n- {key: b, rate_limit: {unit: minute, requests_per_unit: %[1]d}}\n"
	readings := 0
	h := open(t, Config{Headers: true, Metadata: true, Rules: func() *envoyconfig.Rules {
		readings++
		return rulesOf(t, fmt.Sprintf(yaml, 10*readings))()
	}}, server.Limits{MaxClients: 10})
	for i := range 3 {
		response, err := h.ask(t, requestOf(t, "d a=1 b=1 a=2"), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, status := range response.Statuses {
			if n := status.CurrentLimit.RequestsPerUnit; n != uint32(10*(i+1)) {
				t.Errorf("request %d: a limit of %d", i, n)
			}
		}
	}
}

// TestHeaders: the headers are those of the descriptor that denies, or of the one with the least left.
func TestHeaders(t *testing.T) {
	h := open(t, Config{Headers: true, Rules: rulesOf(t, `
domain: d
descriptors:
- {key: a, rate_limit: {unit: minute, requests_per_unit: 3}}
- {key: b, rate_limit: {unit: hour, requests_per_unit: 2}}
`)}, server.Limits{MaxClients: 10})
	for _, s := range []step{
		{"d x=1", "OK: OK 0"},
		{"d a=1 b=1", "OK: OK 2/3 MINUTE 40, OK 1/2 HOUR 2800 RateLimit-Limit=2 RateLimit-Remaining=1 RateLimit-Reset=2800"},
		{"d a=1 +2", "OK: OK 0/3 MINUTE 40 RateLimit-Limit=3 RateLimit-Remaining=0 RateLimit-Reset=40 x-ratelimit-near=\"a\""},
		{"d b=1 a=1", "OVER_LIMIT: OK 0/2 HOUR 2800, OVER_LIMIT 0/3 MINUTE 40 RateLimit-Limit=3 RateLimit-Remaining=0 RateLimit-Reset=40 x-ratelimit-near=\"b\""},
	} {
		h.expect(t, s.request, s.want)
	}
}

// TestMetadata compares the dynamic metadata.
func TestMetadata(t *testing.T) {
	h := open(t, Config{Metadata: true, Rules: rulesOf(t, `
domain: d
descriptors:
- {key: s, value: "1", quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}, metadata: {s: {name: one, n: 1}, only: [true]}}
- {key: s, value: "2", quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 2}, metadata: {s: {name: two, m: 2}}}
`)}, server.Limits{MaxClients: 10})
	descriptors := map[string]any{"descriptors": []any{map[string]any{"entries": []any{"s=1"}}, map[string]any{"entries": []any{"s=2"}, "hitsAddend": 1.0}}, "domain": "d", "hitsAddend": 1.0}
	for i, want := range []map[string]any{
		{"s": map[string]any{"name": "one", "n": 1.0, "m": 2.0}, "only": []any{true}},
		{"s": map[string]any{"name": "two", "m": 2.0}},
		nil,
	} {
		r, err := h.ask(t, requestOf(t, "d s=1 s=2#1 +1"), "")
		if err != nil {
			t.Fatal(err)
		}
		delete(descriptors, "metadata")
		delete(descriptors, "near")
		if want != nil {
			descriptors["metadata"], descriptors["near"] = want, []any{fmt.Sprint("s_", i+1)}
		}
		if got := r.DynamicMetadata.AsMap(); !equalJSON(t, got, descriptors) {
			t.Errorf("got %v, want %v", got, descriptors)
		}
	}
}

// TestMetrics compares the counters with envoyproxy/ratelimit's.
func TestMetrics(t *testing.T) {
	h := open(t, Config{Rules: rulesOf(t, `
domain: d
descriptors:
- {key: a, rate_limit: {unit: minute, requests_per_unit: 10}}
- {key: det, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 1}, shadow_mode: true}
- key: route
  value_to_metric: true
  descriptors: [{key: to, value: "x*", rate_limit: {unit: minute, requests_per_unit: 1}}]
- {key: free, rate_limit: {unlimited: true}}
`)}, server.Limits{MaxClients: 10})
	for _, request := range []string{
		"d a=1 +7", "d a=1 +2", "d a=1", "d a=1 a=1#0", // near is 8
		"d det=u", "d det=u", "d det=w", "d route=api,to=xy", "d free=1", "d new=1!5/MINUTE", "nosuch a=1",
	} {
		if _, err := h.ask(t, requestOf(t, request), ""); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"d|a 11 10 2 1 0", "d|det_u 2 1 1 1 1", "d|det_w 1 1 1 0 0", "d|new_1 1 1 0 0 0", "d|route_api.to_x* 1 1 1 0 0",
	}
	if got := h.rows(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := h.service.Metrics.NotFound(); got != 1 {
		t.Errorf("%d domains not found", got)
	}
	for i := range 2 * maxRules {
		h.service.Metrics.ofValues("d", strings.Repeat("x", i%200+1)+string(rune('a'+i%26)), "configured")
		h.service.Metrics.ofRequest("d", requestOf(t, "d "+strings.Repeat("x", i)+"=1").Descriptors[0])
	}
	if n := len(h.rows()); n > maxValues+len(want)+2 {
		t.Errorf("%d rows", n)
	}
}

// TestKeys: different domains, entries or kinds of limits have different keys, which have their documented
// form.
func TestKeys(t *testing.T) {
	long := strings.Repeat("x", maxKeyBytes)
	seen := map[string]string{}
	for _, tt := range []struct {
		domain  string
		entries []string
		rate    rate
		want    string // "" for any
	}{
		{"rl", []string{"foo", "bar1"}, rate{unit: "minute", algorithm: namedlimit.Quota}, "rls:minute:2:rl3:foo4:bar1"},
		{"rl", []string{"foo", "bar1"}, rate{unit: "hour", algorithm: namedlimit.Quota}, "rls:hour:2:rl3:foo4:bar1"},
		{"rl", []string{"foo", "bar1"}, rate{unit: "minute", periodSec: 60}, "rls:funnel-60:2:rl3:foo4:bar1"},
		{"rl", []string{"foo", "", "bar", "1"}, rate{unit: "minute", algorithm: namedlimit.Quota}, "rls:minute:2:rl3:foo0:3:bar1:1"},
		{"rl", []string{"fo", "obar1"}, rate{unit: "minute", algorithm: namedlimit.Quota}, ""},
		{"rl", []string{"foo", "1:a3:foo"}, rate{unit: "minute", algorithm: namedlimit.Quota}, ""},
		{"rl", []string{"foo", "1", "a", "foo"}, rate{unit: "minute", algorithm: namedlimit.Quota}, ""},
		{"rl3:foo", []string{"bar1", ""}, rate{unit: "minute", algorithm: namedlimit.Quota}, ""},
		{"rl", []string{"foo", long + "a"}, rate{unit: "minute", algorithm: namedlimit.Quota}, ""},
		{"rl", []string{"foo", long + "b"}, rate{unit: "minute", algorithm: namedlimit.Quota}, ""},
		{"sha256:", []string{"foo", "a"}, rate{unit: "minute", algorithm: namedlimit.Quota}, ""},
	} {
		d := &rlspb.RateLimitDescriptor{}
		for i := 0; i < len(tt.entries); i += 2 {
			d.Entries = append(d.Entries, &rlspb.RateLimitDescriptor_Entry{Key: tt.entries[i], Value: tt.entries[i+1]})
		}
		key := string(appendKey(nil, &tt.rate, tt.domain, d, &envoyconfig.Match{}))
		if tt.want != "" && key != tt.want {
			t.Errorf("got %s, want %s", key, tt.want)
		}
		if other, found := seen[key]; found {
			t.Errorf("%.50q has the key of %s", tt.entries, other)
		}
		seen[key] = strings.Join(tt.entries, " ")
	}
}
