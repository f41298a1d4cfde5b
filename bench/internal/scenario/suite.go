// Package scenario compares the servers of a peer.Kit. Compared servers are measured in turn within each
// round, so that other load on the machine affects them alike. A Suite is for one goroutine.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

// Suite says how to measure, and receives the results.
type Suite struct {
	Kit     *peer.Kit
	Rounds  int           // that count, after a warm-up round
	Window  time.Duration // of one measurement in a round
	Threads int           // of the generator
	Slack   float64       // see report.Goal; goals may have additional slack
	// Limiter measures a limiter of package inprocess in a separate process.
	Limiter func(ctx context.Context, name string, keys int) (report.Limiter, error)
	// Progress is called with what is measured next.
	Progress func(step string)
	Results  *report.Results
}

// Scenario is a part of a run.
type Scenario struct {
	Name, Title string
	run         func(*Suite, context.Context) error
}

// Quick is the name of the scenario that replaces all others in a quick run.
const Quick = "quick"

// All returns the scenarios of a full run, in their order.
func All() []Scenario {
	return []Scenario{
		{"pipelined", "1, 16 and 128 pipelined, all peers", (*Suite).pipelined},
		{"connections", "50, 500 and 5,000 connections", (*Suite).connections},
		{"idle", "10,000 idle connections", (*Suite).idle},
		{"memory", "bytes per key over growth, by the length of keys", (*Suite).memory},
		{"churn", "keys that drain between two calls, and keys that last", (*Suite).churn},
		{"lengths", "short keys and long ones", (*Suite).lengths},
		{"kinds", "the limiters beside the funnel", (*Suite).kinds},
		{"limits", "named limits and quotas beside the funnel", (*Suite).limits},
		{"counters", "INCREX beside other counters", (*Suite).counters},
		{"budgets", "holds over several limits, beside checks", (*Suite).budgets},
		{"scripts", "limiters in Lua, compared with redis-server", (*Suite).scripts},
		{"doors", "HTTP and Envoy's rate limit service, compared with handlers that only answer", (*Suite).doors},
		{"nginx", "behind nginx's auth_request", (*Suite).behindNginx},
		{"tails", "10 million keys compared with 10 thousand, at half load", (*Suite).tails},
		{"hot", "one hot key, skewed keys, threads", (*Suite).hot},
		{"fixed-rate", "latency at fixed rates", (*Suite).fixedRates},
		{"persist", "with a data directory and without", (*Suite).persist},
		{"sync", "a sync before each reply, compared with Redis's", (*Suite).syncEachReply},
		{"snapshot", "during a snapshot of 10 million keys, at half load", (*Suite).snapshot},
		{"restore", "a start with 10 million keys", (*Suite).restore},
		{"replica", "a leader with a replica and one without", (*Suite).replica},
		{"remote", "in front of a Redis cluster, compared with redis_rate", (*Suite).remote},
		{"in-process", "limiters as libraries", (*Suite).inProcess},
	}
}

// Select returns the scenarios with these names, or all if there are none.
func Select(names []string) ([]Scenario, error) {
	if len(names) == 0 {
		return All(), nil
	}
	known := append(All(), Scenario{Quick, "cellserver compared with SET", (*Suite).quick})
	var selected []Scenario
	for _, name := range names {
		i := slices.IndexFunc(known, func(s Scenario) bool { return s.Name == name })
		if i < 0 {
			var all []string
			for _, s := range known {
				all = append(all, s.Name)
			}
			return nil, fmt.Errorf("scenario: unknown %q; choose from %s", name, strings.Join(all, ", "))
		}
		selected = append(selected, known[i])
	}
	return selected, nil
}

// Run measures the scenarios in turn.
func (s *Suite) Run(ctx context.Context, scenarios []Scenario) error {
	for _, scenario := range scenarios {
		before := len(s.Results.Goals)
		if err := scenario.run(s, ctx); err != nil {
			return fmt.Errorf("scenario: %s: %w", scenario.Name, err)
		}
		for i := range s.Results.Goals[before:] {
			goal := &s.Results.Goals[before+i]
			goal.Scenario, goal.Slack = scenario.Name, max(goal.Slack, s.Slack)
		}
	}
	return nil
}

func (s *Suite) skip(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if !slices.Contains(s.Results.Skipped, line) {
		s.Results.Skipped = append(s.Results.Skipped, line)
	}
}

func (s *Suite) goal(g ...report.Goal) { s.Results.Goals = append(s.Results.Goals, g...) }

// ratio adds a goal for a value of a divided by that of b, unless one of them is missing.
func ratio(text string, most float64, a, b *lane, value func(report.Sample) float64) report.Goal {
	if a == nil || b == nil {
		return report.Goal{Text: text, Bound: most, Why: "a peer is missing"}
	}
	return report.AtMost(text, most, report.Ratio(a.point, b.point, value))
}

// servers holds what a scenario has started, to stop it.
type servers struct{ all []*peer.Server }

func (s *servers) stop() {
	for _, server := range s.all {
		server.Stop()
	}
}

// add adds a started server, or returns the error.
func (s *servers) add(server *peer.Server, err error) (*peer.Server, error) {
	if err == nil {
		s.all = append(s.all, server)
	}
	return server, err
}

var errNoRequests = errors.New("no requests were answered")

// config returns the default load, which scenarios then change.
func (s *Suite) config(server *peer.Server, command load.Command) load.Config {
	return load.Config{
		Addr: server.Addr, Command: command, Conns: usualConns, Pipeline: 1, Threads: s.Threads,
		Keys: load.Keys{Dist: load.Uniform, Count: usualKeys},
	}
}

const (
	usualConns = 50
	usualKeys  = 100_000

	usualKeyBytes = 16
)
