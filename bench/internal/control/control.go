// Package control serves answers that are always the same, as cellserver's doors would give them: what they
// cost is what HTTP and gRPC cost alone. It has no state.
package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"cellserver/internal/edge/rls/rlspb"
)

// The controls' names.
const (
	HTTP = "http"
	GRPC = "grpc"
)

// Serve serves a control on a port of loopback, which it writes to stdout, until ctx is done.
func Serve(ctx context.Context, name string, stdout io.Writer) error {
	handler, ok := map[string]http.Handler{HTTP: http.HandlerFunc(check), GRPC: shouldRateLimit()}[name]
	if !ok {
		return fmt.Errorf("control: unknown %q; choose %s or %s", name, HTTP, GRPC)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: protocols, ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if _, err := fmt.Fprintln(stdout, l.Addr().(*net.TCPAddr).Port); err != nil {
		return err
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

// Main serves a control until SIGTERM, and exits. It makes a program of a test's binary.
func Main(name string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := Serve(ctx, name, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// check answers as GET /v1/check/NAME does.
func check(w http.ResponseWriter, _ *http.Request) {
	const body = `{"allowed":true,"limit":1000001,"remaining":1000000,"retry_after_ms":-1,"reset_after_ms":86}` + "\n"
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", "application/json")
	h.Set("RateLimit-Policy", `"api";q=1000001;w=86401`)
	h.Set("RateLimit", `"api";r=1000000;t=1`)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = io.WriteString(w, body)
}

// ShouldRateLimit is the path of the call in Envoy's rate limit service.
const ShouldRateLimit = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"

// shouldRateLimit answers as a descriptor with a limit is.
func shouldRateLimit() http.Handler {
	return connect.NewUnaryHandler(ShouldRateLimit,
		func(context.Context, *connect.Request[rlspb.RateLimitRequest]) (*connect.Response[rlspb.RateLimitResponse], error) {
			return connect.NewResponse(&rlspb.RateLimitResponse{
				OverallCode: rlspb.RateLimitResponse_OK,
				Statuses: []*rlspb.RateLimitResponse_DescriptorStatus{{
					Code: rlspb.RateLimitResponse_OK,
					CurrentLimit: &rlspb.RateLimitResponse_RateLimit{
						RequestsPerUnit: 1_000_000, Unit: rlspb.RateLimitUnit_HOUR,
					},
					LimitRemaining:     999_999,
					DurationUntilReset: &durationpb.Duration{Seconds: 1800},
				}},
			}), nil
		})
}
