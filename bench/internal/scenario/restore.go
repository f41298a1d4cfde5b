package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
)

const (
	restoreRounds = 3
	// restoreRest is the time after which a loaded server has returned the memory of loading.
	restoreRest = 10 * time.Second

	mostRestoreSeconds = 5
	mostPeak           = 1.3
	// mostFile bounds the file by the bytes of keys and states.
	mostFile   = 1.5
	stateBytes = 24
)

// restore measures starts with many keys, from a snapshot.
func (s *Suite) restore(ctx context.Context) error {
	dir, err := s.Kit.DataDir()
	if err != nil {
		return err
	}
	result := report.Restore{Keys: manyKeys, KeyBytes: usualKeyBytes}
	if err := s.save(ctx, dir); err != nil {
		return err
	}
	for round := range restoreRounds {
		s.Progress(fmt.Sprintf("restore: start %d of %d", round+1, restoreRounds))
		if err := s.restoreOnce(ctx, dir, &result); err != nil {
			return err
		}
	}
	s.Results.Restores = append(s.Results.Restores, result)
	s.goal(
		report.AtMost("a start with 10 million keys: seconds until clients are served", mostRestoreSeconds, result.Seconds),
		report.AtMost("a start with 10 million keys: most resident memory, by that ten seconds later", mostPeak, result.PeakPerRSS()),
		report.AtMost("bytes of files per key of 16 bytes", mostFile*(usualKeyBytes+stateBytes), []float64{result.FilePerKey()}),
	)
	return nil
}

// save fills a data directory.
func (s *Suite) save(ctx context.Context, dir string) error {
	server, err := s.Kit.StartCellserver(ctx, "--data-dir", dir)
	if err != nil {
		return err
	}
	defer server.Stop()
	s.Progress(fmt.Sprintf("restore: filling with %d keys", manyKeys))
	if err := fill(ctx, s.config(server, peer.ThrottleLong(usualKeyBytes)), 0, manyKeys); err != nil {
		return err
	}
	return server.Save(ctx)
}

// restoreOnce starts a server once, and adds what that took to the result.
func (s *Suite) restoreOnce(ctx context.Context, dir string, result *report.Restore) error {
	var err error
	if result.FileBytes, err = bytesIn(dir); err != nil {
		return err
	}
	began := time.Now()
	server, err := s.Kit.StartLoading(ctx, dir)
	if err != nil {
		return err
	}
	defer server.Stop()
	if err := server.AwaitLoaded(ctx); err != nil {
		return err
	}
	result.Seconds = append(result.Seconds, time.Since(began).Seconds())
	cpu, err := server.CPU()
	if err != nil {
		return err
	}
	result.CPU = append(result.CPU, cpu.Seconds())
	keys, err := server.Do(ctx, "DBSIZE")
	if err != nil {
		return err
	}
	if keys != int64(result.Keys) {
		return fmt.Errorf("%v keys are back, of %d", keys, result.Keys)
	}
	peak, err := server.PeakRSS()
	if err != nil {
		return err
	}
	if err := sleep(ctx, restoreRest); err != nil {
		return err
	}
	rss, err := server.RSS()
	if err != nil {
		return err
	}
	result.Peak, result.RSS = append(result.Peak, float64(peak)), append(result.RSS, float64(rss))
	return nil
}

func bytesIn(dir string) (sum int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("restore: %w", err)
	}
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err != nil {
			return 0, fmt.Errorf("restore: %w", err)
		}
		sum += int(info.Size())
	}
	return sum, nil
}

// snapshot measures the effect of a snapshot on latency.
func (s *Suite) snapshot(ctx context.Context) error {
	var started servers
	defer started.stop()
	server, err := s.keeper(ctx, &started)
	if err != nil {
		return err
	}
	s.Progress(fmt.Sprintf("snapshot: filling with %d keys", manyKeys))
	if err := fill(ctx, s.config(server, peer.ThrottleLong(usualKeyBytes)), 0, manyKeys); err != nil {
		return err
	}
	if err := server.Save(ctx); err != nil { // none begins by itself soon
		return err
	}
	var order []*lane
	pairs := map[int][2]*lane{}
	for _, depth := range []int{1, 16} {
		rate, err := s.halfRate(ctx, depth, contestant{peer.Cellserver, server, peer.ThrottleLong(usualKeyBytes)})
		if err != nil {
			return err
		}
		at := func(name string) *lane {
			config := s.config(server, peer.ThrottleLong(usualKeyBytes))
			config.Pipeline, config.Keys.Count = depth, manyKeys
			l := s.lane("snapshot", name, server, config, load.Plan{Duration: 3 * s.Window, Rate: rate})
			order = append(order, l)
			return l
		}
		pairs[depth] = [2]*lane{at("without a snapshot"), at("during a snapshot")}
		pairs[depth][1].beside = snapshots
	}
	if err := s.interleave(ctx, order); err != nil {
		return err
	}
	for _, depth := range []int{1, 16} {
		s.goal(ratio(fmt.Sprintf("%d pipelined, half load: p99.9 during a snapshot of 10 million keys, by that without", depth), 1.5,
			pairs[depth][1], pairs[depth][0], report.P999))
	}
	return nil
}

// snapshots writes one snapshot after another until ctx ends.
func snapshots(ctx context.Context, server *peer.Server) error {
	for ctx.Err() == nil {
		if err := server.Save(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}
