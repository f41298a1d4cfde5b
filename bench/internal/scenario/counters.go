package scenario

import (
	"context"
	"fmt"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

// counters compares INCREX with other counters of a window, and with a script on redis-server.
func (s *Suite) counters(ctx context.Context) error {
	var started servers
	defer started.stop()
	pair, err := s.cellAndSet(ctx, &started)
	if err != nil {
		return err
	}
	cell, redis := pair[0].server, pair[1].server
	var all []contestant
	for _, c := range []struct{ name, call string }{
		{"INCREX", "INCREX x:" + load.KeyMark + " BYINT 1 UBOUND 1000000000 EX 3600 ENX"},
		{"INCR", "INCR n:" + load.KeyMark},
		{"CL.FIXEDWINDOW", "CL.FIXEDWINDOW w:" + load.KeyMark + " 1000000000 3600 1"},
		{"CL.THROTTLE", "CL.THROTTLE t:" + load.KeyMark + " 1000000 1000000 60 1"},
	} {
		call, err := load.ParseCommand(c.call)
		if err != nil {
			return err
		}
		all = append(all, contestant{c.name, cell, call})
	}
	const script = "INCR and EXPIRE in a script, redis-server"
	call, err := peer.Script("local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end return n",
		"1", "count:"+load.KeyMark, "3600")(ctx, redis)
	if err != nil {
		return fmt.Errorf("%s: %w", script, err)
	}
	lanes, err := s.race(ctx, "counters", append(all, contestant{script, redis, call}))
	if err != nil {
		return err
	}
	for _, goal := range []struct {
		than  string
		depth int
		most  float64
	}{{"INCR", 1, 1.15}, {"INCR", 128, 1.6}, {script, 128, 1. / 3}} {
		text := fmt.Sprintf("INCREX, %d pipelined: CPU per request, by %s", goal.depth, goal.than)
		s.goal(ratio(text, goal.most, lanes["INCREX"][goal.depth], lanes[goal.than][goal.depth], report.CPU))
	}
	return nil
}
