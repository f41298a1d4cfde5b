package scenario

import (
	"context"
	"fmt"
	"time"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

const (
	persistKeys = 200_000
	// persistRest exceeds the interval at which changes are written.
	persistRest = 1200 * time.Millisecond
)

// keeper starts a cellserver with a new data directory.
func (s *Suite) keeper(ctx context.Context, started *servers, flags ...string) (*peer.Server, error) {
	dir, err := s.Kit.DataDir()
	if err != nil {
		return nil, err
	}
	return started.add(s.Kit.StartCellserver(ctx, append([]string{"--data-dir", dir}, flags...)...))
}

// persisted is one load on a server with a data directory and on two without. The difference of the latter
// shows the machine's noise.
type persisted struct {
	text                   string
	most                   float64
	with, without, control *lane
}

// persist compares what a request costs with a data directory and without.
func (s *Suite) persist(ctx context.Context) error {
	var started servers
	defer started.stop()
	with, err := s.keeper(ctx, &started)
	if err != nil {
		return err
	}
	without, control, err := s.plainTwo(ctx, &started)
	if err != nil {
		return err
	}
	all := s.persistLanes(with, without, control)
	var order []*lane
	for _, p := range all {
		order = append(order, p.with, p.without, p.control)
	}
	if err := s.fillAll(ctx, order); err != nil {
		return err
	}
	if err := s.interleave(ctx, order); err != nil {
		return err
	}
	for _, p := range all {
		s.goal(
			ratio(p.text+": CPU per request with a data directory, by that without", p.most, p.with, p.without, report.CPU),
			ratio(p.text+": CPU per request of the control, by that without", p.most, p.control, p.without, report.CPU),
		)
	}
	return nil
}

// plainTwo starts two servers without anything, the second of which is the control.
func (s *Suite) plainTwo(ctx context.Context, started *servers) (without, control *peer.Server, err error) {
	if without, err = started.add(s.Kit.StartCellserver(ctx)); err != nil {
		return nil, nil, err
	}
	control, err = started.add(s.Kit.StartCellserver(ctx))
	return without, control, err
}

func (s *Suite) persistLanes(with, without, control *peer.Server) (all []persisted) {
	for _, p := range []struct {
		text    string
		command load.Command
	}{{"", peer.Throttle()}, {", all pass", peer.ThrottlePass()}} {
		for _, goal := range []struct {
			depth int
			most  float64
		}{{1, 1.05}, {128, 1.15}} {
			all = append(all, persisted{
				text:    fmt.Sprintf("%d pipelined%s", goal.depth, p.text),
				most:    goal.most,
				with:    s.persistLane(contestant{"with a data directory" + p.text, with, p.command}, goal.depth),
				without: s.persistLane(contestant{"without" + p.text, without, p.command}, goal.depth),
				control: s.persistLane(contestant{"without, the control" + p.text, control, p.command}, goal.depth),
			})
		}
	}
	return all
}

func (s *Suite) persistLane(c contestant, depth int) *lane {
	config := s.config(c.server, c.command)
	config.Pipeline, config.Keys.Count = depth, persistKeys
	l := s.lane("persist", c.name, c.server, config, load.Plan{Duration: 2 * s.Window})
	l.rest = persistRest
	return l
}

// fillAll creates the keys of all lanes.
func (s *Suite) fillAll(ctx context.Context, lanes []*lane) error {
	for _, l := range lanes {
		s.Progress(l.point.Scenario + ": filling " + l.point.Peer)
		if err := fill(ctx, l.config, 0, l.config.Keys.Count); err != nil {
			return fmt.Errorf("%s: %w", l.point.Peer, err)
		}
	}
	return nil
}

// syncEachReply compares the rates of decisions that are on disk before their replies.
func (s *Suite) syncEachReply(ctx context.Context) error {
	var started servers
	defer started.stop()
	cell, err := s.keeper(ctx, &started, "--fsync-interval", "0")
	if err != nil {
		return err
	}
	redis, err := s.syncedRedis(ctx, &started)
	if err != nil {
		return err
	}
	var order []*lane
	lanes := map[int][2]*lane{}
	for _, conns := range []int{usualConns, 1000} {
		at := func(c contestant) *lane {
			config := s.config(c.server, c.command)
			config.Conns = conns
			l := s.lane("sync", c.name, c.server, config, load.Plan{Duration: 2 * s.Window})
			order = append(order, l)
			return l
		}
		lanes[conns] = [2]*lane{at(contestant{peer.Cellserver, cell, peer.ThrottlePass()}), at(redis)}
	}
	if err := s.interleave(ctx, order); err != nil {
		return err
	}
	for _, conns := range []int{usualConns, 1000} {
		s.goal(report.AtLeast(fmt.Sprintf("%d connections, a sync before each reply: rate, by that of %s", conns, redis.name), 1,
			report.Ratio(lanes[conns][0].point, lanes[conns][1].point, report.Rate)))
	}
	return nil
}

// syncedRedis returns redis-cell, or SET without it.
func (s *Suite) syncedRedis(ctx context.Context, started *servers) (contestant, error) {
	dir, err := s.Kit.DataDir()
	if err != nil {
		return contestant{}, err
	}
	if s.have(peer.RedisCell) {
		server, err := started.add(s.Kit.StartRedisCellSynced(ctx, dir))
		return contestant{peer.RedisCell, server, peer.ThrottlePass()}, err
	}
	server, err := started.add(s.Kit.StartRedisSynced(ctx, dir))
	return contestant{set, server, peer.Set()}, err
}
