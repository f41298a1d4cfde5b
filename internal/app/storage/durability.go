package storage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/keep/memory"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/replication"
	"cellserver/internal/redis/background"
	"cellserver/internal/store"
)

// A start waits for another process to leave the directory.
const (
	lockTries = 20
	lockPause = 100 * time.Millisecond
)

func (s *Storage) openDataDir(ctx context.Context) error {
	o := s.options
	if o.DataDir == "" {
		return nil
	}
	dir, err := disk.OpenOS(o.DataDir)
	for tries := 0; errors.Is(err, disk.ErrInUse) && tries < lockTries; tries++ {
		if tries == 0 {
			s.log.Warn("another process uses the data directory; waiting for it to end", "dir", o.DataDir, "for", lockTries*lockPause)
		}
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
	s.Dir, s.Envoy = dir, envoyconfig.NewKept(dir)
	s.Keeper = persist.New(persist.Config{
		Dir: dir, Store: s.Tables, Changes: s.Changes, Gate: s.Gate, Now: s.clock.Now, Yield: background.Yield, Log: s.log,
		Interval: time.Duration(o.SyncInterval), Timeout: o.SyncTimeout, Repair: o.DataRecover,
		Beside:  []string{limitsfile.KeptName, limitsfile.OverridesName, replication.RoleName, envoyconfig.KeptName},
		Rewrite: func() error { return errors.Join(s.Limits.Rewrite(), s.Envoy.Rewrite()) },
		Named:   []string{limitsfile.KeptName, limitsfile.OverridesName},
		Stands: func() {
			if s.Stands != nil {
				s.Stands()
			}
		},
		Loaded: func(clockNs int64) (offsetNs int64) {
			s.loadedNs.Store(clockNs)
			offsetNs = s.clock.NotBefore(clockNs)
			s.syncWall()
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

// LatestNs returns the latest time in the loaded states, math.MaxInt64 if a crash has not lost any.
func (s *Storage) LatestNs() int64 {
	if s.options.SyncInterval == 0 {
		return math.MaxInt64
	}
	return s.loadedNs.Load()
}

// Keep loads the data directory, calls loaded, and persists changes until ctx ends. Once all are on the disk
// it calls kept, if it has loaded. It requires a keeper.
func (s *Storage) Keep(ctx context.Context, loaded, kept func()) error {
	hasLoaded := false
	err := s.Keeper.Run(ctx, func() {
		hasLoaded = true
		loaded()
	})
	s.Limits.Close()
	if hasLoaded && err == nil {
		kept()
	}
	err = errors.Join(err, s.Dir.Close())
	if err != nil {
		err = fmt.Errorf("--data-dir %s: %w", s.options.DataDir, err)
	}
	return err
}

// diskDegraded omits the cause, which may contain a path and is in the log.
func diskDegraded(status func() store.Durability) string {
	if status == nil {
		return ""
	}
	switch st := status(); {
	case st.Fault == nil:
		return ""
	case st.Interval == 0:
		return "changes do not reach the disk, and calls that would change a key get MISCONF; the log says why"
	default:
		return "changes do not reach the disk, and would be forgotten by a restart; the log says why"
	}
}

// memoryDegraded says what evictions and refusals of the last minute mean.
func memoryDegraded(s *memory.Shortage, nowNs int64, both, evictions, refusals string) string {
	switch evicted, refused := s.Recent(nowNs); {
	case evicted && refused:
		return both
	case evicted:
		return evictions
	case refused:
		return refusals
	}
	return ""
}

var errDiskFault = errors.New("changes do not reach the disk; the log says why")

// diskReady is a part of /readyz. The cause may contain a path and is in the log.
func diskReady(o *settings.Options, status func() store.Durability) error {
	if o.UnreadyOnDiskFault && status != nil && status().Fault != nil {
		return errDiskFault
	}
	return nil
}
