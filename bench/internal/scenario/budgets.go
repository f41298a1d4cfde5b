package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

const (
	manyHolds = 100_000 // over holdKeys
	holdKeys  = 1000
	// holdsOfAKey leaves room for those of the traffic, of which each round may leave one: a key has 4,096.
	holdsOfAKey = 4080
	holdsAtOnce = 80 // divides both numbers of holds

	othersRate  = 10_000 // calls a second
	trafficRate = 1000   // of each: MRESERVE, MCOMMIT and CHECK
)

// budgetsFile has limits that deny no call: a name for each part of a customer, as in a call's three pairs.
const budgetsFile = `limits:
  user: {rules: [{algorithm: token_bucket, capacity: 1000000000, refill: 1000000000, period: 1d}]}
  team: {rules: [{algorithm: approximate_window, max_count: 1000000000000, period: 1d}]}
  org: {rules: [{algorithm: quota, max_count: 1000000000000, every: month, time_zone: Europe/Berlin}]}
  three:
    rules:
      - {algorithm: token_bucket, capacity: 1000000000, refill: 1000000000, period: 1d}
      - {algorithm: approximate_window, max_count: 1000000000000, period: 1d}
      - {algorithm: quota, max_count: 1000000000000, every: month, time_zone: Europe/Berlin}
`

// holding returns calls that hold units, and settle them with fewer.
func holding(pairs ...string) load.Command {
	reserve, commit := []string{"CL.MRESERVE", strconv.Itoa(len(pairs))}, []string{"CL.MCOMMIT", load.CallMark, strconv.Itoa(len(pairs))}
	for _, name := range pairs {
		reserve = append(reserve, name, "k:"+load.KeyMark, "1000")
		commit = append(commit, name, "k:"+load.KeyMark, "700")
	}
	reserve = append(reserve, "TTL", "60000", "ID", load.CallMark)
	return load.NewCommand(reserve...).LimitedBy('1').Then(load.NewCommand(commit...))
}

// checkingTwice returns two calls in turn, each of which charges as a hold does.
func checkingTwice() load.Command {
	check := load.NewCommand("CL.MCHECK", "3", "user", "k:"+load.KeyMark, "team", "k:"+load.KeyMark, "org", "k:"+load.KeyMark, "QUANTITY", "1000")
	return check.LimitedBy('1').Then(check)
}

// leftOpen returns a call that holds units for longer than a run takes.
func leftOpen(name string) load.Command {
	return load.NewCommand("CL.MRESERVE", "1", name, "k:"+load.KeyMark, "1000", "TTL", "24h", "ID", "open-"+load.CallMark).LimitedBy('1')
}

// budgets measures what CL.MRESERVE and CL.MCOMMIT cost, how open holds affect other clients, and how many
// bytes they take.
func (s *Suite) budgets(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "budgets")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "limits.yaml")
	if err := os.WriteFile(file, []byte(budgetsFile), 0o600); err != nil {
		return err
	}
	start := func(started *servers) (*peer.Server, error) {
		return started.add(s.Kit.StartCellserver(ctx, "--limits-file", file))
	}
	for _, measure := range []func(*Suite, context.Context, func(*servers) (*peer.Server, error)) error{
		(*Suite).budgetPairs, (*Suite).besideHolds, (*Suite).holdBytes,
	} {
		if err := measure(s, ctx, start); err != nil {
			return err
		}
	}
	return nil
}

// budgetPairs compares a hold and its settle with two checks of the same names.
func (s *Suite) budgetPairs(ctx context.Context, start func(*servers) (*peer.Server, error)) (err error) {
	const held, checked = "CL.MRESERVE, then CL.MCOMMIT", "CL.MCHECK twice"
	var started servers
	defer started.stop()
	all := []contestant{{name: held, command: holding("user", "team", "org")}, {name: checked, command: checkingTwice()}}
	for i := range all {
		if all[i].server, err = start(&started); err != nil {
			return err
		}
	}
	lanes, err := s.raceAt(ctx, "budgets", []int{1, 16}, usualKeys, all)
	if err != nil {
		return err
	}
	for _, depth := range []int{1, 16} {
		if err := unlimited(lanes[held][depth], lanes[checked][depth]); err != nil {
			return err
		}
		s.goal(ratio(fmt.Sprintf("%d pipelined, MRESERVE and MCOMMIT of three names: CPU, by that of two MCHECKs", depth), 1.5,
			lanes[held][depth], lanes[checked][depth], report.CPU))
	}
	return nil
}

// unlimited returns an error if a call was limited, and so did less than others.
func unlimited(all ...*lane) error {
	for _, l := range all {
		for _, sample := range l.point.Rounds {
			if sample.Limited > 0 {
				return fmt.Errorf("%s: calls were limited, which should not be", l.point.Peer)
			}
		}
	}
	return nil
}

