package envoyconfig

import (
	"errors"
	"strings"
	"testing"

	"cellserver/internal/decide/envoyconfig/configpb"
)

// TestDump: the lines are those of envoyproxy/ratelimit's /rlconfig.
func TestDump(t *testing.T) {
	rules := rulesOf(t, `
domain: d
descriptors:
- key: a
  rate_limit: {unit: Second, requests_per_unit: 4294967295}
  descriptors:
  - key: b
    value: c*
    shadow_mode: true
    rate_limit: {unit: week, requests_per_unit: 0, name: n}
- key: none
  descriptors:
  - key: all
    quota_mode: true
    rate_limit: {unlimited: true, requests_per_unit: 7}
`)
	const want = `d.a: unit=SECOND requests_per_unit=4294967295, shadow_mode: false, quota_mode: false
d.a.b_c*: unit=WEEK requests_per_unit=0, shadow_mode: true, quota_mode: false
d.none.all: unit=UNKNOWN requests_per_unit=7, shadow_mode: false, quota_mode: true
`
	var b strings.Builder
	if err := Dump(&b, rules); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, &b)
	}
	if err := Dump(&b, nil); err != nil || b.String() != want {
		t.Errorf("nil rules: %v, %q", err, &b)
	}
	if err := Dump(full{}, rules); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestListOfMergedDomains: the limits of a domain are together, whichever resources they are from.
func TestListOfMergedDomains(t *testing.T) {
	of := func(domain, key string) *configpb.RateLimitConfig {
		return &configpb.RateLimitConfig{Domain: domain, Descriptors: []*configpb.RateLimitDescriptor{
			{Key: key, RateLimit: &configpb.RateLimitPolicy{Unit: configpb.RateLimitUnit_DAY, RequestsPerUnit: 1}}, {Key: key + "-none"},
		}}
	}
	rules, err := OfResources([]*configpb.RateLimitConfig{of("a", "1"), of("b", "2"), of("a", "3")}, Options{MergeDomains: true})
	if err != nil {
		t.Fatal(err)
	}
	if rules.Count() != 3 {
		t.Errorf("%d limits", rules.Count())
	}
	for domain, want := range map[string]string{"": "a.1 a.3 b.2", "a": "a.1 a.3", "b": "b.2"} {
		next, some, err := rules.Page(rules.Domain(domain), 0)
		paths := make([]string, len(some))
		for i := range some {
			paths[i] = some[i].FullPath()
		}
		if got := strings.Join(paths, " "); got != want || next != 0 || err != nil {
			t.Errorf("%q: %s, %d, %v", domain, got, next, err)
		}
	}
}
