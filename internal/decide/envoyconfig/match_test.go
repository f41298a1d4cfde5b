package envoyconfig

import (
	"strings"
	"testing"
)

type entry struct{ key, value string }

func (e entry) GetKey() string   { return e.key }
func (e entry) GetValue() string { return e.value }

// entriesOf reads "key=value,key=value".
func entriesOf(text string) (entries []entry) {
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		entries = append(entries, entry{key, value})
	}
	return entries
}

func rulesOf(t testing.TB, text string) *Rules {
	t.Helper()
	r, err := RulesOf([]File{{"f", []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// found describes what applies to a descriptor: the limit's path, or its metric if that differs, and the
// values by which it is counted.
func found(d *Domain, text string) string {
	entries := entriesOf(text)
	m := Find(d, entries)
	if m.Descriptor == nil {
		return "none"
	}
	said := m.Path
	if m.IsDynamic() {
		said = Metric(d, &m, entries)
	}
	for i, e := range entries {
		if value := m.Value(i, e.value); value != e.value {
			said += " " + e.key + " as " + value
		}
	}
	return said
}

// TestFind has envoyproxy/ratelimit's examples and rules, in cases of our own.
func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name, yaml string
		want       map[string]string
	}{
		{"a value precedes the key alone", `
- {key: ip, rate_limit: {unit: second, requests_per_unit: 10}}
- {key: ip, value: 50.0.0.5, rate_limit: {unit: second, requests_per_unit: 0}}
`, map[string]string{"ip=50.0.0.1": "ip", "ip=50.0.0.5": "ip_50.0.0.5", "ip=": "ip", "IP=50.0.0.5": "none", "x=50.0.0.5": "none"}},
		{"the depth is equal", `
- {key: key, value: value, rate_limit: {unit: second, requests_per_unit: 300}}
- key: deep
  value: value
  rate_limit: {unit: second, requests_per_unit: 1}
  descriptors: [{key: sub, rate_limit: {unit: second, requests_per_unit: 300}}]
`, map[string]string{
			"key=value": "key_value", "key=value,sub=x": "none", "deep=value": "deep_value",
			"deep=value,sub=x": "deep_value.sub", "deep=value,sub=x,sub=y": "none", "sub=x": "none",
		}},
		{"a match is final", `
- {key: a, value: x, descriptors: [{key: b, rate_limit: {unit: day, requests_per_unit: 1}}]}
- {key: a, descriptors: [{key: c, rate_limit: {unit: day, requests_per_unit: 1}}]}
`, map[string]string{"a=x,b=1": "a_x.b", "a=x,c=1": "none", "a=y,c=1": "a.c"}},
		{"no limit permits all", "- {key: a, value: free}\n- {key: a, rate_limit: {unit: day, requests_per_unit: 1}}\n",
			map[string]string{"a=free": "none", "a=x": "a"}},
		{"wildcards in order, between values and the key alone", `
- {key: p, rate_limit: {unit: day, requests_per_unit: 1}}
- {key: p, value: "a*b*c", rate_limit: {unit: day, requests_per_unit: 1}}
- {key: p, value: "a*", rate_limit: {unit: day, requests_per_unit: 1}}
- {key: p, value: "*", rate_limit: {unit: day, requests_per_unit: 1}}
- {key: p, value: "axc", rate_limit: {unit: day, requests_per_unit: 1}}
`, map[string]string{"p=axbxc": "p_a*b*c", "p=abc": "p_a*b*c", "p=ax": "p_a*", "p=xa": "p_*", "p=": "p_*", "p=axc": "p_axc", "p=a?": "p_a*"}},
		{"wildcards in keys", "- {key: 'x*', rate_limit: {unit: day, requests_per_unit: 1}}\n",
			map[string]string{"xy=1": "xy_x*", "y=1": "none"}},
		{"a shared threshold at any level", `
- key: route
  value: "api/*"
  share_threshold: true
  value_to_metric: true
  descriptors: [{key: method, rate_limit: {unit: day, requests_per_unit: 1}}]
- {key: f, value: "f/*", share_threshold: true, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 1}}
`, map[string]string{"route=api/v1,method=GET": "route_api/*.method route as api/*", "f=f/1": "f_f/* f as f/*"}},
		{"values in metrics", `
- key: user
  value_to_metric: true
  descriptors:
  - key: action
    value: read*
    value_to_metric: true
    descriptors: [{key: resource, rate_limit: {unit: day, requests_per_unit: 1}}]
  - key: action
    value: w*
    descriptors: [{key: resource, rate_limit: {unit: day, requests_per_unit: 1}}]
- {key: d, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 1}}
- {key: d, value: v, rate_limit: {unit: day, requests_per_unit: 1}}
`, map[string]string{
			"user=alice,action=readfile,resource=doc": "user_alice.action_readfile.resource",
			"user=alice,action=write,resource=doc":    "user_alice.action_w*.resource",
			"d=x":                                     "d_x", "d=v": "d_v",
		}},
		{"the composite decides", "- {key: a, value: b_c, rate_limit: {unit: day, requests_per_unit: 1}}\n",
			map[string]string{"a=b_c": "a_b_c", "a_b=c": "a_b_c"}},
	} {
		d := rulesOf(t, of(tt.yaml)).Domain("d")
		for request, want := range tt.want {
			if got := found(d, request); got != want {
				t.Errorf("%s: %s: got %s, want %s", tt.name, request, got, want)
			}
		}
	}
}

func TestFindAllocatesNothing(t *testing.T) {
	d := rulesOf(t, of("- {key: a, descriptors: [{key: b, value: 'x*', rate_limit: {unit: day, requests_per_unit: 1}}]}\n")).Domain("d")
	entries := entriesOf("a=1,b=xyz")
	if n := testing.AllocsPerRun(100, func() { Find(d, entries) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