// besideHolds compares the latency of other clients' calls with and without open holds, each beside the same
// traffic on the keys that have them.
func (s *Suite) besideHolds(ctx context.Context, start func(*servers) (*peer.Server, error)) error {
	var started servers
	defer started.stop()
	none, err := start(&started)
	if err != nil {
		return err
	}
	crowds := []struct {
		text, without string
		holds, keys   int
	}{
		{"100,000 holds over 1,000 keys", "no holds, calls to 1,000 keys", manyHolds, holdKeys},
		{"4,080 holds on one key", "no holds, calls to one key", holdsOfAKey, 1},
	}
	settled := holding("org") // for all, so that no id comes again in another round
	lanes := make([][2]*lane, len(crowds))
	var order []*lane
	for i, c := range crowds {
		server, err := start(&started)
		if err != nil {
			return err
		}
		s.Progress("budgets: filling with " + c.text)
		if err := s.hold(ctx, server, "org", c.holds, c.keys); err != nil {
			return err
		}
		lanes[i] = [2]*lane{s.othersLane(c.text, server, settled, c.keys), s.othersLane(c.without, none, settled, c.keys)}
		order = append(order, lanes[i][:]...)
	}
	if err := s.interleave(ctx, order); err != nil {
		return err
	}
	for i, c := range crowds {
		s.goal(ratio(c.text+": p99 of other clients, by that without", 1.5, lanes[i][0], lanes[i][1], report.P99))
	}
	return nil
}

// hold leaves holds open on some keys.
func (s *Suite) hold(ctx context.Context, server *peer.Server, name string, holds, keys int) error {
	config := s.config(server, leftOpen(name))
	config.Conns, config.Pipeline, config.Threads = 1, holdsAtOnce, 1
	config.Keys = load.Keys{Dist: load.Sequential, Count: keys}
	g, err := load.Open(config)
	if err != nil {
		return err
	}
	defer g.Close()
	r, err := g.Run(ctx, load.Plan{Requests: holds})
	if err == nil && (r.Requests != holds || r.Limited > 0) {
		err = fmt.Errorf("%d calls for %d holds, of which %d were limited", r.Requests, holds, r.Limited)
	}
	return err
}

// othersLane is a load of CL.THROTTLE beside traffic on some keys.
func (s *Suite) othersLane(name string, server *peer.Server, settled load.Command, keys int) *lane {
	l := s.lane("budgets-others", name, server, s.config(server, peer.ThrottlePass()), load.Plan{Duration: 2 * s.Window, Rate: othersRate})
	l.beside = func(ctx context.Context, server *peer.Server) error {
		checked := load.NewCommand("CL.CHECK", "org", "k:"+load.KeyMark)
		ended := make(chan error, 1)
		go func() { ended <- besideAt(ctx, s.config(server, checked), keys, trafficRate) }()
		err := besideAt(ctx, s.config(server, settled), keys, 2*trafficRate)
		return errors.Join(err, <-ended)
	}
	return l
}

// besideAt makes calls at a fixed rate until ctx ends.
func besideAt(ctx context.Context, config load.Config, keys int, rate float64) error {
	config.Conns, config.Threads, config.Keys.Count = 1, 1, keys
	g, err := load.Open(config)
	if err != nil {
		return err
	}
	defer g.Close()
	if _, err = g.Run(ctx, load.Plan{Duration: time.Hour, Rate: rate}); ctx.Err() != nil {
		return nil
	}
	return err
}

// holdBytes measures what open holds take, of keys that are there before.
func (s *Suite) holdBytes(ctx context.Context, start func(*servers) (*peer.Server, error)) error {
	for _, one := range []struct{ text, name string }{
		{"a token bucket", "user"}, {"an approximate window", "team"}, {"a quota", "org"}, {"these three as rules of a limit", "three"},
	} {
		s.Progress("budgets: bytes of holds on " + one.text)
		sample, err := s.holdSample(ctx, start, one.name)
		if err != nil {
			return err
		}
		s.Results.Points = append(s.Results.Points, &report.Point{
			Scenario: "budgets-bytes", Peer: one.text, Command: leftOpen(one.name).String(), Conns: 1, Pipeline: holdsAtOnce, Keys: holdKeys,
			Rounds: []report.Sample{sample},
		})
	}
	return nil
}

func (s *Suite) holdSample(ctx context.Context, start func(*servers) (*peer.Server, error), name string) (report.Sample, error) {
	var started servers
	defer started.stop()
	server, err := start(&started)
	if err != nil {
		return report.Sample{}, err
	}
	if err := fill(ctx, s.config(server, load.NewCommand("CL.CHECK", name, "k:"+load.KeyMark)), 0, holdKeys); err != nil {
		return report.Sample{}, err
	}
	before, err := taken(ctx, server)
	if err != nil {
		return report.Sample{}, err
	}
	if err := s.hold(ctx, server, name, manyHolds, holdKeys); err != nil {
		return report.Sample{}, err
	}
	if err := sleep(ctx, s.Window); err != nil {
		return report.Sample{}, err
	}
	after, err := taken(ctx, server)
	return report.Sample{RSS: (after[0] - before[0]) / manyHolds, TableBytes: (after[1] - before[1]) / manyHolds}, err
}

var datasetBytes = regexp.MustCompile(`(?m)^used_memory_dataset:(\d+)`)

// taken returns the resident bytes of a server, and those of its tables.
func taken(ctx context.Context, server *peer.Server) (bytes [2]float64, err error) {
	resident, err := server.RSS()
	if err != nil {
		return bytes, err
	}
	info, err := server.Do(ctx, "INFO", "memory")
	if err != nil {
		return bytes, err
	}
	m := datasetBytes.FindStringSubmatch(fmt.Sprint(info))
	if m == nil {
		return bytes, errors.New("INFO memory has no used_memory_dataset")
	}
	tables, err := strconv.ParseFloat(m[1], 64)
	return [2]float64{float64(resident), tables}, err
}
