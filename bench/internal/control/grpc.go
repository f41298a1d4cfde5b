package control

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/durationpb"

	"cellserver/internal/edge/rls/rlspb"
)

// Service is Envoy's rate limit service, and ShouldRateLimit the path of its call.
const (
	service         = "envoy.service.ratelimit.v3.RateLimitService"
	method          = "ShouldRateLimit"
	ShouldRateLimit = "/" + service + "/" + method
)

// grpcServer is grpc-go's server with a transport of its own.
type grpcServer struct{ *grpc.Server }

func newGRPC() server {
	s := grpc.NewServer(
		grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(maxHeaderBytes), grpc.MaxRecvMsgSize(256<<10),
		grpc.ReadBufferSize(bufferBytes), grpc.WriteBufferSize(bufferBytes), grpc.ConnectionTimeout(requestTimeout),
		grpc.StaticStreamWindowSize(64<<10), grpc.StaticConnWindowSize(1<<20),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout, Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: service, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: method, Handler: shouldRateLimit}},
	}, nil)
	return grpcServer{s}
}

func (s grpcServer) stop() { s.Stop() }

// shouldRateLimit answers as a descriptor with a limit is.
func shouldRateLimit(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // the order is grpc-go's
	if err := decode(&rlspb.RateLimitRequest{}); err != nil {
		return nil, err
	}
	return &rlspb.RateLimitResponse{
		OverallCode: rlspb.RateLimitResponse_OK,
		Statuses: []*rlspb.RateLimitResponse_DescriptorStatus{{
			Code: rlspb.RateLimitResponse_OK,
			CurrentLimit: &rlspb.RateLimitResponse_RateLimit{
				RequestsPerUnit: 1_000_000, Unit: rlspb.RateLimitUnit_HOUR,
			},
			LimitRemaining:     999_999,
			DurationUntilReset: &durationpb.Duration{Seconds: 1800},
		}},
	}, nil
}
