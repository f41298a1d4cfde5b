// Package rls is Envoy's rate limit service, version 3, and gRPC's health service, for a door. A descriptor
// with a limit is a call to the session of its request's connection. A Service is safe for concurrent use.
//
// It decides as envoyproxy/ratelimit at f2fb157 does (src/service/ratelimit.go, src/limiter), apart from what
// docs/ENVOY.md lists.
package rls

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/rls/rlspb"
)

// Config configures a Service. Log is required.
type Config struct {
	// Rules returns the configuration. Without it, or without rules, only limits that requests bring apply.
	Rules func() *envoyconfig.Rules
	// Headers adds RateLimit-Limit, -Remaining and -Reset, as LIMIT_RESPONSE_HEADERS_ENABLED does.
	Headers bool
	// Metadata adds dynamic metadata to responses, as RESPONSE_DYNAMIC_METADATA does.
	Metadata bool
	// Ready returns why requests would fail, such as loading, or nil. It may be nil.
	Ready func() error
	Log   *slog.Logger
}

// ServiceName is the service's full name, by which its health is asked for, too.
const ServiceName = "envoy.service.ratelimit.v3.RateLimitService"

// maxMessageBytes fits what Envoy makes of 60 KiB of headers, its maximum, in several descriptors.
const maxMessageBytes = 256 << 10

const procedure = "/" + ServiceName + "/ShouldRateLimit"

// Service serves the procedures. It is the handler of a door.
type Service struct {
	Metrics *Metrics
	config  Config
	limit   http.Handler
	health  http.Handler
}

// New returns a Service.
func New(c Config) *Service {
	s := &Service{Metrics: newMetrics(), config: c}
	options := []connect.HandlerOption{
		connect.WithReadMaxBytes(maxMessageBytes),
		connect.WithCompressMinBytes(maxMessageBytes), // responses are small
		connect.WithRecover(s.recovered),
	}
	s.limit = connect.NewUnaryHandler(procedure, s.shouldRateLimit, options...)
	_, s.health = grpchealth.NewHandler(s, options...)
	return s
}

// ServeHTTP serves gRPC alone: nothing that a web page can send gets further.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := door.ConnOf(r)
	if reason := refusal(r); reason != "" {
		c.Count(door.Refused, c.Now())
		http.Error(w, reason, http.StatusUnsupportedMediaType)
		return
	}
	if c.Full() != nil {
		c.Count(door.Failed, c.Now())
		w.Header().Set("Connection", "close") // a later connection may be a client
		status(w, "8", door.ErrFull.Error())  // RESOURCE_EXHAUSTED
		return
	}
	switch {
	case r.URL.Path == procedure:
		s.limit.ServeHTTP(w, r)
	case strings.HasPrefix(r.URL.Path, "/"+grpchealth.HealthV1ServiceName+"/"):
		s.health.ServeHTTP(w, r)
	default:
		status(w, "12", "there are "+procedure+" and "+grpchealth.HealthV1ServiceName) // UNIMPLEMENTED
	}
}

// status answers without a message.
func status(w http.ResponseWriter, code, text string) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", code)
	w.Header().Set("Grpc-Message", text)
}

// refusal returns why a request is not one of gRPC's, or "".
func refusal(r *http.Request) string {
	switch contentType := r.Header.Get("Content-Type"); {
	case contentType != "application/grpc" && contentType != "application/grpc+proto", r.ProtoMajor != 2:
		return "this address speaks gRPC (--grpc-addr), over HTTP/2; for others there is --http-addr"
	case r.Header.Get("Origin") != "":
		return "requests of web pages are refused"
	}
	return ""
}

// shouldRateLimit answers a request.
func (s *Service) shouldRateLimit(ctx context.Context, r *connect.Request[rlspb.RateLimitRequest]) (*connect.Response[rlspb.RateLimitResponse], error) {
	c := door.FromContext(ctx, nil) // ServeHTTP has told it of TLS
	beganNs := c.Now()
	response, err := s.answer(ctx, c, r.Header(), r.Msg)
	if err != nil {
		c.Count(outcomeOf(err), beganNs)
		return nil, errorOf(err)
	}
	outcome := door.Allowed
	if response.OverallCode == rlspb.RateLimitResponse_OVER_LIMIT {
		outcome = door.Limited
	}
	c.Count(outcome, beganNs)
	return connect.NewResponse(response), nil
}

func (s *Service) answer(ctx context.Context, c *door.Conn, header http.Header, r *rlspb.RateLimitRequest) (*rlspb.RateLimitResponse, error) {
	token, err := tokenOf(header)
	if err != nil {
		return nil, err
	}
	user, err := c.User(ctx, token)
	if err != nil {
		return nil, err
	}
	p, err := s.plan(r)
	if err != nil {
		return nil, err
	}
	if err := p.ask(ctx, c, user); err != nil {
		return nil, err
	}
	return s.respond(p, c.Now()), nil
}

// tokenOf returns the token of a request, or "".
func tokenOf(header http.Header) (string, error) {
	given := header.Get("Authorization")
	if given == "" {
		return "", nil
	}
	scheme, token, _ := strings.Cut(given, " ")
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return "", errScheme
	}
	return token, nil
}

// Check implements grpchealth.Checker.
func (s *Service) Check(_ context.Context, r *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if r.Service != "" && r.Service != ServiceName {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("there is "+ServiceName))
	}
	status := grpchealth.StatusServing
	if s.config.Ready != nil && s.config.Ready() != nil {
		status = grpchealth.StatusNotServing
	}
	return &grpchealth.CheckResponse{Status: status}, nil
}

func (s *Service) recovered(_ context.Context, spec connect.Spec, _ http.Header, cause any) error {
	s.config.Log.Error("a request caused a panic, which is a defect; please report it", "procedure", spec.Procedure, "panic", cause, "stack", string(debug.Stack()))
	return connect.NewError(connect.CodeInternal, errors.New("the server failed; its log says why"))
}
