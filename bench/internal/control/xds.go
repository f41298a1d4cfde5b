package control

import (
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"cellserver/internal/decide/envoyconfig/configpb"
	"cellserver/internal/edge/xds/xdspb"
)

// XDS gives limits for Envoy: of Domain, for each value of Entry, PerHour.
const (
	XDS     = "xds"
	Domain  = "bench"
	Entry   = "user"
	PerHour = 1_000_000
)

const limitsType = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

func newXDS() server {
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "envoy.service.discovery.v3.AggregatedDiscoveryService", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "StreamAggregatedResources", Handler: giveLimits, ServerStreams: true, ClientStreams: true}},
	}, nil)
	return grpcServer{s}
}

// giveLimits answers a stream's first request.
func giveLimits(_ any, s grpc.ServerStream) error {
	limits, err := proto.Marshal(&configpb.RateLimitConfig{Name: Domain, Domain: Domain, Descriptors: []*configpb.RateLimitDescriptor{
		{Key: Entry, RateLimit: &configpb.RateLimitPolicy{Unit: configpb.RateLimitUnit_HOUR, RequestsPerUnit: PerHour}},
	}})
	if err != nil {
		return err
	}
	answer := &xdspb.DiscoveryResponse{
		VersionInfo: "1", Nonce: "1", TypeUrl: limitsType, Resources: []*anypb.Any{{TypeUrl: limitsType, Value: limits}},
	}
	for answered := false; ; answered = true {
		if err := s.RecvMsg(&xdspb.DiscoveryRequest{}); err != nil {
			return err
		}
		if answered {
			continue // it accepts
		}
		if err := s.SendMsg(answer); err != nil {
			return err
		}
	}
}
