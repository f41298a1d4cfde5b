package scenario

import (
	"context"
	"fmt"
	"time"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

const fewKeys = 10_000

// tails measures how many keys affect latency, at half of the rate that the server reaches with few.
func (s *Suite) tails(ctx context.Context) error {
	const name = "tails"
	var started servers
	defer started.stop()
	few, err := s.filled(ctx, &started, fewKeys)
	if err != nil {
		return err
	}
	many, err := s.filled(ctx, &started, manyKeys)
	if err != nil {
		return err
	}
	redis, err := started.add(s.Kit.StartRedis(ctx))
	if err != nil {
		return err
	}
	var order []*lane
	pairs := map[int][2]*lane{}
	for _, depth := range []int{1, 16} {
		rate, err := s.halfRate(ctx, depth, contestant{peer.Cellserver, few, peer.ThrottleLong(usualKeyBytes)}, contestant{ping, redis, peer.Ping()})
		if err != nil {
			return err
		}
		at := func(peerName string, server *peer.Server, command load.Command, keys int) *lane {
			config := s.config(server, command)
			config.Pipeline, config.Keys.Count = depth, keys
			l := s.lane(name, peerName, server, config, load.Plan{Duration: 2 * s.Window, Rate: rate})
			order = append(order, l)
			return l
		}
		pairs[depth] = [2]*lane{
			at(peer.Cellserver, few, peer.ThrottleLong(usualKeyBytes), fewKeys),
			at(peer.Cellserver, many, peer.ThrottleLong(usualKeyBytes), manyKeys),
		}
		at(ping, redis, peer.Ping(), 1)
	}
	if err := s.interleave(ctx, order); err != nil {
		return err
	}
	for _, depth := range []int{1, 16} {
		s.goal(ratio(fmt.Sprintf("%d pipelined, half load: p99.9 with 10 million keys, by that with 10 thousand", depth), 1.5,
			pairs[depth][1], pairs[depth][0], report.P999))
	}
	return nil
}

// filled starts a cellserver and fills it with live keys.
func (s *Suite) filled(ctx context.Context, started *servers, keys int) (*peer.Server, error) {
	server, err := started.add(s.Kit.StartCellserver(ctx))
	if err != nil {
		return nil, err
	}
	s.Progress(fmt.Sprintf("tails: filling with %d keys", keys))
	return server, fill(ctx, s.config(server, peer.ThrottleLong(usualKeyBytes)), 0, keys)
}

// halfRate returns half of the rate that the slowest contestant reaches in a closed loop.
func (s *Suite) halfRate(ctx context.Context, depth int, all ...contestant) (float64, error) {
	var least float64
	for _, c := range all {
		s.Progress(fmt.Sprintf("looking for the rate of %s, %d pipelined", c.name, depth))
		config := s.config(c.server, c.command)
		config.Pipeline, config.Keys.Count = depth, fewKeys
		l := &lane{server: c.server, config: config, plan: load.Plan{Duration: max(s.Window, time.Second)}}
		sample, err := l.measure(ctx)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", c.name, err)
		}
		if least == 0 || sample.Rate < least {
			least = sample.Rate
		}
	}
	return least / 2, nil
}

// fixedRates measures latency at rates that do not depend on the server.
func (s *Suite) fixedRates(ctx context.Context) error {
	var started servers
	defer started.stop()
	contestants, err := s.cellAndSet(ctx, &started)
	if err != nil {
		return err
	}
	most, err := s.halfRate(ctx, 1, contestants...)
	if err != nil {
		return err
	}
	var order []*lane
	for _, rate := range []float64{1000, 2000, 5000, 10_000, 20_000, 40_000, 80_000} {
		if rate > most*1.5 {
			s.skip("fixed-rate: %.0f/s is near what this machine does at most, %.0f/s", rate, 2*most)
			continue
		}
		for _, c := range contestants {
			order = append(order, s.lane("fixed-rate", c.name, c.server, s.config(c.server, c.command),
				load.Plan{Duration: s.Window, Rate: rate}))
		}
	}
	return s.interleave(ctx, order)
}
