package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

const (
	remoteCallers = 1000
	remoteKeys    = 10_000
	remoteSkew    = 1.2
	// remoteTimeout is long, as an answer by policy would fail the run.
	remoteTimeout = "10s"
)

// remoteCase is a load that cellserver and redis_rate put on the same Redis cluster.
type remoteCase struct {
	name    string
	keys    load.Keys
	limit   redis_rate.Limit
	mostCPU float64 // of the Redis servers' CPU time per decision, by redis_rate's; 0 for no goal
	mostRun float64 // of the scripts that they run per decision, by redis_rate's; 0 for no goal
}

func remoteCases() []remoteCase {
	uniform := load.Keys{Dist: load.Uniform, Count: remoteKeys}
	skewed := load.Keys{Dist: load.Zipf, Count: remoteKeys, Skew: remoteSkew}
	hot := load.Keys{Dist: load.Hot, Count: 1}
	return []remoteCase{
		{name: "uniform keys, all allowed", keys: uniform, limit: peer.LimitThatAllows(), mostCPU: 0.65},
		{name: "zipf 1.2", keys: skewed, limit: peer.LimitThatDenies(), mostCPU: 1.0 / 3, mostRun: 1.0 / 3},
		// A thousand keys drawn by this law have more than 400 different ones, so joining cannot use fewer
		// scripts.
		{name: "zipf 1.2, all allowed", keys: skewed, limit: peer.LimitThatAllows()},
		{name: "a denied key", keys: hot, limit: peer.LimitThatDenies(), mostCPU: 1.0 / 50},
		{name: "a hot key that drains at once", keys: hot, limit: peer.LimitThatDrains()},
		{name: "a hot key, all allowed", keys: hot, limit: peer.LimitThatAllows(), mostRun: 1.0 / 10},
	}
}

// remote measures the cost of a decision to the Redis servers behind cellserver, and its latency, compared
// with redis_rate.
func (s *Suite) remote(ctx context.Context) error {
	if !s.Kit.HasFlag(ctx, "store") {
		s.skip("remote: this cellserver has no --store")
		return nil
	}
	cluster, err := s.Kit.StartCluster(ctx)
	if err != nil {
		return err
	}
	defer cluster.Stop()
	var started servers
	defer started.stop()
	server, err := started.add(s.Kit.StartCellserver(ctx, "--store", cluster.URL(), "--store-timeout", remoteTimeout))
	if err != nil {
		return err
	}
	memory, err := started.add(s.Kit.StartCellserver(ctx))
	if err != nil {
		return err
	}
	if err := s.remoteCosts(ctx, cluster, server); err != nil {
		return err
	}
	return s.remoteTails(ctx, cluster, server, memory)
}

// remoteCosts compares the cost of a decision to the Redis servers in a closed loop.
func (s *Suite) remoteCosts(ctx context.Context, cluster *peer.Cluster, server *peer.Server) error {
	var all []*remoteLane
	for i, c := range remoteCases() {
		prefix := fmt.Sprintf("r%d:", i)
		ours := s.remoteLane(cluster, peer.Cellserver+", "+c.name, c)
		ours.openGenerator(load.Config{
			Addr: server.Addr, Command: peer.ThrottleBy(c.limit, prefix), Conns: remoteCallers, Pipeline: 1, Threads: s.Threads, Keys: c.keys,
		})
		theirs := s.remoteLane(cluster, peer.RedisRateLibrary+", "+c.name, c)
		theirs.openCallers(func() (load.Call, func()) { return cluster.RedisRate(c.limit, prefix, remoteCallers) }, c.keys)
		all = append(all, ours, theirs)
	}
	for _, l := range all {
		l.plan = load.Plan{Duration: s.Window}
	}
	if err := s.interleaveRemote(ctx, all); err != nil {
		return err
	}
	for i, c := range remoteCases() {
		ours, theirs := all[2*i].point, all[2*i+1].point
		if c.mostCPU > 0 {
			s.goal(report.AtMost(c.name+": CPU of the Redis servers per decision, by redis_rate's", c.mostCPU, report.Ratio(ours, theirs, report.CPU)))
		}
		if c.mostRun > 0 {
			s.goal(report.AtMost(c.name+": scripts per decision, by redis_rate's", c.mostRun, report.Ratio(ours, theirs, report.Scripts)))
		}
	}
	return nil
}

// remoteTails compares latencies at half of the slower one's rate, from the same number of goroutines.
func (s *Suite) remoteTails(ctx context.Context, cluster *peer.Cluster, server, memory *peer.Server) error {
	c := remoteCase{keys: load.Keys{Dist: load.Uniform, Count: remoteKeys}, limit: peer.LimitThatAllows()}
	const prefix = "tails:"
	lanes := map[string]*remoteLane{}
	var order []*remoteLane
	for _, contestant := range []struct {
		name string
		open func() (load.Call, func())
	}{
		{peer.Cellserver, func() (load.Call, func()) { return server.Caller(c.limit, prefix, remoteCallers) }},
		{peer.RedisRateLibrary, func() (load.Call, func()) { return cluster.RedisRate(c.limit, prefix, remoteCallers) }},
		{peer.Cellserver + ", memory", func() (load.Call, func()) { return memory.Caller(c.limit, prefix, remoteCallers) }},
	} {
		l := s.remoteLane(cluster, contestant.name+", half load", c)
		l.openCallers(contestant.open, c.keys)
		lanes[contestant.name] = l
		order = append(order, l)
	}
	ours, theirs, near := lanes[peer.Cellserver], lanes[peer.RedisRateLibrary], lanes[peer.Cellserver+", memory"]
	rate, err := s.halfRemoteRate(ctx, ours, theirs)
	if err != nil {
		return err
	}
	for _, l := range order {
		l.plan = load.Plan{Duration: 2 * s.Window, Rate: rate}
		l.point.Rate = rate
	}
	if err := s.interleaveRemote(ctx, order); err != nil {
		return err
	}
	ratios := make([]float64, s.Rounds)
	for i := range ratios {
		ratios[i] = ours.point.Rounds[i].P99Ns / (1.2*theirs.point.Rounds[i].P99Ns + near.point.Rounds[i].P99Ns)
	}
	s.goal(report.AtMost("half load: p99, by 1.2 times redis_rate's and the memory store's", 1, ratios))
	return nil
}

// halfRemoteRate returns half of the rate that the slowest lane reaches in a closed loop.
func (s *Suite) halfRemoteRate(ctx context.Context, lanes ...*remoteLane) (float64, error) {
	var least float64
	for _, l := range lanes {
		s.Progress("remote: looking for the rate of " + l.point.Peer)
		l.plan = load.Plan{Duration: max(s.Window, time.Second)}
		sample, err := l.measure(ctx)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", l.point.Peer, err)
		}
		if least == 0 || sample.Rate < least {
			least = sample.Rate
		}
	}
	return least / 2, nil
}
