package envoyconfig

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/envoyconfig/configpb"
)

// TestResourcesOfOneDomain: the advice is for xDS, where there are no files.
func TestResourcesOfOneDomain(t *testing.T) {
	_, err := OfResources([]*configpb.RateLimitConfig{{Name: "one", Domain: "d"}, {Name: "two", Domain: "d"}}, Options{})
	want := `resource "two": domain "d" is in resource "one" already; merge the resources in the xDS server, or start as ratelimit with MERGE_DOMAIN_CONFIG=true`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestManyMistakes: what is collected of them is bounded.
func TestManyMistakes(t *testing.T) {
	_, err := OfResources([]*configpb.RateLimitConfig{{Name: "one", Domain: "d", Descriptors: []*configpb.RateLimitDescriptor{{
		Key: "k", RateLimit: &configpb.RateLimitPolicy{Unit: configpb.RateLimitUnit_HOUR, Replaces: make([]*configpb.RateLimitReplace, 100_000)},
	}}}}, Options{})
	problems := yamlfile.Problems(nil)
	if !errors.As(err, &problems) || len(problems) != maxProblems || !strings.HasSuffix(err.Error(), "; and many more errors") {
		t.Errorf("%d problems: %.300v", len(problems), err)
	}
}

// TestLongDomain: each limit is listed behind its domain, so that counts with it.
func TestLongDomain(t *testing.T) {
	one := &configpb.RateLimitConfig{Name: "one", Domain: strings.Repeat("d", 1<<20)}
	for i := range 64 {
		if _, err := OfResources([]*configpb.RateLimitConfig{one}, Options{}); err != nil {
			t.Fatalf("%d descriptors: %.300v", i, err)
		}
		one.Descriptors = append(one.Descriptors, &configpb.RateLimitDescriptor{Key: strconv.Itoa(i)})
	}
	if _, err := OfResources([]*configpb.RateLimitConfig{one}, Options{}); err == nil || !strings.HasSuffix(err.Error(), "have more than 64 MiB; shorten them") {
		t.Errorf("got %.300v", err)
	}
}

// TestNotesOfResources: what may be a mistake is noted, but not what programs write for no limit.
func TestNotesOfResources(t *testing.T) {
	rules, err := OfResources([]*configpb.RateLimitConfig{{Name: "one", Domain: "d", Descriptors: []*configpb.RateLimitDescriptor{
		{Key: "empty"},
		{Key: "shadow", ShadowMode: true},
		{Key: "replaces", RateLimit: &configpb.RateLimitPolicy{
			Unit: configpb.RateLimitUnit_MINUTE, RequestsPerUnit: 1, Replaces: []*configpb.RateLimitReplace{{Name: "nosuch"}},
		}},
	}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`resource "one", descriptor "shadow": shadow_mode has no effect`, `resource "one", descriptor "replaces": replaces "nosuch"`}
	if len(rules.Notes) != len(want) {
		t.Fatalf("got %q", rules.Notes)
	}
	for i, n := range rules.Notes {
		if !strings.HasPrefix(n.String(), want[i]) {
			t.Errorf("got %q, want %q", n, want[i])
		}
	}
}

// TestLoads: the first load counts, and each change that is read.
func TestLoads(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", "domain: a\n")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"domain: longer\n", "mistake", "domain: the longest\n"} {
		write(t, dir, "a.yaml", text)
		for range 2 { // the second finds no change
			_, _ = s.ReloadChanged()
		}
	}
	if got, want := s.Loads(), (Loads{Done: 3, Failed: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
