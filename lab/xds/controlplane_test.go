package xdstest

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

// controlPlane is an xDS server of go-control-plane. It is safe for concurrent use.
type controlPlane struct {
	Addr string

	snapshots cache.SnapshotCache
	options   []grpc.ServerOption
	down      func() // nil while it is down

	mu       sync.Mutex // guards what follows
	headers  []metadata.MD
	requests []*discovery.DiscoveryRequest
}

// everyNode has one snapshot.
type everyNode struct{}

func (everyNode) ID(*core.Node) string { return "every" }

// startControlPlane returns one that serves until the test ends, and has nothing to give yet.
func startControlPlane(t *testing.T, options ...grpc.ServerOption) *controlPlane {
	t.Helper()
	p := &controlPlane{snapshots: cache.NewSnapshotCache(true, everyNode{}, nil), options: options, Addr: processtest.FreeAddr(t)}
	p.Up(t)
	t.Cleanup(func() {
		if p.down != nil {
			p.Down()
		}
	})
	return p
}

// Up serves, again at the same address.
func (p *controlPlane) Up(t *testing.T) {
	t.Helper()
	l := listen(t, p.Addr)
	ctx, cancel := context.WithCancel(context.Background())
	s := grpc.NewServer(p.options...)
	discovery.RegisterAggregatedDiscoveryServiceServer(s, server.NewServer(ctx, p.snapshots, server.CallbackFuncs{
		StreamOpenFunc: p.open, StreamRequestFunc: p.hear,
	}))
	ended := make(chan struct{})
	go func() {
		_ = s.Serve(l)
		close(ended)
	}()
	p.down = func() {
		cancel()
		s.Stop()
		<-ended
	}
}

// listen listens where something else has listened, which a process that another test forks may have until it
// executes.
func listen(t *testing.T, addr string) (l net.Listener) {
	t.Helper()
	var err error
	if !patience.Until(func() bool {
		l, err = net.Listen("tcp", addr)
		return err == nil
	}) {
		t.Fatal(err)
	}
	return l
}

// Down ends all streams and refuses connections.
func (p *controlPlane) Down() {
	p.down()
	p.down = nil
}

func (p *controlPlane) open(ctx context.Context, _ int64, _ string) error {
	headers, _ := metadata.FromIncomingContext(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.headers = append(p.headers, headers)
	return nil
}

func (p *controlPlane) hear(_ int64, r *discovery.DiscoveryRequest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r)
	return nil
}

// Heard returns the requests of all streams.
func (p *controlPlane) Heard() []*discovery.DiscoveryRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Opening returns the versions that streams have begun with.
func (p *controlPlane) Opening() (versions []string) {
	for _, r := range p.Heard() {
		if r.ResponseNonce == "" {
			versions = append(versions, r.VersionInfo)
		}
	}
	return versions
}

// Refusals returns why answers were refused.
func (p *controlPlane) Refusals() (why []string) {
	for _, r := range p.Heard() {
		if r.ErrorDetail != nil {
			why = append(why, r.ErrorDetail.Message)
		}
	}
	return why
}

// Set has other resources given. Without a version there are none of the type, as where all are deleted.
func (p *controlPlane) Set(t *testing.T, version string, all ...*config.RateLimitConfig) {
	t.Helper()
	resources := map[resource.Type][]types.Resource{}
	if version != "" {
		resources[resource.RateLimitConfigType] = []types.Resource{}
	}
	for _, one := range all {
		resources[resource.RateLimitConfigType] = append(resources[resource.RateLimitConfigType], one)
	}
	snapshot, err := cache.NewSnapshot(version, resources)
	if err == nil {
		err = p.snapshots.SetSnapshot(t.Context(), everyNode{}.ID(nil), snapshot)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Give sets a version and waits until it is accepted.
func (p *controlPlane) Give(t *testing.T, version string, all ...*config.RateLimitConfig) {
	t.Helper()
	p.Set(t, version, all...)
	p.Accepted(t, version)
}

// Accepted waits until the last request accepts a version.
func (p *controlPlane) Accepted(t *testing.T, version string) {
	t.Helper()
	p.Until(t, "it accepts "+version, func() bool {
		heard := p.Heard()
		if len(heard) == 0 {
			return false
		}
		last := heard[len(heard)-1]
		return last.VersionInfo == version && last.ResponseNonce != "" && last.ErrorDetail == nil
	})
}

func (p *controlPlane) Until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	if !patience.Until(cond) {
		t.Fatalf("not seen: %s; heard %v", what, p.Heard())
	}
}

// limits returns a resource that allows each key of a domain so many requests an hour.
func limits(domain string, perHour uint32, keys ...string) *config.RateLimitConfig {
	c := &config.RateLimitConfig{Name: domain, Domain: domain}
	for _, key := range keys {
		c.Descriptors = append(c.Descriptors, &config.RateLimitDescriptor{
			Key: key, RateLimit: &config.RateLimitPolicy{Unit: config.RateLimitUnit_HOUR, RequestsPerUnit: perHour},
		})
	}
	return c
}
