package xds_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"cellserver/internal/decide/envoyconfig/configpb"
	"cellserver/internal/edge/xds"
	"cellserver/internal/edge/xds/xdspb"
	"cellserver/internal/test/processtest"
)

const procedure = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"

// network is a network of one server, in memory, so that the time of synctest holds for it.
type network struct {
	mu    sync.Mutex
	dials []time.Time // of each connection
	gone  bool
	conns chan net.Conn
	ends  chan struct{}
}

func newNetwork() *network {
	return &network{conns: make(chan net.Conn), ends: make(chan struct{})}
}

func (n *network) dial(ctx context.Context, _ string) (net.Conn, error) {
	n.mu.Lock()
	n.dials = append(n.dials, time.Now())
	gone := n.gone
	n.mu.Unlock()
	if gone {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	select {
	case n.conns <- there:
		return here, nil
	case <-n.ends:
	case <-ctx.Done():
	}
	return nil, errors.New("connection refused")
}

func (n *network) away(gone bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gone = gone
}

func (n *network) tries() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.dials)
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.ends:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.ends:
	default:
		close(n.ends)
	}
	return nil
}

func (n *network) Addr() net.Addr { return &net.UnixAddr{Name: "in memory", Net: "unix"} }

// server is an xDS server that does what a test says.
type server struct {
	*network
	streams chan *stream
}

// stream is one of a client.
type stream struct {
	grpc.ServerStream
	requests chan *xdspb.DiscoveryRequest
	end      chan error
}

// serve starts a server, over TLS if there is a configuration.
func serve(t *testing.T, secured *tls.Config) *server {
	t.Helper()
	s := &server{newNetwork(), make(chan *stream, 100)}
	creds := insecure.NewCredentials()
	if secured != nil {
		creds = credentials.NewTLS(secured)
	}
	g := grpc.NewServer(grpc.Creds(creds), grpc.UnknownServiceHandler(s.handle))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(s.network)
	}()
	t.Cleanup(func() {
		g.Stop()
		<-done
	})
	return s
}

func (s *server) handle(_ any, of grpc.ServerStream) error {
	if method, _ := grpc.MethodFromServerStream(of); method != procedure {
		return status.Error(codes.Unimplemented, method)
	}
	one := &stream{of, make(chan *xdspb.DiscoveryRequest, 1000), make(chan error)}
	s.streams <- one
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			q := &xdspb.DiscoveryRequest{}
			if of.RecvMsg(q) != nil {
				return
			}
			one.requests <- q
		}
	}()
	select {
	case err := <-one.end:
		return err
	case <-ended:
		return nil
	}
}

// next waits for the next request.
func (s *stream) next() *xdspb.DiscoveryRequest { return <-s.requests }

func (s *stream) send(t *testing.T, answer *xdspb.DiscoveryResponse) {
	t.Helper()
	if err := s.SendMsg(answer); err != nil {
		t.Error(err)
	}
}

func (s *stream) header(name string) []string {
	from, _ := metadata.FromIncomingContext(s.Context())
	return from.Get(name)
}

func (s *stream) certificate(t *testing.T) string {
	t.Helper()
	p, _ := peer.FromContext(s.Context())
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		t.Fatal("the client has no certificate")
	}
	return info.State.PeerCertificates[0].Subject.CommonName
}

// client is one that runs.
type client struct {
	*xds.Client
	log  *processtest.Log
	stop func() // waits
}

// configOf is what tests have in common.
func (s *server) configOf() xds.Config {
	return xds.Config{
		Addr: "xds.example:18001", Dial: s.dial, NodeID: "node", MaxMessageBytes: 4 << 20,
		FirstPause: time.Second, LongestPause: time.Minute,
	}
}

// run runs a client until the test ends, with a log if it has none.
func run(t *testing.T, c xds.Config) *client {
	t.Helper()
	log := &processtest.Log{}
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(log, nil))
	}
	ctx, cancel := context.WithCancel(t.Context())
	of, done := &client{Client: xds.New(c), log: log}, make(chan struct{})
	go func() {
		defer close(done)
		of.Run(ctx)
	}()
	of.stop = func() { cancel(); <-done }
	t.Cleanup(of.stop)
	return of
}

// domain is a resource with a limit for the key "k".
func domain(name string, perMinute uint32) *configpb.RateLimitConfig {
	return &configpb.RateLimitConfig{Name: name + "-resource", Domain: name, Descriptors: []*configpb.RateLimitDescriptor{
		{Key: "k", RateLimit: &configpb.RateLimitPolicy{Unit: configpb.RateLimitUnit_MINUTE, RequestsPerUnit: perMinute}},
	}}
}

// answer has resources.
func answer(t *testing.T, version string, all ...*configpb.RateLimitConfig) *xdspb.DiscoveryResponse {
	t.Helper()
	a := &xdspb.DiscoveryResponse{VersionInfo: version, Nonce: "nonce-" + version, TypeUrl: xds.TypeURL}
	for _, one := range all {
		b, err := proto.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		a.Resources = append(a.Resources, &anypb.Any{TypeUrl: xds.TypeURL, Value: b})
	}
	return a
}

// limits returns the domains with the limit of "k".
func (c *client) limits() map[string]uint32 {
	all := map[string]uint32{}
	if rules := c.Rules(); rules != nil {
		for _, d := range rules.Domains {
			all[d.Name] = d.Top.All[0].Rate.Count
		}
	}
	return all
}
