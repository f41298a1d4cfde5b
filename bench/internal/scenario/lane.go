package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

// lane is one load on one server, and the point that receives its samples.
type lane struct {
	server *peer.Server
	config load.Config
	plan   load.Plan
	point  *report.Point
	rest   time.Duration // after the plan, with the server's CPU time counted
	// limiter is asked by the server, and its CPU time counted by itself; may be nil.
	limiter *peer.Server
	// beside runs beside the plan until its context ends; may be nil.
	beside func(ctx context.Context, server *peer.Server) error
}

// lane returns a new lane, with its point in the results.
func (s *Suite) lane(scenario, name string, server *peer.Server, config load.Config, plan load.Plan) *lane {
	point := &report.Point{
		Scenario: scenario, Peer: name, Command: config.Command.String(), Conns: config.Conns,
		Pipeline: config.Pipeline, Keys: config.Keys.Count, Dist: config.Keys.Dist, Rate: plan.Rate,
	}
	s.Results.Points = append(s.Results.Points, point)
	return &lane{server: server, config: config, plan: plan, point: point}
}

// settle is the pause between two measurements, so that one does not affect the next.
const settle = 30 * time.Millisecond

// interleave measures the lanes in turn, once per round. Each round begins with another lane, so that the
// order changes. The first round is discarded.
func (s *Suite) interleave(ctx context.Context, lanes []*lane) error {
	for round := range s.Rounds + 1 {
		for i := range lanes {
			l := lanes[(i+round)%len(lanes)]
			s.Progress(fmt.Sprintf("%s: round %d of %d: %s, %d connections, %d pipelined",
				l.point.Scenario, round, s.Rounds, l.point.Peer, l.config.Conns, l.config.Pipeline))
			sample, err := l.measure(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", l.point.Peer, errors.Join(err, l.server.Err()))
			}
			if round > 0 {
				l.point.Rounds = append(l.point.Rounds, sample)
			}
		}
	}
	return nil
}

// measure connects, runs the plan once and reads the server's CPU time and memory.
func (l *lane) measure(ctx context.Context) (report.Sample, error) {
	g, err := load.Open(l.config)
	if err != nil {
		return report.Sample{}, err
	}
	defer g.Close()
	time.Sleep(settle)
	return l.measureOn(ctx, g)
}

func (l *lane) measureOn(ctx context.Context, g *load.Generator) (report.Sample, error) {
	before, err := l.cpu()
	if err != nil {
		return report.Sample{}, err
	}
	r, err := l.run(ctx, g)
	if err != nil {
		return report.Sample{}, err
	}
	if err := sleep(ctx, l.rest); err != nil {
		return report.Sample{}, err
	}
	after, err := l.cpu()
	if err != nil {
		return report.Sample{}, err
	}
	if r.Requests == 0 {
		return report.Sample{}, errNoRequests
	}
	rss, err := l.server.RSS()
	if err != nil {
		return report.Sample{}, err
	}
	at := func(percent float64) float64 { return float64(r.Latency.ValueAtQuantile(percent)) }
	return report.Sample{
		Rate:     r.Rate(),
		CPUNs:    float64(after[0]-before[0]) / float64(r.Requests),
		P50Ns:    at(50),
		P99Ns:    at(99),
		P999Ns:   at(99.9),
		LagP99Ns: float64(r.Lag.ValueAtQuantile(99)),
		Limited:  float64(r.Limited) / float64(r.Requests),
		RSS:      float64(rss),

		LimiterCPUNs: float64(after[1]-before[1]) / float64(r.Requests),
	}, nil
}

// cpu returns the CPU time of the server, and that of its limiter.
func (l *lane) cpu() (all [2]time.Duration, err error) {
	if all[0], err = l.server.CPU(); err == nil && l.limiter != nil {
		all[1], err = l.limiter.CPU()
	}
	return all, err
}

// run runs the plan, and beside it what else the lane has.
func (l *lane) run(ctx context.Context, g *load.Generator) (*load.Result, error) {
	if l.beside == nil {
		return g.Run(ctx, l.plan)
	}
	besideCtx, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.beside(besideCtx, l.server) }()
	r, err := g.Run(ctx, l.plan)
	end()
	return r, errors.Join(err, <-ended)
}

// fill requests each key once, in order, with the load's command, or once with each of two.
func fill(ctx context.Context, config load.Config, from, keys int) error {
	// Few connections and whole batches, so that hardly any key is requested more than once.
	config.Conns, config.Pipeline = 4, 100
	config.Threads = 1
	config.Keys = load.Keys{Dist: load.Sequential, From: from, Count: keys}
	g, err := load.Open(config)
	if err != nil {
		return err
	}
	defer g.Close()
	_, err = g.Run(ctx, load.Plan{Requests: keys * config.Command.Turns()})
	return err
}
