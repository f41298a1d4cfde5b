package scenario

import (
	"context"
	"fmt"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

// Variants of load that the first scenario compares, in addition to the peers.
const (
	allPass   = "cellserver, all pass"
	set       = "SET"
	ping      = "PING"
	lua       = "Lua funnel"
	redisRate = "redis_rate"
)

// contestant is a peer and its command.
type contestant struct {
	name    string
	server  *peer.Server
	command load.Command
}

// pipelined is the main comparison: the cost of a request on each server, by the number pipelined.
func (s *Suite) pipelined(ctx context.Context) error {
	var started servers
	defer started.stop()
	contestants, err := s.contestants(ctx, &started)
	if err != nil {
		return err
	}
	lanes, err := s.race(ctx, "pipelined", contestants)
	if err != nil {
		return err
	}
	cell := func(depth int) *lane { return lanes[peer.Cellserver][depth] }
	against := func(depth int, name string, most float64) report.Goal {
		text := fmt.Sprintf("%d pipelined: CPU per request, by that of %s", depth, name)
		return ratio(text, most, cell(depth), lanes[name][depth], report.CPU)
	}
	// A limited call writes nothing, and the faster the server, the more calls are limited. So loads whose
	// calls are all allowed have the same goals.
	passing := func(depth int, most float64) report.Goal {
		return ratio(fmt.Sprintf("%d pipelined, all pass: CPU per request, by that of SET", depth), most,
			lanes[allPass][depth], lanes[set][depth], report.CPU)
	}
	s.goal(
		against(1, set, 0.95), against(1, peer.RedisCell, 0.80), against(1, peer.Floor, 1.15),
		report.AtLeast("1 pipelined: rate, by that of SET", 1, report.Ratio(cell(1).point, lanes[set][1].point, report.Rate)),
		ratio("1 pipelined: p99, by that of SET", 1, cell(1), lanes[set][1], report.P99),
		against(16, set, 0.65), against(16, peer.RedisCell, 0.33),
		against(128, set, 0.45), against(128, peer.RedisCell, 0.16),
		passing(1, 0.95), passing(16, 0.65), passing(128, 0.45),
		report.AtLeast("128 pipelined: million replies per second", 3, scaled(cell(128).point.Each(report.Rate), 1e-6)),
	)
	return nil
}

// quick is the part of pipelined that takes less than a minute.
func (s *Suite) quick(ctx context.Context) error {
	var started servers
	defer started.stop()
	contestants, err := s.cellAndSet(ctx, &started)
	if err != nil {
		return err
	}
	if s.have(peer.Floor) {
		floor, err := started.add(s.Kit.StartFloor(ctx))
		if err != nil {
			return err
		}
		contestants = append(contestants, contestant{peer.Floor, floor, peer.Throttle()})
	}
	lanes, err := s.race(ctx, "pipelined", contestants)
	if err != nil {
		return err
	}
	for _, goal := range []struct {
		depth int
		most  float64
	}{{1, 0.95}, {16, 0.65}, {128, 0.45}} {
		s.goal(ratio(fmt.Sprintf("%d pipelined: CPU per request, by that of SET", goal.depth), goal.most,
			lanes[peer.Cellserver][goal.depth], lanes[set][goal.depth], report.CPU))
	}
	return nil
}

// have reports whether a peer can be started, and records in the results if not.
func (s *Suite) have(name string) bool {
	if why, missing := s.Kit.Missing[name]; missing {
		s.skip("%s: %s", name, why)
		return false
	}
	return true
}

func (s *Suite) cellAndSet(ctx context.Context, started *servers) ([]contestant, error) {
	cell, err := started.add(s.Kit.StartCellserver(ctx))
	if err != nil {
		return nil, err
	}
	redis, err := started.add(s.Kit.StartRedis(ctx))
	if err != nil {
		return nil, err
	}
	return []contestant{{peer.Cellserver, cell, peer.Throttle()}, {set, redis, peer.Set()}}, nil
}

// contestants starts every available peer, each in its own process.
func (s *Suite) contestants(ctx context.Context, started *servers) ([]contestant, error) {
	all, err := s.cellAndSet(ctx, started)
	if err != nil {
		return nil, err
	}
	all = append(all, contestant{allPass, all[0].server, peer.ThrottlePass()})
	for _, one := range []struct {
		name    string
		prepare func(context.Context, *peer.Server) (load.Command, error)
	}{{lua, peer.LuaFunnel}, {redisRate, peer.RedisRate}} {
		redis, err := started.add(s.Kit.StartRedis(ctx))
		if err != nil {
			return nil, err
		}
		command, err := one.prepare(ctx, redis)
		if err != nil {
			return nil, err
		}
		all = append(all, contestant{one.name, redis, command})
	}
	for _, one := range []struct {
		name    string
		start   func(context.Context) (*peer.Server, error)
		command load.Command
	}{
		{peer.RedisCell, s.Kit.StartRedisCell, peer.Throttle()},
		{peer.Throttlecrab, s.Kit.StartThrottlecrab, peer.CrabThrottle()},
		{peer.Floor, s.Kit.StartFloor, peer.Throttle()},
	} {
		if !s.have(one.name) {
			continue
		}
		server, err := started.add(one.start(ctx))
		if err != nil {
			return nil, err
		}
		all = append(all, contestant{one.name, server, one.command})
	}
	return all, nil
}

// race measures all contestants at each pipeline depth, and returns their lanes by name and depth.
func (s *Suite) race(ctx context.Context, scenario string, all []contestant) (map[string]map[int]*lane, error) {
	return s.raceAt(ctx, scenario, []int{1, 16, 128}, usualKeys, all)
}

// raceAt is race at other depths, and with as many keys.
func (s *Suite) raceAt(ctx context.Context, scenario string, depths []int, keys int, all []contestant) (map[string]map[int]*lane, error) {
	lanes := map[string]map[int]*lane{}
	for _, c := range all {
		lanes[c.name] = map[int]*lane{}
		s.Progress(scenario + ": filling " + c.name)
		if err := fill(ctx, s.config(c.server, c.command), 0, keys); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	var order []*lane
	for _, depth := range depths {
		for _, c := range all {
			config := s.config(c.server, c.command)
			config.Pipeline, config.Keys.Count = depth, keys
			l := s.lane(scenario, c.name, c.server, config, load.Plan{Duration: s.Window})
			lanes[c.name][depth] = l
			order = append(order, l)
		}
	}
	return lanes, s.interleave(ctx, order)
}

func scaled(values []float64, by float64) []float64 {
	for i := range values {
		values[i] *= by
	}
	return values
}
