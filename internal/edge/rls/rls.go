// Package rls is Envoy's rate limit service, version 3, and gRPC's health service, for a door. A descriptor
// with a limit is a call to the session of its request's connection. A Service is safe for concurrent use.
//
// It decides as envoyproxy/ratelimit at f2fb157 does (src/service/ratelimit.go, src/limiter), apart from what
// docs/ENVOY.md lists.
package rls

import (
	"cmp"
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/acl"
)

// Config configures a Service. Rules, Calendars, Ready and Loading are required.
type Config struct {
	// Rules returns the configuration, for which each call asks once. Without one only limits that requests
	// bring apply.
	Rules func() *envoyconfig.Rules
	// AwaitsRules has calls fail while there is none.
	AwaitsRules bool
	// HealthyWithConfig has the service be ready only while a domain has limits, as
	// HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED does.
	HealthyWithConfig bool
	// Calendars has the windows of quotas.
	Calendars *calendar.Set
	// Headers adds RateLimit-Limit, -Remaining and -Reset, as LIMIT_RESPONSE_HEADERS_ENABLED does, and
	// x-ratelimit-near. HeaderNames replaces the names of the three, unless they are empty.
	Headers     bool
	HeaderNames [3]string
	// Metadata adds dynamic metadata to responses, as RESPONSE_DYNAMIC_METADATA does.
	Metadata bool
	// NearRatio is the share of a limit beyond which hits are near it; 0 is 0.8.
	NearRatio float32
	// Shadow allows all requests, whose descriptors keep their status, as SHADOW_MODE does.
	Shadow bool
	// Quota has all limits in quota_mode, as QUOTA_MODE does.
	Quota bool
	// StopsWhenOver has a request that exceeds limits charged to those alone, as
	// STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT does. Domains with all_or_nothing charge nothing then.
	StopsWhenOver bool
	// Ready returns why requests would fail, such as loading, or nil.
	Ready func() error
	// Loading reports whether the states are still being loaded.
	Loading func() bool
}

// ServiceName is the service's full name, by which its health is asked for, too.
const ServiceName = "envoy.service.ratelimit.v3.RateLimitService"

// Paths of the procedures:
const (
	procedure   = "/" + ServiceName + "/ShouldRateLimit"
	healthCheck = "/grpc.health.v1.Health/Check"
	healthWatch = "/grpc.health.v1.Health/Watch"
)

// Service serves the procedures.
type Service struct {
	Metrics *Metrics
	config  Config
	// lookEvery is the time between looks at what a watcher of the health is told.
	lookEvery time.Duration
}

func New(c Config) *Service {
	if c.NearRatio == 0 {
		c.NearRatio = nearRatio
	}
	for i, name := range [...]string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
		c.HeaderNames[i] = cmp.Or(c.HeaderNames[i], name)
	}
	return &Service{Metrics: newMetrics(), config: c, lookEvery: time.Second}
}

// Procedures returns what a door serves.
func (s *Service) Procedures() door.Procedures {
	p := door.Procedures{
		All: map[string]door.Procedure{
			procedure:   {MaxBytes: door.MaxMessageBytes, Admit: s.admit, Answer: s.shouldRateLimit},
			healthCheck: {MaxBytes: maxHealthBytes, Answer: s.check},
			healthWatch: {MaxBytes: maxHealthBytes, Stream: s.watch},
		},
		Unknown: status.Error(codes.Unimplemented, "there are "+procedure+", "+healthCheck+", "+healthWatch+" and those of "+KuadrantServiceName),
		Code:    codeOf,
	}
	for path, answer := range s.kuadrant() {
		p.All[path] = door.Procedure{MaxBytes: door.MaxMessageBytes, Admit: s.admit, Answer: answering(answer)}
	}
	return p
}

// admit returns a call's user, nil for the default one.
func (s *Service) admit(call *door.Call) (*acl.User, error) {
	return s.admitBy(call.Conn, call.Header("authorization"), call.Conn.UserNow)
}

// admitBy admits the user of a header's token.
func (s *Service) admitBy(c *door.Conn, authorization string, userOf func(token string) (*acl.User, error)) (*acl.User, error) {
	token, err := tokenOf(authorization)
	if err != nil {
		return nil, err
	}
	user, err := userOf(token)
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

// shouldRateLimit answers a request.
func (s *Service) shouldRateLimit(call *door.Call, m []byte) ([]byte, error) {
	response, err := s.answer(call, call.Conn, call.User, message(m).decode)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(response)
}

// answer decodes a request in a turn and decides it, and counts it.
func (s *Service) answer(ctx context.Context, c *door.Conn, user *acl.User, decode decoder) (*rlspb.RateLimitResponse, error) {
	beganNs := c.Now()
	response, err := s.decide(ctx, c, user, decode)
	outcome := door.Allowed
	switch {
	case err != nil:
		outcome = door.OutcomeOf(codeOf(err))
	case response.OverallCode == rlspb.RateLimitResponse_OVER_LIMIT:
		outcome = door.Limited
	}
	c.Count(outcome, beganNs)
	return response, err
}

// decoder decodes a request of any form.
type decoder func() (*rlspb.RateLimitRequest, error)

func (s *Service) decide(ctx context.Context, c *door.Conn, user *acl.User, decode decoder) (*rlspb.RateLimitResponse, error) {
	p, err := s.planInTurn(c, decode)
	if err != nil {
		return nil, err
	}
	if s.config.StopsWhenOver {
		if err := p.stopWhenOver(ctx, c, user); err != nil {
			return nil, err
		}
	}
	if err := p.ask(ctx, c, user); err != nil {
		return nil, err
	}
	return s.respond(p, c.Now()), nil
}

func (s *Service) planInTurn(c *door.Conn, decode decoder) (*plan, error) {
	c.BeginTurn()
	defer c.EndTurn()
	r, err := decode()
	if err != nil {
		return nil, err
	}
	return s.plan(r)
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
