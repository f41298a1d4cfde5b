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

// keyLengths returns the measured lengths: inline in the store's slots, and longer.
func keyLengths() []int { return []int{16, 24, 36, 64} }

// memory fills servers with live keys and samples their resident memory meanwhile, including that of the
// empty server.
func (s *Suite) memory(ctx context.Context) error {
	for _, keyBytes := range keyLengths() {
		cell, err := s.grow(ctx, peer.Cellserver, s.startCell, peer.ThrottleLong(keyBytes), keyBytes, manyKeys)
		if err != nil {
			return err
		}
		maxMean, maxWorst := 48.0, 64.0
		if keyBytes > usualKeyBytes {
			maxMean, maxWorst = float64(keyBytes+44), float64(keyBytes+60)
		}
		perKey, text := cell.PerKey(million), fmt.Sprintf("bytes per live key of %d bytes", keyBytes)
		s.goal(
			report.AtMost(text+", mean over growth from 1 to 10 million", maxMean, []float64{mean(perKey)}),
			report.AtMost(text+", worst of that growth", maxWorst, []float64{slices.Max(perKey)}),
		)
	}
	if _, err := s.grow(ctx, set, s.Kit.StartRedis, peer.SetLong(usualKeyBytes), usualKeyBytes, peerKeys); err != nil {
		return err
	}
	if !s.have(peer.RedisCell) {
		return nil
	}
	for _, keyBytes := range keyLengths() {
		if _, err := s.grow(ctx, peer.RedisCell, s.Kit.StartRedisCell, peer.ThrottleLong(keyBytes), keyBytes, peerKeys); err != nil {
			return err
		}
	}
	return nil
}

func (s *Suite) startCell(ctx context.Context) (*peer.Server, error) {
	return s.Kit.StartCellserver(ctx)
}

func (s *Suite) grow(ctx context.Context, name string, start func(context.Context) (*peer.Server, error),
	command load.Command, keyBytes, keys int,
) (*report.Growth, error) {
	server, err := start(ctx)
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	growth := &report.Growth{Peer: name, Command: command.String(), KeyBytes: keyBytes}
	s.Results.Memory = append(s.Results.Memory, growth)
	for at := 0; at < keys; at += growthStep {
		s.Progress(fmt.Sprintf("memory: %s, %d of %d keys of %d bytes", name, at, keys, keyBytes))
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
