package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

// remoteLane is one load on a cluster, directly or through a server.
type remoteLane struct {
	cluster *peer.Cluster
	plan    load.Plan
	point   *report.Point
	// open connects, and returns functions to run a plan and to hang up.
	open func() (run func(context.Context, load.Plan) (*load.Result, error), hangUp func(), err error)
}

// remoteLane returns a new lane, with its point in the results.
func (s *Suite) remoteLane(cluster *peer.Cluster, name string, c remoteCase) *remoteLane {
	point := &report.Point{
		Scenario: "remote", Peer: name, Command: peer.ThrottleBy(c.limit, "").String(), Conns: remoteCallers, Pipeline: 1,
		Keys: c.keys.Count, Dist: c.keys.Dist,
	}
	s.Results.Points = append(s.Results.Points, point)
	return &remoteLane{cluster: cluster, point: point}
}

// openGenerator uses a generator, which leaves the servers more CPU time.
func (l *remoteLane) openGenerator(config load.Config) {
	l.open = func() (func(context.Context, load.Plan) (*load.Result, error), func(), error) {
		g, err := load.Open(config)
		if err != nil {
			return nil, nil, err
		}
		return g.Run, g.Close, nil
	}
}

// openCallers uses goroutines.
func (l *remoteLane) openCallers(connect func() (load.Call, func()), keys load.Keys) {
	l.open = func() (func(context.Context, load.Plan) (*load.Result, error), func(), error) {
		call, hangUp := connect()
		return func(ctx context.Context, plan load.Plan) (*load.Result, error) {
			return load.RunCallers(ctx, slices.Repeat([]load.Call{call}, remoteCallers), keys, plan)
		}, hangUp, nil
	}
}

// interleaveRemote is interleave for lanes on a cluster.
func (s *Suite) interleaveRemote(ctx context.Context, lanes []*remoteLane) error {
	for round := range s.Rounds + 1 {
		for i := range lanes {
			l := lanes[(i+round)%len(lanes)]
			s.Progress(fmt.Sprintf("remote: round %d of %d: %s", round, s.Rounds, l.point.Peer))
			sample, err := l.measure(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", l.point.Peer, err)
			}
			if round > 0 {
				l.point.Rounds = append(l.point.Rounds, sample)
			}
		}
	}
	return nil
}

// measure runs the plan once and reads its cost to the Redis servers.
func (l *remoteLane) measure(ctx context.Context) (report.Sample, error) {
	run, hangUp, err := l.open()
	if err != nil {
		return report.Sample{}, err
	}
	defer hangUp()
	// Connections are made, scripts loaded, and the rates of keys become known.
	if _, err := run(ctx, load.Plan{Duration: l.plan.Duration / 3, Rate: l.plan.Rate}); err != nil {
		return report.Sample{}, err
	}
	time.Sleep(settle)
	// Reading scripts' figures costs CPU time and is excluded.
	scripts, err := l.cluster.ScriptCalls(ctx)
	if err != nil {
		return report.Sample{}, err
	}
	before, err := l.cluster.CPU()
	if err != nil {
		return report.Sample{}, err
	}
	r, err := run(ctx, l.plan)
	if err != nil {
		return report.Sample{}, err
	}
	after, err := l.cluster.CPU()
	if err != nil {
		return report.Sample{}, err
	}
	scriptsAfter, err := l.cluster.ScriptCalls(ctx)
	if err != nil {
		return report.Sample{}, err
	}
	if r.Requests == 0 {
		return report.Sample{}, errNoRequests
	}
	decisions := float64(r.Requests)
	at := func(percent float64) float64 { return float64(r.Latency.ValueAtQuantile(percent)) }
	return report.Sample{
		Rate:     r.Rate(),
		CPUNs:    float64(after-before) / decisions,
		Scripts:  float64(scriptsAfter-scripts) / decisions,
		P50Ns:    at(50),
		P99Ns:    at(99),
		P999Ns:   at(99.9),
		LagP99Ns: float64(r.Lag.ValueAtQuantile(99)),
		Limited:  float64(r.Limited) / decisions,
	}, nil
}
