package scenario

import (
	"context"
	"fmt"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

// shortKeyBytes is the reference length.
const shortKeyBytes = 12

// lengths compares the cost of a request by the length of its key, in full servers within and beyond the
// processor's cache.
func (s *Suite) lengths(ctx context.Context) error {
	for _, keys := range []int{usualKeys, manyKeys} {
		if err := s.lengthsOf(ctx, keys); err != nil {
			return err
		}
	}
	return nil
}

func (s *Suite) lengthsOf(ctx context.Context, keys int) error {
	var started servers
	defer started.stop()
	f := &full{suite: s, started: &started, keys: keys}
	cell := map[int]map[int]*lane{} // by length and depth
	for _, keyBytes := range append([]int{shortKeyBytes}, keyLengths()...) {
		var err error
		if cell[keyBytes], err = f.lanes(ctx, peer.Cellserver, s.startCell, keyBytes); err != nil {
			return err
		}
	}
	if keys == usualKeys && s.have(peer.RedisCell) { // it would take more than 2 GB for each length of many keys
		for _, keyBytes := range keyLengths() {
			if _, err := f.lanes(ctx, peer.RedisCell, s.Kit.StartRedisCell, keyBytes); err != nil {
				return err
			}
		}
	}
	if err := s.interleave(ctx, f.all); err != nil {
		return err
	}
	for _, goal := range []struct {
		depth int
		most  float64
	}{{1, 1.05}, {128, 1.25}} {
		text := fmt.Sprintf("%d keys, %d pipelined: CPU per request with keys of 36 bytes, by that with %d bytes", keys, goal.depth, shortKeyBytes)
		s.goal(ratio(text, goal.most, cell[36][goal.depth], cell[shortKeyBytes][goal.depth], report.CPU))
	}
	return nil
}

// full makes lanes on servers of their own with a number of keys.
type full struct {
	suite   *Suite
	started *servers
	keys    int
	all     []*lane
}

func (f *full) lanes(ctx context.Context, name string, start func(context.Context) (*peer.Server, error), keyBytes int) (map[int]*lane, error) {
	server, err := f.started.add(start(ctx))
	if err != nil {
		return nil, err
	}
	name = fmt.Sprintf("%s, %d bytes", name, keyBytes)
	config := f.suite.config(server, peer.ThrottleLong(keyBytes))
	f.suite.Progress(fmt.Sprintf("lengths: filling %s, %d keys", name, f.keys))
	if err := fill(ctx, config, 0, f.keys); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	config.Keys.Count = f.keys
	lanes := map[int]*lane{}
	for _, depth := range []int{1, 128} {
		config.Pipeline = depth
		lanes[depth] = f.suite.lane("lengths", name, server, config, load.Plan{Duration: f.suite.Window})
		f.all = append(f.all, lanes[depth])
	}
	return lanes, nil
}
