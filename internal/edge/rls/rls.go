// Package rls is Envoy's rate limit service, version 3, and gRPC's health service, for a door. A descriptor
// with a limit is a call to the session of its request's connection. A Service is safe for concurrent use.
//
// It decides as envoyproxy/ratelimit at f2fb157 does (src/service/ratelimit.go, src/limiter), apart from what
// docs/ENVOY.md lists.
package rls

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

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
	// Headers adds RateLimit-Limit, -Remaining and -Reset, as LIMIT_RESPONSE_HEADERS_ENABLED does, and
	// x-ratelimit-near.
	Headers bool
	// Metadata adds dynamic metadata to responses, as RESPONSE_DYNAMIC_METADATA does.
	Metadata bool
	// Ready returns why requests would fail, such as loading, or nil.
	Ready func() error
	// Loading reports whether the states are still being loaded.
	Loading func() bool
}

// ServiceName is the service's full name, by which its health is asked for, too.
const ServiceName = "envoy.service.ratelimit.v3.RateLimitService"

// Paths of the procedures:
const (
	procedure = "/" + ServiceName + "/ShouldRateLimit"
	health    = "/grpc.health.v1.Health/Check"
)

// maxHealthBytes bounds a message that needs no token.
const maxHealthBytes = 1 << 10

// Service serves the procedures.
type Service struct {
	Metrics *Metrics
	config  Config
}

func New(c Config) *Service { return &Service{Metrics: newMetrics(), config: c} }

// Procedures returns what a door serves.
func (s *Service) Procedures() door.Procedures {
	return door.Procedures{
		All: map[string]door.Procedure{
			procedure: {MaxBytes: door.MaxMessageBytes, Admit: s.admit, Answer: s.shouldRateLimit},
			health:    {MaxBytes: maxHealthBytes, Answer: s.check},
		},
		Unknown: status.Error(codes.Unimplemented, "there are "+procedure+" and "+health),
		Code:    codeOf,
	}
}

// admit returns a call's user, nil for the default one.
func (s *Service) admit(call *door.Call) (*acl.User, error) {
	token, err := tokenOf(call.Header("authorization"))
	if err != nil {
		return nil, err
	}
	user, err := call.Conn.UserNow(token)
	switch {
	case err != nil:
		return nil, err
	case call.Conn.IsStranger(user):
		return nil, errNoToken
	case s.config.Loading():
		return nil, reply.ErrLoading
	}
	return user, nil
}

// shouldRateLimit answers a request.
func (s *Service) shouldRateLimit(call *door.Call, m []byte) ([]byte, error) {
	c := call.Conn
	beganNs := c.Now()
	response, err := s.answer(call, m)
	if err != nil {
		c.Count(door.OutcomeOf(codeOf(err)), beganNs)
		return nil, err
	}
	outcome := door.Allowed
	if response.OverallCode == rlspb.RateLimitResponse_OVER_LIMIT {
		outcome = door.Limited
	}
	c.Count(outcome, beganNs)
	return proto.Marshal(response)
}

func (s *Service) answer(call *door.Call, m message) (*rlspb.RateLimitResponse, error) {
	p, err := s.planInTurn(call.Conn, m)
	if err != nil {
		return nil, err
	}
	if err := p.ask(call, call.Conn, call.User); err != nil {
		return nil, err
	}
	return s.respond(p, call.Conn.Now()), nil
}

func (s *Service) planInTurn(c *door.Conn, m message) (*plan, error) {
	c.BeginTurn()
	defer c.EndTurn()
	return s.plan(m)
}

// tokenOf returns the token of a header, or "".
func tokenOf(authorization string) (string, error) {
	if authorization == "" {
		return "", nil
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return "", errScheme
	}
	return token, nil
}

// check answers whether the service, or the server, is ready: grpc.health.v1's HealthCheckRequest has the
// name of a service as its field 1, and HealthCheckResponse a status.
func (s *Service) check(_ *door.Call, m []byte) ([]byte, error) {
	var service []byte
	for len(m) > 0 {
		number, kind, n := protowire.ConsumeField(m)
		if n < 0 {
			return nil, status.Error(codes.InvalidArgument, "the message is no grpc.health.v1.HealthCheckRequest")
		}
		if number == 1 && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(m)
			service, _ = protowire.ConsumeBytes(m[tag:])
		}
		m = m[n:]
	}
	if name := string(service); name != "" && name != ServiceName {
		return nil, status.Error(codes.NotFound, "there is "+ServiceName)
	}
	const serving, notServing = 1, 2
	is := byte(serving)
	if s.config.Ready() != nil {
		is = notServing
	}
	return []byte{1 << 3, is}, nil
}
