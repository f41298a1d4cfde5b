package scenario

import (
	"context"
	"fmt"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

// hotSlack allows for the noise of two values that are almost equal.
const hotSlack = 0.05

// hot measures the cost of requests for one key, or mostly for a few, and how the server uses threads.
func (s *Suite) hot(ctx context.Context) error {
	const name = "hot"
	var started servers
	defer started.stop()
	threads, err := s.byThreads(ctx, &started)
	if err != nil {
		return err
	}
	var order []*lane
	type goal struct{ hot, uniform *lane }
	var goals []goal
	for _, depth := range []int{1, 128} {
		for _, one := range threads {
			byDist := map[string]*lane{}
			for _, dist := range []string{load.Uniform, load.Zipf, load.Hot} {
				config := s.config(one.server, one.command)
				config.Pipeline, config.Keys.Dist = depth, dist
				byDist[dist] = s.lane(name, one.name, one.server, config, load.Plan{Duration: s.Window})
				order = append(order, byDist[dist])
			}
			goals = append(goals, goal{byDist[load.Hot], byDist[load.Uniform]})
		}
	}
	if err := s.interleave(ctx, order); err != nil {
		return err
	}
	for _, g := range goals {
		goal := ratio(fmt.Sprintf("%s, %d pipelined: CPU per request with one hot key, by that with uniform keys",
			g.hot.point.Peer, g.hot.config.Pipeline), 1, g.hot, g.uniform, report.CPU)
		goal.Slack = hotSlack
		s.goal(goal)
	}
	return nil
}

// byThreads starts cellservers with one and with two I/O threads, or just one if it has no such flag.
func (s *Suite) byThreads(ctx context.Context, started *servers) ([]contestant, error) {
	const flag = "io-threads"
	// All calls are allowed, so that hot and uniform keys cause the same work.
	if !s.Kit.HasFlag(ctx, flag) {
		s.skip("--%s 1 compared with 2: this cellserver has no such flag", flag)
		server, err := started.add(s.Kit.StartCellserver(ctx))
		return []contestant{{peer.Cellserver, server, peer.ThrottlePass()}}, err
	}
	var all []contestant
	for _, n := range []string{"1", "2"} {
		server, err := started.add(s.Kit.StartCellserver(ctx, "--"+flag, n))
		if err != nil {
			return nil, err
		}
		all = append(all, contestant{peer.Cellserver + ", " + n + " I/O threads", server, peer.ThrottlePass()})
	}
	return all, nil
}
