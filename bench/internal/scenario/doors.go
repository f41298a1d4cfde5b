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

// Calls of cellserver's doors.
const (
	get             = peer.Cellserver + ", GET /v1/check"
	getDenied       = get + ", denied"
	getMixed        = get + ", mixed"
	post            = peer.Cellserver + ", POST /v1/check"
	checkRESP       = peer.Cellserver + ", CL.CHECK over RESP"
	throttleRESP    = peer.Cellserver + ", CL.THROTTLE over RESP"
	shouldRateLimit = peer.Cellserver + ", ShouldRateLimit"
	limitsOverXDS   = shouldRateLimit + ", limits over xDS"
)

// envoyTimeoutMs is Envoy's default for the rate limit service.
const envoyTimeoutMs = 20

// doors compares the doors of HTTP and gRPC with handlers that answer the same without a decision, HTTP with
// RESP, and ShouldRateLimit with envoyproxy/ratelimit and its Redis.
func (s *Suite) doors(ctx context.Context) error {
	for _, d := range []struct {
		name    string
		measure func(*Suite, context.Context, *servers) error
	}{{control.HTTP, (*Suite).checks}, {control.GRPC, (*Suite).rateLimits}} {
		if !s.Kit.HasFlag(ctx, d.name+"-addr") {
			s.skip("doors: this cellserver has no flag --%s-addr", d.name)
			continue
		}
		var started servers
		err := d.measure(s, ctx, &started)
		started.stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// checks measures HTTP.
func (s *Suite) checks(ctx context.Context, started *servers) error {
	all, err := s.checkers(ctx, started)
	if err != nil {
		return err
	}
	lanes, err := s.raceAt(ctx, "doors", []int{1}, fewKeys, all)
	if err != nil {
		return err
	}
	for _, goal := range []struct {
		call, other string
		most        float64
	}{
		{get, peer.EmptyHTTP, 0.6}, {get, peer.EmptyFastHTTP, 1.25}, {getDenied, get, 1.05}, {post, peer.EmptyHTTP, 0.9},
	} {
		s.goal(ratio(goal.call+": CPU per request, by that of "+goal.other, goal.most, lanes[goal.call][1], lanes[goal.other][1], report.CPU))
	}
	half, err := s.atHalfLoad(ctx, "doors-half", named(all, get, peer.EmptyHTTP, peer.EmptyFastHTTP))
	if err != nil {
		return err
	}
	s.goal(ratio(get+", half load: p99, by that of "+peer.EmptyHTTP, 1, half[get], half[peer.EmptyHTTP], report.P99))
	return nil
}

// checkers starts cellserver with and without HTTP, and the controls.
func (s *Suite) checkers(ctx context.Context, started *servers) (all []contestant, err error) {
	allowed, err := peer.Check()
	if err != nil {
		return nil, err
	}
	denied, err := peer.CheckDenied()
	if err != nil {
		return nil, err
	}
	mixed, err := peer.CheckMixed()
	if err != nil {
		return nil, err
	}
	posted, err := peer.CheckPost()
	if err != nil {
		return nil, err
	}
	for _, one := range []struct {
		start func() (*peer.Server, error)
		calls []contestant
	}{
		{func() (*peer.Server, error) { return s.Kit.StartDoor(ctx, control.HTTP) }, []contestant{
			{name: get, command: allowed}, {name: getDenied, command: denied}, {name: getMixed, command: mixed}, {name: post, command: posted},
		}},
		{func() (*peer.Server, error) { return s.Kit.StartControl(ctx, control.HTTP) }, []contestant{{name: peer.EmptyHTTP, command: allowed}}},
		{func() (*peer.Server, error) { return s.Kit.StartControl(ctx, control.FastHTTP) }, []contestant{{name: peer.EmptyFastHTTP, command: allowed}}},
		{func() (*peer.Server, error) { return s.Kit.StartDoor(ctx, peer.RESP) }, []contestant{
			{name: checkRESP, command: peer.CheckRESP()}, {name: throttleRESP, command: peer.Throttle()},
		}},
	} {
		server, err := started.add(one.start())
		if err != nil {
			return nil, err
		}
		for _, c := range one.calls {
			c.server = server
			all = append(all, c)
		}
	}
	return all, nil
}

const (
	mostByEmptyGRPC = 1.3
	mostByRateLimit = 0.4
	mostByFiles     = 1.02
)

// rateLimits measures gRPC.
func (s *Suite) rateLimits(ctx context.Context, started *servers) error {
	all, err := s.rateLimiters(ctx, started)
	if err != nil {
		return err
	}
	depths := []int{1, 16}
	lanes, err := s.raceAt(ctx, "doors", depths, fewKeys, all)
	if err != nil {
		return err
	}
	for _, depth := range depths {
		text := shouldRateLimit
		if depth > 1 {
			text += fmt.Sprintf(", %d streams of a connection", depth)
		}
		cell := lanes[shouldRateLimit][depth]
		s.goal(
			ratio(text+": CPU per request, by that of "+peer.EmptyGRPC, mostByEmptyGRPC, cell, lanes[peer.EmptyGRPC][depth], report.CPU),
			ratio(text+": CPU per request, by that of "+peer.RateLimit+" and its Redis", mostByRateLimit, cell, lanes[peer.RateLimit][depth], report.CPU),
		)
	}
	s.goal(ratio(limitsOverXDS+", 16 streams of a connection: CPU per request, by that with files", mostByFiles,
		lanes[limitsOverXDS][16], lanes[shouldRateLimit][16], report.CPU))
	half, err := s.atHalfLoad(ctx, "doors-half", named(all, shouldRateLimit, peer.EmptyGRPC))
	if err != nil {
		return err
	}
	s.goal(report.AtMost(shouldRateLimit+", half load: milliseconds of p99, of which Envoy gives 20", envoyTimeoutMs,
		scaled(half[shouldRateLimit].point.Each(report.P99), 1/float64(time.Millisecond))))
	return nil
}

// rateLimiters starts cellserver with limits of files and over xDS, the control and envoyproxy/ratelimit.
func (s *Suite) rateLimiters(ctx context.Context, started *servers) (all []contestant, err error) {
	for _, one := range []struct {
		name  string
		start func() (*peer.Server, error)
	}{
		{shouldRateLimit, func() (*peer.Server, error) { return s.Kit.StartDoor(ctx, control.GRPC) }},
		{limitsOverXDS, func() (*peer.Server, error) { return s.startXDS(ctx, started) }},
		{peer.EmptyGRPC, func() (*peer.Server, error) { return s.Kit.StartControl(ctx, control.GRPC) }},
		{peer.RateLimit, func() (*peer.Server, error) { return s.Kit.StartRateLimit(ctx) }},
	} {
		if !s.have(one.name) || one.name == limitsOverXDS && !s.Kit.HasFlag(ctx, "envoy-xds") {
			continue
		}
		server, err := started.add(one.start())
		if err != nil {
			return nil, err
		}
		all = append(all, contestant{one.name, server, peer.ShouldRateLimit()})
	}
	return all, nil
}

// startXDS starts cellserver behind an xDS server, which has nothing to do once it has given the limits.
func (s *Suite) startXDS(ctx context.Context, started *servers) (*peer.Server, error) {
	from, err := started.add(s.Kit.StartControl(ctx, control.XDS))
	if err != nil {
		return nil, err
	}
	return s.Kit.StartXDS(ctx, from.Addr)
}

// named returns the contestants with these names.
func named(all []contestant, names ...string) (some []contestant) {
	for _, name := range names {
		for _, c := range all {
			if c.name == name {
				some = append(some, c)
			}
		}
	}
	return some
}

// atHalfLoad measures latency at half of the rate that the slowest reaches in a closed loop.
func (s *Suite) atHalfLoad(ctx context.Context, scenario string, all []contestant) (map[string]*lane, error) {
	rate, err := s.halfRate(ctx, 1, all...)
	if err != nil {
		return nil, err
	}
	lanes, order := map[string]*lane{}, []*lane(nil)
	for _, c := range all {
		lanes[c.name] = s.lane(scenario, c.name, c.server, s.config(c.server, c.command), load.Plan{Duration: 2 * s.Window, Rate: rate})
		order = append(order, lanes[c.name])
	}
	return lanes, s.interleave(ctx, order)
}
