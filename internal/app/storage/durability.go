package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cellserver/internal/decide/limits"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/redis/background"
)

// For so long a start waits for another process to leave the directory.
const (
	lockTries = 20
	lockPause = 100 * time.Millisecond
)

// openDataDir opens --data-dir, if there is one, for whoever keeps the store there.
func (s *storage) openDataDir(ctx context.Context) error {
	o := s.options
	if o.dataDir == "" {
		return nil
	}
	dir, err := disk.OpenOS(o.dataDir)
	for tries := 0; errors.Is(err, disk.ErrInUse) && tries < lockTries; tries++ {
		select {
		case <-time.After(lockPause): // the server before this one may be about to end
		case <-ctx.Done():
			return ctx.Err()
		}
		dir, err = disk.OpenOS(o.dataDir)
	}
	switch {
	case errors.Is(err, disk.ErrInUse):
		return fmt.Errorf("--data-dir: another process uses %s; end that, or choose another directory", o.dataDir)
	case err != nil:
		return fmt.Errorf("--data-dir: %w", err)
	}
	s.dir = dir
	s.keeper = persist.New(persist.Config{
		Dir: dir, Store: s.tables, Now: s.clock.Now, Yield: background.Yield, Log: s.log,
		Interval: time.Duration(o.syncInterval), Timeout: o.syncTimeout, Repair: o.dataRecover,
		Beside: []string{limits.KeptName}, Rewrite: func() error { return s.limits.Rewrite() },
		Loaded: func(clockNs int64) (offsetNs int64) {
			offsetNs = s.clock.NotBefore(clockNs)
			noteClockOffset(s.log, offsetNs)
			return offsetNs
		},
	})
	return nil
}

// persistence returns what tells what is kept; nil if nothing is.
func (s *storage) persistence() func() persist.Status {
	if s.keeper == nil {
		return nil
	}
	return s.keeper.Status
}

// keep loads the data directory, calls loaded, and keeps what changes until ctx ends. It is for a storage that has a keeper.
func (s *storage) keep(ctx context.Context, loaded func()) error {
	err := s.keeper.Run(ctx, loaded)
	s.limits.Close()
	err = errors.Join(err, s.dir.Close())
	if err != nil {
		err = fmt.Errorf("--data-dir %s: %w", s.options.dataDir, err)
	}
	return err
}
