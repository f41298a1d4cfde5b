package rls

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"cellserver/internal/edge/door"
)

// maxHealthBytes bounds a message that needs no token.
const maxHealthBytes = 1 << 10

// healthName is the name by which configurations of Envoy ask for the health, as envoyproxy/ratelimit has it.
const healthName = "ratelimit"

// health is the status of grpc.health.v1's HealthCheckResponse.
type health uint8

const (
	unsaid health = iota
	serving
	notServing
	serviceUnknown
)

var errNoDomains = errors.New("no domain has a configuration yet")

// Ready returns why requests would fail, or nil.
func (s *Service) Ready() error {
	if s.config.HealthyWithConfig {
		if rules := s.config.Rules(); rules == nil || len(rules.Domains) == 0 {
			return errNoDomains
		}
	}
	return s.config.Ready()
}

// healthOf returns the status of a service. That of the server, which has no name, says only that it runs.
func (s *Service) healthOf(name string) health {
	switch name {
	case "":
		return serving
	case healthName, ServiceName:
		if s.Ready() != nil {
			return notServing
		}
		return serving
	}
	return serviceUnknown
}

// message is a HealthCheckResponse, with the status as its field 1.
func (h health) message() []byte { return []byte{1 << 3, byte(h)} }

func (s *Service) check(_ *door.Call, m []byte) ([]byte, error) {
	name, err := serviceOf(m)
	if err != nil {
		return nil, err
	}
	is := s.healthOf(name)
	if is == serviceUnknown {
		return nil, status.Error(codes.NotFound, "unknown service; there are "+healthName+" and "+ServiceName)
	}
	return is.message(), nil
}

// watch tells the status of a service, and its changes until the door ends: then it is another one already.
func (s *Service) watch(call *door.Call, m []byte, send func([]byte) error) error {
	name, err := serviceOf(m)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(s.lookEvery)
	defer ticker.Stop()
	for told, ends := unsaid, false; ; {
		if is := s.healthOf(name); is != told {
			if err := send(is.message()); err != nil {
				return err
			}
			told = is
		}
		if ends {
			return status.Error(codes.Unavailable, "the server shuts down")
		}
		select {
		case <-ticker.C:
		case <-call.Ending():
			ends = true
		case <-call.Done():
			return call.Err()
		}
	}
}

// serviceOf returns the name in a HealthCheckRequest, its field 1.
func serviceOf(m []byte) (name string, err error) {
	for len(m) > 0 {
		number, kind, n := protowire.ConsumeField(m)
		if n < 0 {
			return "", status.Error(codes.InvalidArgument, "the message is no grpc.health.v1.HealthCheckRequest")
		}
		if number == 1 && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(m)
			service, _ := protowire.ConsumeBytes(m[tag:])
			name = string(service)
		}
		m = m[n:]
	}
	return name, nil
}
