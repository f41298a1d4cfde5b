package scenario

import (
	"context"
	"fmt"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

const (
	kindsKeys     = 10_000
	kindsPipeline = 128
	windowRecords = 100 // of the exact sliding window
)

// kind is a limiter compared with CL.THROTTLE, by calls that each change their key and have numbers as long.
type kind struct {
	name  string
	call  string
	fill  string  // "" for the call
	fills int     // how often each key is filled
	most  float64 // times CL.THROTTLE's CPU time; 0 for no goal
}

func kinds() []kind {
	const key = "k:" + load.KeyMark
	return []kind{
		{name: "funnel", call: "CL.THROTTLE " + key + " 1000000 1000000 60 1"},
		{name: "funnel in milliseconds", call: "CL.PTHROTTLE " + key + " 1000000 1000000 60000 1", most: 1.3},
		{name: "token bucket", call: "CL.TOKENBUCKET " + key + " 1000000 1000000 60 1", most: 1.3},
		{name: "fixed window", call: "CL.FIXEDWINDOW " + key + " 1000000 3600 1", most: 1.3},
		{name: "sliding window, 100 records", fills: windowRecords, most: 2,
			call: fmt.Sprintf("CL.SLIDINGWINDOW %s %d 3600 1 COUNTDENIED", key, windowRecords)},
		{name: "approximate window", call: "CL.SLIDINGWINDOW " + key + " 1000000 3600 1 APPROX", most: 1.3},
		{name: "bucket", call: "CL.BUCKET TAKE " + key + " 1000000 1", fill: "CL.BUCKET RESET " + key + " 1000000", most: 1.3},
		{name: "named limit of two windows", call: "CL.CHECK limit " + key, most: 1.3},
		{name: "two funnels at once", call: "CL.MTHROTTLE 2 " + key + " 1000000 1000000 60 1 b" + key + " 1000000 1000000 60 1"},
		{name: "lease", call: "CL.CONCURRENCY ACQUIRE " + key + " 100 3600000 token"},
	}
}

// kinds compares what a request costs by the kind of its limiter, each in a server of its own.
func (s *Suite) kinds(ctx context.Context) error {
	var started servers
	defer started.stop()
	var all []*lane
	for _, k := range kinds() {
		server, err := started.add(s.startCell(ctx))
		if err != nil {
			return err
		}
		l, err := s.kindLane(ctx, server, k)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		all = append(all, l)
	}
	if err := s.interleave(ctx, all); err != nil {
		return err
	}
	for i, k := range kinds() {
		if k.most > 0 {
			s.goal(ratio(k.name+": CPU per request, by CL.THROTTLE's", k.most, all[i], all[0], report.CPU))
		}
	}
	return nil
}

// kindLane fills a server, and returns the lane on it.
func (s *Suite) kindLane(ctx context.Context, server *peer.Server, k kind) (*lane, error) {
	call, err := load.ParseCommand(k.call)
	if err != nil {
		return nil, err
	}
	filling := call
	if k.fill != "" {
		if filling, err = load.ParseCommand(k.fill); err != nil {
			return nil, err
		}
	}
	// No window drains between two calls of a key, so its payload changes like the other kinds'.
	limit, err := load.ParseCommand("CL.LIMIT SET limit 1000000 1000 60 100000000 1000 3600")
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, s.config(server, limit), 0, 1); err != nil {
		return nil, err
	}
	for range max(k.fills, 1) {
		if err := fill(ctx, s.config(server, filling), 0, kindsKeys); err != nil {
			return nil, err
		}
	}
	config := s.config(server, call)
	config.Keys.Count, config.Pipeline = kindsKeys, kindsPipeline
	return s.lane("kinds", k.name, server, config, load.Plan{Duration: s.Window}), nil
}
