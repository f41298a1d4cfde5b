package xdstest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
)

// TestSet: limits of a server decide, and the server is asked as envoyproxy/ratelimit asks.
func TestSet(t *testing.T) {
	t.Parallel()
	p := startControlPlane(t)
	nested := &config.RateLimitConfig{Name: "shop", Domain: "shop", Descriptors: []*config.RateLimitDescriptor{
		{Key: "route", Value: "checkout", Descriptors: limits("", 2, "user").Descriptors},
	}}
	p.Set(t, "1", nested, limits("site", 7, "address"))
	s := start(t, p, "CONFIG_GRPC_XDS_NODE_METADATA=zone=a", "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=x-team:limits")
	p.Accepted(t, "1")
	for i, want := range []string{"OK", "OK", "OVER_LIMIT"} {
		got := s.Ask(t, "shop", "route=checkout,user=1", "route=other,user=1")
		if got.OverallCode.String() != want || got.Statuses[0].CurrentLimit.GetRequestsPerUnit() != 2 || got.Statuses[1].CurrentLimit != nil {
			t.Errorf("%d: got %v", i, got)
		}
	}
	if got := s.Limits(t, "site", "address=192.0.2.1", "nothing=1"); !slices.Equal(got, []uint32{7, 0}) {
		t.Errorf("got limits %v", got)
	}
	heard := p.Heard()
	if first := heard[0]; len(heard) != 2 || first.VersionInfo+first.ResponseNonce != "" || len(first.ResourceNames) > 0 {
		t.Errorf("heard %v, want a first request and an acknowledgement", heard)
	}
	if n := heard[0].Node; n.Id != "lab" || n.Metadata.GetFields()["zone"].GetStringValue() != "a" {
		t.Errorf("the node is %v", n)
	}
	if got := p.headers[0].Get("x-team"); !slices.Equal(got, []string{"limits"}) {
		t.Errorf("the header is %q", got)
	}
}

// TestChangeUnderLoad: two descriptors have equal limits in each version, and so in each call.
func TestChangeUnderLoad(t *testing.T) {
	t.Parallel()
	p := startControlPlane(t)
	p.Set(t, "1", limits("shop", 1, "a", "b"))
	s := start(t, p)
	var load sync.WaitGroup
	var calls, mixed atomic.Int64
	var seen sync.Map // versions
	done := make(chan struct{})
	for i := range 8 {
		load.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				got := s.Limits(t, "shop", fmt.Sprintf("a=%d.%d", i, n), fmt.Sprintf("b=%d.%d", i, n))
				calls.Add(1)
				if len(got) != 2 || got[0] != got[1] {
					mixed.Add(1)
				}
				seen.Store(got[0], true)
			}
		})
	}
	versions := uint32(60) // there is a pause between them
	if testing.Short() {
		versions = 10
	}
	for v := uint32(2); v <= versions; v++ {
		p.Give(t, fmt.Sprint(v), limits("shop", v, "a", "b"))
		p.Until(t, "a call by it", func() bool { _, ok := seen.Load(v); return ok })
	}
	close(done)
	load.Wait()
	t.Logf("%d calls during %d versions, %d of them by two", calls.Load(), versions, mixed.Load())
	if mixed.Load() != 0 {
		t.Errorf("%d of %d calls by two versions", mixed.Load(), calls.Load())
	}
}

// TestRefused: a mistake is told, the limits before it stay, and the server is not asked in a loop.
func TestRefused(t *testing.T) {
	t.Parallel()
	p := startControlPlane(t)
	p.Set(t, "1", limits("shop", 3, "a"))
	s := start(t, p)
	p.Accepted(t, "1")
	unitless := limits("shop", 4, "b")
	unitless.Descriptors[0].RateLimit.Unit = config.RateLimitUnit_UNKNOWN
	twice := limits("shop", 6, "b")
	twice.Name = "second"
	for i, tt := range []struct {
		name, told string
		bad        []*config.RateLimitConfig
	}{
		{"an invalid unit", "resource \"shop\", descriptor \"b\": unit must be", []*config.RateLimitConfig{unitless}},
		{"a domain twice", "domain \"shop\" is in", []*config.RateLimitConfig{limits("shop", 5, "a"), twice}},
		{"a good one beside a bad one", "descriptor \"b\": unit must be", []*config.RateLimitConfig{limits("site", 5, "a"), unitless}},
	} {
		before := len(p.Heard())
		p.Set(t, fmt.Sprint("bad", i), tt.bad...)
		// The third refusal of a version is told three seconds after the first; this server answers each at
		// once.
		p.Until(t, "three refusals of "+tt.name, func() bool {
			refused := 0
			for _, r := range p.Heard()[before:] {
				if strings.Contains(r.ErrorDetail.GetMessage(), tt.told) {
					refused++
				}
			}
			return refused >= 3
		})
		asked := len(p.Heard()) - before
		t.Logf("%s: asked %d times: %s", tt.name, asked, p.Refusals()[len(p.Refusals())-1])
		if asked > 12 { // as many as in an hour
			t.Errorf("%s: the server was asked %d times", tt.name, asked)
		}
		if got := append(s.Limits(t, "shop", "a=1"), s.Limits(t, "site", "a=1")...); !slices.Equal(got, []uint32{3, 0}) {
			t.Errorf("%s: the limits are %v", tt.name, got)
		}
	}
	p.Give(t, "2", limits("shop", 8, "a"))
	s.HasLimit(t, "after the mistake was corrected", 8)
}

// TestRemoved: a resource that is gone takes its domain away, and none takes all.
func TestRemoved(t *testing.T) {
	t.Parallel()
	p := startControlPlane(t)
	p.Set(t, "1", limits("shop", 3, "a"), limits("site", 4, "a"))
	s := start(t, p)
	for _, step := range []struct {
		version string
		all     []*config.RateLimitConfig
		want    []uint32
	}{
		{"2", []*config.RateLimitConfig{limits("site", 4, "a")}, []uint32{0, 4}},
		{"3", nil, []uint32{0, 0}},
		{"4", []*config.RateLimitConfig{limits("shop", 5, "a")}, []uint32{5, 0}},
		{"", nil, []uint32{0, 0}},
		{"5", []*config.RateLimitConfig{limits("shop", 6, "a")}, []uint32{6, 0}},
	} {
		p.Give(t, step.version, step.all...)
		if got := append(s.Limits(t, "shop", "a=1"), s.Limits(t, "site", "a=1")...); !slices.Equal(got, step.want) {
			t.Errorf("version %q: got %v, want %v", step.version, got, step.want)
		}
	}
	if why := p.Refusals(); len(why) > 0 {
		t.Errorf("refused: %q", why)
	}
}
