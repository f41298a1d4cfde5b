package settings

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
	"cellserver/internal/keep/changes"
	"cellserver/internal/keep/memory"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// SyncInterval is the value of --fsync-interval.
type SyncInterval time.Duration

const (
	defaultSyncInterval = SyncInterval(time.Second)
	minSyncInterval     = 10 * time.Millisecond
	maxSyncInterval     = time.Hour

	defaultSyncTimeout = 5 * time.Second
	minSyncTimeout     = 10 * time.Millisecond
	maxSyncTimeout     = time.Hour
)

func (i *SyncInterval) set(text string) bool {
	if text == "no" {
		*i = SyncInterval(store.NoSync)
		return true
	}
	d, ok := flagvalue.ParseDuration(text)
	if !ok || d != 0 && (d < minSyncInterval || d > maxSyncInterval) {
		return false
	}
	*i = SyncInterval(d)
	return true
}

// String returns the interval as --fsync-interval takes it.
func (i *SyncInterval) String() string {
	if time.Duration(*i) == store.NoSync {
		return "no"
	}
	return flagvalue.FormatDuration(time.Duration(*i))
}

func (o *Options) defineDurability(fs *pflag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", "", "`directory` that keeps all states over restarts and crashes (default none: states are lost)")
	o.SyncInterval = defaultSyncInterval
	flagvalue.FuncVar(fs, flagvalue.Func{
		Kind: "interval", Get: o.SyncInterval.String, Set: o.SyncInterval.set,
		Takes: fmt.Sprintf("a time from %s to %s, such as 1s; 0 to sync before each reply; or no to leave it to the system", minSyncInterval,
			flagvalue.FormatDuration(maxSyncInterval)),
	}, "fsync-interval", "`time` between syncs to the disk, the most that a crash can lose; 0 to sync before each reply; no to leave it to the system")
	flagvalue.DurationVar(fs, &o.SyncTimeout, "fsync-timeout",
		defaultSyncTimeout, minSyncTimeout, maxSyncTimeout,
		"longest `time` that a reply waits for its sync with --fsync-interval=0; then the call, "+
			"which may have been charged, gets an error")
	flagvalue.BoolVar(fs, &o.UnreadyOnDiskFault, "unready-on-disk-fault", "fail /readyz while changes do not reach the disk, so that clients use other servers")
	flagvalue.BoolVar(fs, &o.DataRecover, "data-recover", "start with the readable part of a damaged data directory; damaged files are kept under other names")
}

func (o *Options) checkDurability() error {
	timed := o.SyncInterval != defaultSyncInterval || o.SyncTimeout != defaultSyncTimeout
	if o.DataDir == "" && (timed || o.DataRecover || o.UnreadyOnDiskFault) {
		return errors.New("--fsync-interval, --fsync-timeout, --unready-on-disk-fault and --data-recover require --data-dir")
	}
	if o.SyncInterval != 0 && o.SyncTimeout != defaultSyncTimeout {
		return fmt.Errorf("--fsync-timeout requires --fsync-interval=0, got %s", &o.SyncInterval)
	}
	if o.DataDir != "" && o.MaxKeyBytes > changes.MaxKeyBytes {
		return fmt.Errorf("--max-key-bytes must be at most %d with --data-dir, got %d", changes.MaxKeyBytes, o.MaxKeyBytes)
	}
	return nil
}

// AutoMemory is the --maxmemory that derives from the cgroup.
const AutoMemory = "auto"

// Quarter returns the default of --maxmemory-clients and --maxmemory-values.
func Quarter() memory.Part {
	p, _ := memory.ParsePart("25%")
	return p
}

func (o *Options) defineMemory(fs *pflag.FlagSet) {
	o.MaxMemory = AutoMemory
	flagvalue.FuncVar(fs, flagvalue.Func{
		Kind: "size", Takes: "auto or a size, such as 150mb", Get: func() string { return o.MaxMemory },
		Set: func(text string) bool {
			_, err := memory.Parse(text)
			if err == nil || text == AutoMemory {
				o.MaxMemory = text
			}
			return err == nil || text == AutoMemory
		},
	}, "maxmemory", "largest `size` of the server's memory, such as 150mb; 0 for no limit; auto is 70 % of the cgroup's limit, if any")
	flagvalue.ChoiceVar(fs, &o.MaxMemoryPolicy, "maxmemory-policy", store.VolatileTTL.String(), "`policy` at the maximum: volatile-ttl (a new key evicts one that expires soon) or noeviction (it is refused)", memory.PolicyNames()...)
	o.MaxMemoryValues = Quarter()
	flagvalue.FuncVar(fs, flagvalue.Func{
		Kind: "size", Takes: "a size or a percentage above 0, such as 64mb or 25%", Get: o.MaxMemoryValues.String,
		Set: func(text string) bool { return o.MaxMemoryValues.SetAbove0(text) == nil },
	}, "maxmemory-values", "largest `size` of memory for values, such as 64mb, or a percentage of --maxmemory, but at most half of what --maxmemory leaves for keys; beyond it a new value evicts values that expire soon, and is refused if there are none")
	flagvalue.NumberVar(fs, &o.MaxValueBytes, "max-value-bytes", 64<<10, 1<<10, limiter.MaxPayloadBytes-1, "largest size of a value in bytes")
	flagvalue.BoolVar(fs, &o.RequireTTL, "require-ttl", "refuse values that would never expire, unless the same transaction or script makes them expire")
}

func (o *Options) checkMemory() error {
	if o.MaxMemory == AutoMemory {
		return nil
	}
	bytes, _ := memory.Parse(o.MaxMemory)
	state := memory.State{MaxBytes: bytes, Clients: o.MaxMemoryClients, Values: o.MaxMemoryValues}
	if err := state.Check(); err != nil {
		return fmt.Errorf("--maxmemory %w", err)
	}
	return nil
}

// MaxMemoryBytes returns --maxmemory in bytes, and whether the server needs more.
func (o *Options) MaxMemoryBytes() (maxBytes int64, tooSmall bool) {
	if o.MaxMemory == AutoMemory {
		return memory.Auto()
	}
	maxBytes, _ = memory.Parse(o.MaxMemory)
	return maxBytes, false
}
