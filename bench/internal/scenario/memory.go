package scenario

import (
	"context"
	"fmt"
	"slices"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

const (
	million    = 1_000_000
	manyKeys   = 10 * million
	peerKeys   = million
	growthStep = million / 8
)

// memory fills servers with live keys of 16 bytes and samples their resident memory meanwhile, including that of the empty
// server.
func (s *Suite) memory(ctx context.Context) error {
	cell, err := s.grow(ctx, peer.Cellserver, s.startCell, peer.ThrottleLong(), manyKeys)
	if err != nil {
		return err
	}
	perKey := cell.PerKey(million)
	s.goal(
		report.AtMost("bytes per live key, mean over growth from 1 to 10 million", 48, []float64{mean(perKey)}),
		report.AtMost("bytes per live key, worst of that growth", 64, []float64{slices.Max(perKey)}),
	)
	if _, err := s.grow(ctx, set, s.Kit.StartRedis, peer.Set16(), peerKeys); err != nil {
		return err
	}
	if !s.have(peer.RedisCell) {
		return nil
	}
	_, err = s.grow(ctx, peer.RedisCell, s.Kit.StartRedisCell, peer.ThrottleLong(), peerKeys)
	return err
}

func (s *Suite) startCell(ctx context.Context) (*peer.Server, error) {
	return s.Kit.StartCellserver(ctx)
}

func (s *Suite) grow(ctx context.Context, name string, start func(context.Context) (*peer.Server, error),
	command load.Command, keys int,
) (*report.Growth, error) {
	server, err := start(ctx)
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	growth := &report.Growth{Peer: name, Command: command.String()}
	s.Results.Memory = append(s.Results.Memory, growth)
	for at := 0; at < keys; at += growthStep {
		s.Progress(fmt.Sprintf("memory: %s, %d of %d keys", name, at, keys))
		if err := fill(ctx, s.config(server, command), at, growthStep); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		bytes, err := server.RSS()
		if err != nil {
			return nil, err
		}
		growth.Keys = append(growth.Keys, float64(at+growthStep))
		growth.RSS = append(growth.RSS, float64(bytes))
	}
	return growth, nil
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
