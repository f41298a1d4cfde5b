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

// connections measures the cost of more clients, each with one request at a time.
func (s *Suite) connections(ctx context.Context) error {
	const name = "connections"
	var started servers
	defer started.stop()
	contestants, err := s.cellAndSet(ctx, &started)
	if err != nil {
		return err
	}
	var order []*lane
	byConns := map[int]*lane{}
	for _, conns := range []int{usualConns, 500, 5000} {
		for i, c := range contestants {
			config := s.config(c.server, c.command)
			config.Conns = conns
			l := s.lane(name, c.name, c.server, config, load.Plan{Duration: s.Window})
			if order = append(order, l); i == 0 {
				byConns[conns] = l
			}
		}
	}
	if err := s.interleave(ctx, order); err != nil {
		return err
	}
	for _, conns := range []int{500, 5000} {
		s.goal(ratio(fmt.Sprintf("%d connections: CPU per request, by that at 50", conns), 1.3,
			byConns[conns], byConns[usualConns], report.CPU))
	}
	return nil
}

const (
	idleConns = 10_000
	idleFor   = 2 * time.Second // after its request, until a connection counts as idle
)

// idle measures the memory of a connection that is idle after one request.
func (s *Suite) idle(ctx context.Context) error {
	check, err := peer.Check()
	if err != nil {
		return err
	}
	for _, one := range []struct {
		name    string
		start   func() (*peer.Server, error)
		command load.Command
		most    float64 // bytes; 0 for no goal
	}{
		{peer.Cellserver, func() (*peer.Server, error) { return s.Kit.StartCellserver(ctx) }, peer.Throttle(), 4096},
		{peer.Redis, func() (*peer.Server, error) { return s.Kit.StartRedis(ctx) }, peer.Set(), 0},
		{get, func() (*peer.Server, error) { return s.Kit.StartDoor(ctx, control.HTTP) }, check, 6000},
		{peer.EmptyHTTP, func() (*peer.Server, error) { return s.Kit.StartControl(ctx, control.HTTP) }, check, 0},
		{peer.EmptyFastHTTP, func() (*peer.Server, error) { return s.Kit.StartControl(ctx, control.FastHTTP) }, check, 0},
	} {
		s.Progress(fmt.Sprintf("idle: %s, %d connections", one.name, idleConns))
		bytes, err := s.idleBytes(ctx, one.start, one.command)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		if one.most > 0 {
			s.goal(report.AtMost(one.name+": bytes for each of 10,000 idle connections", one.most, []float64{bytes}))
		}
		s.Results.Points = append(s.Results.Points, &report.Point{
			Scenario: "idle", Peer: one.name, Command: one.command.String(), Conns: idleConns, Pipeline: 1,
			Rounds: []report.Sample{{RSS: bytes}},
		})
	}
	return nil
}

func (s *Suite) idleBytes(ctx context.Context, start func() (*peer.Server, error), command load.Command) (float64, error) {
	server, err := start()
	if err != nil {
		return 0, err
	}
	defer server.Stop()
	config := s.config(server, command)
	config.Keys = load.Keys{Dist: load.Hot, Count: 1}
	// A few requests first, so that memory that the server allocates once is not attributed to the
	// connections.
	if err := fill(ctx, config, 0, 1000); err != nil {
		return 0, err
	}
	before, err := server.RSS()
	if err != nil {
		return 0, err
	}
	config.Conns = idleConns
	g, err := load.Open(config)
	if err != nil {
		return 0, err
	}
	defer g.Close()
	if _, err := g.Run(ctx, load.Plan{Requests: idleConns}); err != nil {
		return 0, err
	}
	if err := sleep(ctx, idleFor); err != nil {
		return 0, err
	}
	after, err := server.RSS()
	return float64(after-before) / idleConns, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
