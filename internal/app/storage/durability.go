package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/redis/background"
	"cellserver/internal/store"
)

// A start waits for another process to leave the directory.
const (
	lockTries = 20
	lockPause = 100 * time.Millisecond
)

// openDataDir opens --data-dir, if there is one.
func (s *Storage) openDataDir(ctx context.Context) error {
	o := s.options
	if o.DataDir == "" {
		return nil
	}
	dir, err := disk.OpenOS(o.DataDir)
	for tries := 0; errors.Is(err, disk.ErrInUse) && tries < lockTries; tries++ {
		select {
		case <-time.After(lockPause): // the previous server may be about to end
		case <-ctx.Done():
			return ctx.Err()
		}
		dir, err = disk.OpenOS(o.DataDir)
	}
	switch {
	case errors.Is(err, disk.ErrInUse):
		return fmt.Errorf("--data-dir: another process uses %s; end that, or choose another directory", o.DataDir)
	case err != nil:
		return fmt.Errorf("--data-dir: %w", err)
	}
	s.dir = dir
	s.Keeper = persist.New(persist.Config{
		Dir: dir, Store: s.Tables, Now: s.clock.Now, Yield: background.Yield, Log: s.log,
		Interval: time.Duration(o.SyncInterval), Timeout: o.SyncTimeout, Repair: o.DataRecover,
		Beside: []string{limitsfile.KeptName}, Rewrite: func() error { return s.Limits.Rewrite() },
		Loaded: func(clockNs int64) (offsetNs int64) {
			offsetNs = s.clock.NotBefore(clockNs)
			noteClockOffset(s.log, offsetNs)
			return offsetNs
		},
	})
	return nil
}

// Persistence returns a function for the state of persistence, or nil without any.
func (s *Storage) Persistence() func() store.Durability {
	if s.Keeper == nil {
		return nil
	}
	return s.Keeper.Status
}

// Keep loads the data directory, calls loaded, and persists changes until ctx ends. It requires a keeper.
func (s *Storage) Keep(ctx context.Context, loaded func()) error {
	err := s.Keeper.Run(ctx, loaded)
	s.Limits.Close()
	err = errors.Join(err, s.dir.Close())
	if err != nil {
		err = fmt.Errorf("--data-dir %s: %w", s.options.DataDir, err)
	}
	return err
}
