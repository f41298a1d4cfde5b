package scenario

import (
	"context"
	"fmt"
	"time"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

// replicaRest exceeds the interval of the rounds in which a leader sends changes.
const replicaRest = 200 * time.Millisecond

// replica compares what a request costs a leader with a replica, and one without. Every call changes its key.
func (s *Suite) replica(ctx context.Context) error {
	var started servers
	defer started.stop()
	leader, err := started.add(s.Kit.StartCellserver(ctx))
	if err != nil {
		return err
	}
	alone, control, err := s.plainTwo(ctx, &started)
	if err != nil {
		return err
	}
	if _, err := started.add(s.Kit.StartCellserver(ctx, "--replica-of", leader.Addr.String())); err != nil {
		return err
	}
	all := s.replicaPairs(leader, alone, control)
	var order []*lane
	for _, p := range all {
		order = append(order, p.with, p.without, p.control)
	}
	if err := s.fillAll(ctx, order[:3]); err != nil {
		return err
	}
	if err := s.interleave(ctx, order); err != nil {
		return err
	}
	for _, p := range all {
		s.goal(
			ratio(fmt.Sprintf("%d pipelined: CPU per request of a leader with a replica, by that of one without", p.depth), p.most, p.with, p.without, report.CPU),
			ratio(fmt.Sprintf("%d pipelined: CPU per request of the control, by that of one without", p.depth), p.most, p.control, p.without, report.CPU),
		)
	}
	return nil
}

// replicaPair is one load on a leader with a replica, and on two without.
type replicaPair struct {
	depth                  int
	most                   float64
	with, without, control *lane
}

func (s *Suite) replicaPairs(leader, alone, control *peer.Server) (all []replicaPair) {
	for _, goal := range []struct {
		depth int
		most  float64
	}{{1, 1.10}, {16, 1.25}, {128, 1.25}} {
		all = append(all, replicaPair{
			depth: goal.depth, most: goal.most,
			with:    s.replicaLane("with a replica", leader, goal.depth),
			without: s.replicaLane("without", alone, goal.depth),
			control: s.replicaLane("without, the control", control, goal.depth),
		})
	}
	return all
}

func (s *Suite) replicaLane(name string, server *peer.Server, depth int) *lane {
	config := s.config(server, peer.ThrottlePass())
	config.Pipeline, config.Keys.Count = depth, persistKeys
	l := s.lane("replica", name, server, config, load.Plan{Duration: s.Window})
	l.rest = replicaRest
	return l
}
