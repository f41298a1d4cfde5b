package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
	"cellserver/internal/keep/persist"
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
)

// set reads an interval.
func (i *syncInterval) set(text string) bool {
	if text == "no" {
		*i = syncInterval(persist.NoSync)
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
	if time.Duration(*i) == persist.NoSync {
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
