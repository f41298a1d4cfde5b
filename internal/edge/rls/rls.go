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
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/acl"
)

// Config configures a Service. All but the switches are required.
type Config struct {
	// Rules returns the configuration. Without one only limits that requests bring apply.
	Rules func() *envoyconfig.Rules
	// Calendars has the windows of quotas.
	Calendars *calendar.Set
	// Headers adds RateLimit-Limit, -Remaining and -Reset, as LIMIT_RESPONSE_HEADERS_ENABLED does.
	Headers bool
	// Metadata adds dynamic metadata to responses, as RESPONSE_DYNAMIC_METADATA does.
	Metadata bool
	// Ready returns why requests would fail, such as loading, or nil.
	Ready func() error
	// Loading reports whether the states are still being loaded.
	Loading func() bool
	Log     *slog.Logger
}

// ServiceName is the service's full name, by which its health is asked for, too.
const ServiceName = "envoy.service.ratelimit.v3.RateLimitService"

// Paths of the procedures:
const (
	procedure = "/" + ServiceName + "/ShouldRateLimit"
	health    = "/" + grpchealth.HealthV1ServiceName + "/Check"
)

// Bounds of a body, with one message and nothing behind it:
const (
	prefixBytes    = 5
	maxHealthBytes = 1 << 10 // which needs no token
)

// Service serves the procedures. It is the handler of a door.
type Service struct {
	Metrics *Metrics
	config  Config
	limit   http.Handler
	health  http.Handler
	errors  *connect.ErrorWriter
}

func New(c Config) *Service {
	s := &Service{Metrics: newMetrics(), config: c, errors: connect.NewErrorWriter()}
	common := connect.WithHandlerOptions(
		// Nothing is decompressed: few bytes could become many. The name is what is told to be accepted.
		connect.WithCompression("gzip", nil, nil),
		connect.WithCompression("identity", func() connect.Decompressor { return nil }, func() connect.Compressor { return nil }),
		connect.WithRecover(s.recovered),
	)
	s.limit = connect.NewUnaryHandler(procedure, s.shouldRateLimit, common, connect.WithCodec(codec{}), connect.WithReadMaxBytes(maxMessageBytes))
	_, s.health = grpchealth.NewHandler(s, common, connect.WithReadMaxBytes(maxHealthBytes))
	return s
}

// ServeHTTP serves gRPC alone: nothing that a web page can send gets further.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := door.ConnOf(r)
	beganNs := c.Now()
	if reason := refusal(r); reason != "" {
		c.Count(door.Refused, beganNs)
		if door.LeavesBody(r) {
			w.Header().Set("Connection", "close")
		}
		http.Error(w, reason, http.StatusUnsupportedMediaType)
		return
	}
	if err := c.Full(); err != nil {
		w.Header().Set("Connection", "close") // a later connection may be a client
		s.refuse(w, r, err, beganNs)
		return
	}
	switch r.URL.Path {
	case procedure:
		user, err := s.admit(c, r)
		if err != nil {
			s.refuse(w, r, err, beganNs)
			return
		}
		door.BoundBody(r, prefixBytes+maxMessageBytes)
		s.limit.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	case health:
		door.BoundBody(r, prefixBytes+maxHealthBytes)
		s.health.ServeHTTP(w, r)
	default:
		_ = s.errors.Write(w, r, connect.NewError(connect.CodeUnimplemented, errors.New("there are "+procedure+" and "+health)))
	}
}

// refuse answers and counts a request whose message was not read.
func (s *Service) refuse(w http.ResponseWriter, r *http.Request, err error, beganNs int64) {
	door.ConnOf(r).Count(outcomeOf(err), beganNs)
	_ = s.errors.Write(w, r, errorOf(err))
}

// userKey is where a context has the *acl.User of a request.
type userKey struct{}

// admit returns a request's user, nil for the default one, before anything of its message is read.
func (s *Service) admit(c *door.Conn, r *http.Request) (*acl.User, error) {
	token, err := tokenOf(r.Header)
	if err != nil {
		return nil, err
	}
	user, err := c.User(r, token)
	switch {
	case err != nil:
		return nil, err
	case c.IsStranger(user):
		return nil, errNoToken
	case s.config.Loading():
		return nil, reply.ErrLoading
	}
	return user, nil
}

// refusal returns why a request is not one of gRPC's, or "".
func refusal(r *http.Request) string {
	switch contentType := r.Header.Get("Content-Type"); {
	case contentType != "application/grpc" && contentType != "application/grpc+proto", r.ProtoMajor != 2, r.Method != http.MethodPost:
		return "this address speaks gRPC (--grpc-addr), over HTTP/2; for others there is --http-addr"
	case r.Header.Get("Origin") != "":
		return "requests of web pages are refused"
	}
	return ""
}

// shouldRateLimit answers a request.
func (s *Service) shouldRateLimit(ctx context.Context, r *connect.Request[message]) (*connect.Response[rlspb.RateLimitResponse], error) {
	c := door.FromContext(ctx)
	beganNs := c.Now()
	response, err := s.answer(ctx, c, *r.Msg)
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

func (s *Service) answer(ctx context.Context, c *door.Conn, m message) (*rlspb.RateLimitResponse, error) {
	p, err := s.planInTurn(c, m)
	if err != nil {
		return nil, err
	}
	user, _ := ctx.Value(userKey{}).(*acl.User)
	if err := p.ask(ctx, c, user); err != nil {
		return nil, err
	}
	return s.respond(p, c.Now()), nil
}

func (s *Service) planInTurn(c *door.Conn, m message) (*plan, error) {
	c.BeginTurn()
	defer c.EndTurn()
	return s.plan(m)
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

func (s *Service) Check(_ context.Context, r *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if r.Service != "" && r.Service != ServiceName {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("there is "+ServiceName))
	}
	status := grpchealth.StatusServing
	if s.config.Ready() != nil {
		status = grpchealth.StatusNotServing
	}
	return &grpchealth.CheckResponse{Status: status}, nil
}

func (s *Service) recovered(_ context.Context, spec connect.Spec, _ http.Header, cause any) error {
	s.config.Log.Error("a request caused a panic, which is a defect; please report it", "procedure", spec.Procedure, "panic", cause, "stack", string(debug.Stack()))
	return connect.NewError(connect.CodeInternal, errors.New("the server failed; its log says why"))
}
