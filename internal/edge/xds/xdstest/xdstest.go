// Package xdstest is an xDS server for tests of a whole program: it has a configuration, and gives it to
// clients that have another version, as go-control-plane does. A Server is safe for concurrent use.
package xdstest

import (
	"net"
	"strconv"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"cellserver/internal/decide/envoyconfig/configpb"
	"cellserver/internal/edge/xds"
	"cellserver/internal/edge/xds/xdspb"
	"cellserver/internal/test/patience"
)

// Server is a server on loopback.
type Server struct {
	Addr string
	grpc *grpc.Server

	mu       sync.Mutex // guards all below
	answer   *xdspb.DiscoveryResponse
	changed  chan struct{}             // closed by the next Set
	requests []*xdspb.DiscoveryRequest // so far
}

// New starts a server without a configuration on an address, until the test ends.
func New(t testing.TB, addr string) *Server {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Addr: l.Addr().String(), changed: make(chan struct{})}
	s.grpc = grpc.NewServer(grpc.UnknownServiceHandler(s.handle))
	go func() { _ = s.grpc.Serve(l) }()
	t.Cleanup(s.Stop)
	return s
}

// Stop ends all streams and stops listening.
func (s *Server) Stop() { s.grpc.Stop() }

// Set replaces the configuration.
func (s *Server) Set(t testing.TB, version string, all ...*configpb.RateLimitConfig) {
	t.Helper()
	answer := &xdspb.DiscoveryResponse{VersionInfo: version, TypeUrl: xds.TypeURL}
	for _, one := range all {
		b, err := proto.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		answer.Resources = append(answer.Resources, &anypb.Any{TypeUrl: xds.TypeURL, Value: b})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
	close(s.changed)
	s.changed = make(chan struct{})
}

// Requests returns the requests so far, of all streams.
func (s *Server) Requests() []*xdspb.DiscoveryRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*xdspb.DiscoveryRequest(nil), s.requests...)
}

// Await waits for a request.
func (s *Server) Await(t testing.TB, what string, isIt func(q *xdspb.DiscoveryRequest) bool) {
	t.Helper()
	if !patience.Until(func() bool {
		for _, q := range s.Requests() {
			if isIt(q) {
				return true
			}
		}
		return false
	}) {
		t.Fatalf("no request %s: %v", what, s.Requests())
	}
}

// now returns the answer, nil for none, and what the next Set closes.
func (s *Server) now() (*xdspb.DiscoveryResponse, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer, s.changed
}

func (s *Server) handle(_ any, of grpc.ServerStream) error {
	received := make(chan *xdspb.DiscoveryRequest)
	go func() {
		defer close(received)
		for {
			q := &xdspb.DiscoveryRequest{}
			if of.RecvMsg(q) != nil {
				return
			}
			s.mu.Lock()
			s.requests = append(s.requests, q)
			s.mu.Unlock()
			select {
			case received <- q:
			case <-of.Context().Done():
				return
			}
		}
	}()
	var last *xdspb.DiscoveryRequest // to be answered; nil for none
	for nonce := 1; ; nonce++ {
		answer, changed := s.now()
		if last != nil && answer != nil && answer.VersionInfo != last.VersionInfo {
			answer = proto.CloneOf(answer)
			answer.Nonce, last = strconv.Itoa(nonce), nil
			if err := of.SendMsg(answer); err != nil {
				return err
			}
		}
		select {
		case q, ok := <-received:
			if !ok {
				return nil
			}
			last = q
		case <-changed:
		}
	}
}

// Limit returns a resource: a domain with a limit of each value of a key.
func Limit(domain, key string, perHour uint32) *configpb.RateLimitConfig {
	return &configpb.RateLimitConfig{Name: domain, Domain: domain, Descriptors: []*configpb.RateLimitDescriptor{
		{Key: key, RateLimit: &configpb.RateLimitPolicy{Unit: configpb.RateLimitUnit_HOUR, RequestsPerUnit: perHour}},
	}}
}
