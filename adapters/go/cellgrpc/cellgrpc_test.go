package cellgrpc_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	cellserver "cellserver/adapters/go"
	"cellserver/adapters/go/cellgrpc"
	"cellserver/adapters/go/internal/servertest"
)

var binary string

func TestMain(m *testing.M) { os.Exit(servertest.Run(m, "../../..", &binary)) }

// serve runs a gRPC server with an interceptor, and returns a client.
func serve(t *testing.T, i cellgrpc.Interceptor) grpc_health_v1.HealthClient {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.UnaryInterceptor(i.Unary()), grpc.StreamInterceptor(i.Stream()))
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	c, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return grpc_health_v1.NewHealthClient(c)
}

// unary and stream make a call, and return the header's metadata.
func unary(ctx context.Context, c grpc_health_v1.HealthClient) (md metadata.MD, err error) {
	_, err = c.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&md))
	return md, err
}

func stream(ctx context.Context, c grpc_health_v1.HealthClient) (metadata.MD, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := c.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return nil, err
	}
	_, err = s.Recv()
	md, _ := s.Header()
	return md, err
}

func retryOf(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.RetryDelay.AsDuration()
		}
	}
	return -1
}

func TestInterceptor(t *testing.T) {
	s := servertest.Start(t, binary)
	client := redis.NewClient(servertest.Patient(cellserver.Options(s.Addr)))
	defer func() { _ = client.Close() }()
	l := &cellserver.Limiter{Client: client, OnError: cellserver.Closed, Timeout: servertest.Long}
	type call func(context.Context, grpc_health_v1.HealthClient) (metadata.MD, error)
	for name, call := range map[string]call{"unary": unary, "stream": stream} {
		t.Run(name, func(t *testing.T) {
			s.Do(t, "cl.limit set "+name+" funnel 0 1 3600")
			s.Do(t, "cl.limit override "+name+" nobody deny")
			c := serve(t, cellgrpc.Interceptor{Limiter: l, Limit: name, Key: cellgrpc.ByMetadata("x-key")})
			for _, tt := range []struct {
				key     string
				code    codes.Code
				headers string
				retries bool
			}{
				{"k", codes.OK, `"NAME";q=1 "NAME";r=0;t= `, false},
				{"k", codes.ResourceExhausted, `"NAME";q=1 "NAME";r=0;t= RETRY`, true},
				{"nobody", codes.ResourceExhausted, `"NAME";q=0 "NAME";r=0 `, false},
				{"", codes.InvalidArgument, "  ", false},
			} {
				md, err := call(metadata.AppendToOutgoingContext(t.Context(), "x-key", tt.key), c)
				limit := strings.Join(md.Get("ratelimit"), ",")
				if _, after, ok := strings.Cut(limit, ";t="); ok && after != "" {
					limit = strings.TrimSuffix(limit, after)
				}
				retry := strings.Join(md.Get("retry-after"), ",")
				if retry != "" {
					retry = "RETRY"
				}
				got := strings.Join([]string{strings.Join(md.Get("ratelimit-policy"), ","), limit, retry}, " ")
				want := strings.ReplaceAll(tt.headers, "NAME", name)
				if status.Code(err) != tt.code || got != want || (retryOf(err) > 0) != tt.retries {
					t.Errorf("%q: %v, %q, %s", tt.key, err, got, retryOf(err))
				}
			}
		})
	}
}

func TestWithoutServer(t *testing.T) {
	s := servertest.Start(t, binary)
	s.Hang(t)
	client := redis.NewClient(cellserver.Options(s.Addr))
	defer func() { _ = client.Close() }()
	for onError, want := range map[cellserver.OnError]codes.Code{
		cellserver.Open: codes.OK, cellserver.Closed: codes.Unavailable, cellserver.Local: codes.ResourceExhausted,
	} {
		l := &cellserver.Limiter{
			Client: client, OnError: onError,
			Fallback: map[string]cellserver.Funnel{"api": {Count: 1, Period: time.Hour}},
		}
		user := func(context.Context) string { return "u" }
		c := serve(t, cellgrpc.Interceptor{Limiter: l, Limit: "api", Key: cellgrpc.ByUser(user)})
		_, first := unary(t.Context(), c)
		if (first == nil) == (want == codes.Unavailable) {
			t.Errorf("%d: first %v", onError, first)
		}
		_, err := unary(t.Context(), c)
		if status.Code(err) != want || (retryOf(err) > 0) != (want != codes.OK) {
			t.Errorf("%d: then %v", onError, err)
		}
	}
}

func TestMistake(t *testing.T) {
	client := redis.NewClient(servertest.Patient(cellserver.Options(servertest.Start(t, binary).Addr)))
	defer func() { _ = client.Close() }()
	l := &cellserver.Limiter{Client: client, Timeout: servertest.Long}
	c := serve(t, cellgrpc.Interceptor{Limiter: l, Limit: "nosuch", Key: cellgrpc.ByAddress()})
	_, first := unary(t.Context(), c)
	_, second := stream(t.Context(), c)
	for _, err := range []error{first, second} {
		if status.Code(err) != codes.Internal || retryOf(err) >= 0 {
			t.Error(err)
		}
	}
}

func TestKeys(t *testing.T) {
	s := servertest.Start(t, binary)
	client := redis.NewClient(servertest.Patient(cellserver.Options(s.Addr)))
	defer func() { _ = client.Close() }()
	s.Do(t, "cl.limit set api funnel 0 1 3600")
	l := &cellserver.Limiter{Client: client, OnError: cellserver.Closed, Timeout: servertest.Long}
	c := serve(t, cellgrpc.Interceptor{Limiter: l, Limit: "api", Key: cellgrpc.ByAddress()})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", "192.0.2.1")
	if _, err := unary(ctx, c); err != nil {
		t.Fatal(err)
	}
	if n := s.Do(t, "exists api:127.0.0.1 api:192.0.2.1"); n != int64(1) {
		t.Errorf("%d keys", n)
	}
	nobody := func(context.Context) string { return "" }
	c = serve(t, cellgrpc.Interceptor{Limiter: l, Limit: "api", Key: cellgrpc.ByUser(nobody)})
	if _, err := unary(t.Context(), c); status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
}
