package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
	"cellserver/internal/decide/limits"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/store"
)

// syncInterval is the value of --fsync-interval.
type syncInterval time.Duration

const (
	defaultSyncInterval = syncInterval(time.Second)
	leastSyncInterval   = 10 * time.Millisecond
	mostSyncInterval    = time.Hour

	defaultSyncTimeout = 5 * time.Second
	leastSyncTimeout   = 10 * time.Millisecond
	mostSyncTimeout    = time.Hour

	// For so long a start waits for another process to leave the directory.
	lockTries = 20
	lockPause = 100 * time.Millisecond
)

// set reads an interval.
func (i *syncInterval) set(text string) bool {
	if text == "no" {
		*i = syncInterval(store.NoSync)
		return true
	}
	d, ok := flagvalue.ParseDuration(text)
	if !ok || d != 0 && (d < leastSyncInterval || d > mostSyncInterval) {
		return false
	}
	*i = syncInterval(d)
	return true
}

func (i *syncInterval) String() string {
	if time.Duration(*i) == store.NoSync {
		return "no"
	}
	return flagvalue.FormatDuration(time.Duration(*i))
}

func (o *options) defineDurability(fs *pflag.FlagSet) {
	fs.StringVar(&o.dataDir, "data-dir", "", "`directory` that keeps what the server knows over restarts and crashes (default none: all is forgotten)")
	o.syncInterval = defaultSyncInterval
	flagvalue.FuncVar(fs, flagvalue.Func{
		Kind: "interval", Get: o.syncInterval.String, Set: o.syncInterval.set,
		Takes: fmt.Sprintf("a time from %s to %s, such as 1s; 0 to sync before each reply; or no to leave it to the system", leastSyncInterval,
			flagvalue.FormatDuration(mostSyncInterval)),
	}, "fsync-interval", "`time` between two syncs to the disk, the most that a crash can lose; 0 to sync before each reply; no to leave it to the system")
	flagvalue.DurationVar(fs, &o.syncTimeout, "fsync-timeout",
		defaultSyncTimeout, leastSyncTimeout, mostSyncTimeout,
		"`time` for which a reply waits for its sync at most, with --fsync-interval=0; "+
			"then the call gets an error, and may have been charged")
	flagvalue.BoolVar(fs, &o.unreadyOnDiskFault, "unready-on-disk-fault", "fail /readyz while changes do not reach the disk, so that clients go elsewhere")
	flagvalue.BoolVar(fs, &o.dataRecover, "data-recover", "start with what can be read of a damaged data directory; the damaged files are kept aside")
}

func (o *options) checkDurability() error {
	timed := o.syncInterval != defaultSyncInterval || o.syncTimeout != defaultSyncTimeout
	if o.dataDir == "" && (timed || o.dataRecover || o.unreadyOnDiskFault) {
		return errors.New("--fsync-interval, --fsync-timeout, --unready-on-disk-fault and --data-recover " +
			"are about --data-dir, which is not set")
	}
	if o.syncInterval != 0 && o.syncTimeout != defaultSyncTimeout {
		return fmt.Errorf("--fsync-timeout is about replies that wait for the disk, "+
			"and with --fsync-interval=%s none does; set --fsync-interval=0, or remove it", &o.syncInterval)
	}
	if o.dataDir != "" && o.maxKeyBytes > persist.MaxKeyBytes {
		return fmt.Errorf("--max-key-bytes must be at most %d with --data-dir, got %d", persist.MaxKeyBytes, o.maxKeyBytes)
	}
	return nil
}

// durabilitySettings are Redis's, by what the flags come to, and the flags.
func (o *options) durabilitySettings() []admin.Setting {
	appendFsync := "everysec"
	if o.syncInterval == 0 {
		appendFsync = "always"
	} else if time.Duration(o.syncInterval) == store.NoSync {
		appendFsync = "no"
	}
	return []admin.Setting{
		admin.Constant("appendfsync", appendFsync),
		admin.Constant("appendonly", yesNo(o.dataDir != "")),
		admin.Constant("data-dir", o.dataDir),
		admin.Constant("data-recover", yesNo(o.dataRecover)),
		admin.Constant("dir", absolute(o.dataDir)),
		admin.Constant("fsync-interval", o.syncInterval.String()),
		admin.Constant("fsync-timeout", flagvalue.FormatDuration(o.syncTimeout)),
		admin.Constant("save", ""),
	}
}

// absolute returns a path from the root, as long as there is one.
func absolute(path string) string {
	if from, err := filepath.Abs(path); path != "" && err == nil {
		return from
	}
	return path
}

// openDataDir opens --data-dir, if there is one, for whoever keeps the store there.
func (a *app) openDataDir(ctx context.Context) error {
	o := a.options
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
	a.dir = dir
	a.keeper = persist.New(persist.Config{
		Dir: dir, Store: a.tables, Now: a.now, Yield: background.Yield, Log: a.log,
		Interval: time.Duration(o.syncInterval), Timeout: o.syncTimeout, Repair: o.dataRecover,
		Beside: []string{limits.KeptName}, Rewrite: func() error { return a.limits.Rewrite() },
		Loaded: func(clockNs int64) (offsetNs int64) {
			offsetNs = a.clock.NotBefore(clockNs)
			noteClockOffset(a.log, offsetNs)
			return offsetNs
		},
	})
	return nil
}

// persistence returns what tells what is kept; nil if nothing is.
func (a *app) persistence() func() store.Durability {
	if a.keeper == nil {
		return nil
	}
	return a.keeper.Status
}

var errDiskFault = errors.New("changes do not reach the disk; the log says why")

// diskReady is a part of /readyz. The cause of a fault may contain a path, and is left to the log.
func (o *options) diskReady(status func() store.Durability) error {
	if o.unreadyOnDiskFault && status != nil && status().Fault != nil {
		return errDiskFault
	}
	return nil
}

func noteClockOffset(log *slog.Logger, offsetNs int64) {
	if offsetNs > 0 {
		log.Warn("the system's clock is before the time at which the server ended; its own clock goes on from there, so that nobody is let through or kept out by that",
			"ahead", time.Duration(offsetNs).Round(time.Millisecond))
	}
}

// keep loads the data directory, lets clients in, and keeps what changes until ctx ends.
func (a *app) keep(ctx context.Context, start func(name string, part func() error)) {
	if a.keeper == nil {
		a.letIn()
		return
	}
	a.setNotReady("loading the data directory")
	start("the data directory", func() error {
		err := a.keeper.Run(ctx, a.letIn)
		a.limits.Close()
		err = errors.Join(err, a.dir.Close())
		if err != nil {
			err = fmt.Errorf("--data-dir %s: %w", a.options.dataDir, err)
		}
		a.keepErr = err
		return err
	})
}
