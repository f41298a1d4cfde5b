package scenario

import (
	"context"
	"fmt"
	"time"

	"cellserver/bench/internal/control"
	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

// doorCase is a door of cellserver, with what it is compared to.
type doorCase struct {
	name, call  string // "http" and "GET /v1/check"
	controlName string
	command     func() (load.Command, error)
	depths      []int
	most        float64 // of CPU per request, by the control's
}

func doorCases() []doorCase {
	return []doorCase{
		{control.HTTP, "GET /v1/check", peer.EmptyHTTP, peer.Check, []int{1}, 1.25},
		{control.GRPC, "ShouldRateLimit", peer.EmptyGRPC, peer.ShouldRateLimit, []int{1, 16}, 1.3},
	}
}

const (
	mostByRateLimit = 0.6
	envoyTimeoutMs  = 20 // Envoy's default for the rate limit service
)

// doors compares the doors of HTTP and gRPC with handlers that answer the same without a decision, and
// ShouldRateLimit with envoyproxy/ratelimit and its Redis.
func (s *Suite) doors(ctx context.Context) error {
	for _, c := range doorCases() {
		if !s.Kit.HasFlag(ctx, c.name+"-addr") {
			s.skip("%s: this cellserver has no flag --%s-addr", c.call, c.name)
			continue
		}
		if err := s.door(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (s *Suite) door(ctx context.Context, c doorCase) error {
	var started servers
	defer started.stop()
	all, err := s.doorContestants(ctx, &started, c)
	if err != nil {
		return err
	}
	cell, empty := all[0], all[1]
	lanes, err := s.raceAt(ctx, "doors", c.depths, all)
	if err != nil {
		return err
	}
	for _, depth := range c.depths {
		text := c.call
		if depth > 1 {
			text += fmt.Sprintf(", %d streams of a connection", depth)
		}
		s.goal(ratio(text+": CPU per request, by that of "+empty.name, c.most, lanes[cell.name][depth], lanes[empty.name][depth], report.CPU))
		if c.name == control.GRPC {
			s.goal(ratio(text+": CPU per request, by that of "+peer.RateLimit+" and its Redis", mostByRateLimit,
				lanes[cell.name][depth], lanes[peer.RateLimit][depth], report.CPU))
		}
	}
	return s.doorAtHalfLoad(ctx, c, cell, empty)
}

// doorContestants starts cellserver, the control, and for gRPC envoyproxy/ratelimit.
func (s *Suite) doorContestants(ctx context.Context, started *servers, c doorCase) ([]contestant, error) {
	command, err := c.command()
	if err != nil {
		return nil, err
	}
	cell, err := started.add(s.Kit.StartDoor(ctx, c.name))
	if err != nil {
		return nil, err
	}
	empty, err := started.add(s.Kit.StartControl(ctx, c.name))
	if err != nil {
		return nil, err
	}
	all := []contestant{{peer.Cellserver + ", " + c.call, cell, command}, {c.controlName, empty, command}}
	if c.name != control.GRPC || !s.have(peer.RateLimit) {
		return all, nil
	}
	envoy, err := started.add(s.Kit.StartRateLimit(ctx))
	if err != nil {
		return nil, err
	}
	return append(all, contestant{peer.RateLimit, envoy, command}), nil
}

// doorAtHalfLoad measures latency at half of the rate that the slower of both reaches in a closed loop.
func (s *Suite) doorAtHalfLoad(ctx context.Context, c doorCase, both ...contestant) error {
	rate, err := s.halfRate(ctx, 1, both...)
	if err != nil {
		return err
	}
	var lanes []*lane
	for _, one := range both {
		lanes = append(lanes, s.lane("doors-half", one.name, one.server, s.config(one.server, one.command), load.Plan{Duration: 2 * s.Window, Rate: rate}))
	}
	if err := s.interleave(ctx, lanes); err != nil {
		return err
	}
	if c.name == control.GRPC {
		s.goal(report.AtMost(c.call+", half load: milliseconds of p99, of which Envoy gives 20", envoyTimeoutMs,
			scaled(lanes[0].point.Each(report.P99), 1/float64(time.Millisecond))))
	}
	return nil
}
