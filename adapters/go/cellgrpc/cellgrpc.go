// Package cellgrpc limits the calls of a gRPC server by a cellserver. All is safe for concurrent use.
package cellgrpc

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	cellserver "cellserver/adapters/go"
)

// Interceptor limits calls, one unit each; a stream is one call. What is limited ends with
// ResourceExhausted and a RetryInfo, and every call has the metadata ratelimit-policy, ratelimit and
// retry-after of cellserver.Result.Headers. If no server decides and the limiter's OnError does not
// either, a call ends with Unavailable, and with Internal for cellserver.ErrMisconfigured.
type Interceptor struct {
	Limiter *cellserver.Limiter
	Limit   string  // its name
	Key     KeyFunc // whom a call counts for
}

// KeyFunc returns the key of a call to a method (/package.service/name), or an error, which refuses the
// call with InvalidArgument, and Unauthenticated for cellserver.ErrNoUser.
type KeyFunc func(ctx context.Context, method string) (string, error)

// Unary returns the interceptor of unary calls.
func (i Interceptor) Unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		setHeader := func(md metadata.MD) error { return grpc.SetHeader(ctx, md) }
		if err := i.admit(ctx, info.FullMethod, setHeader); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// Stream returns the interceptor of streams.
func (i Interceptor) Stream() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if err := i.admit(stream.Context(), info.FullMethod, stream.SetHeader); err != nil {
			return err
		}
		return next(srv, stream)
	}
}

func (i Interceptor) admit(ctx context.Context, method string, setHeader func(metadata.MD) error) error {
	key, err := i.Key(ctx, method)
	if errors.Is(err, cellserver.ErrNoUser) {
		return status.Error(codes.Unauthenticated, err.Error())
	} else if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	result, err := i.Limiter.Allow(ctx, i.Limit, key, 1)
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	} else if errors.Is(err, cellserver.ErrMisconfigured) {
		return status.Error(codes.Internal, "the rate limiter is misconfigured")
	} else if err != nil {
		return refuse(codes.Unavailable, "the rate limiter is unavailable", time.Second)
	}
	md := metadata.MD{}
	result.Headers(func(name, value string) { md.Append(name, value) })
	if err := setHeader(md); err != nil {
		return err
	}
	if result.Allowed {
		return nil
	}
	return refuse(codes.ResourceExhausted, "too many calls", result.RetryAfter)
}

// refuse returns an error, which says when to retry unless that is below 0.
func refuse(code codes.Code, text string, retryAfter time.Duration) error {
	s := status.New(code, text)
	if retryAfter >= 0 {
		info := &errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)}
		if detailed, err := s.WithDetails(info); err == nil {
			s = detailed
		}
	}
	return s.Err()
}

// ByAddress limits by the client's address, as cellserver.ByAddress does; proxies send the metadata
// x-forwarded-for.
func ByAddress(trusted ...netip.Prefix) KeyFunc {
	return func(ctx context.Context, _ string) (string, error) {
		from := ""
		if p, ok := peer.FromContext(ctx); ok {
			from = p.Addr.String()
		}
		return cellserver.AddressKey(from, metadata.ValueFromIncomingContext(ctx, "x-forwarded-for"), trusted)
	}
}

// ByMetadata limits by metadata that is there once, as cellserver.ByHeader does by a header.
func ByMetadata(name string) KeyFunc {
	return func(ctx context.Context, _ string) (string, error) {
		values := metadata.ValueFromIncomingContext(ctx, name)
		if len(values) != 1 || values[0] == "" {
			return "", fmt.Errorf("the metadata %s is required, once", name)
		}
		return values[0], nil
	}
}

// ByUser limits by a user, as from the context, and refuses calls without one ("").
func ByUser(user func(context.Context) string) KeyFunc {
	return func(ctx context.Context, _ string) (string, error) {
		if name := user(ctx); name != "" {
			return name, nil
		}
		return "", cellserver.ErrNoUser
	}
}
