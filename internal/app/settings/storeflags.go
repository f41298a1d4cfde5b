package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
	"cellserver/internal/keep/changes"
	"cellserver/internal/keep/memory"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// MemoryStore is the value of --store for the store in memory.
const MemoryStore = "memory"

const (
	minStoreTimeout = time.Millisecond
	maxStoreTimeout = time.Minute
	maxStoreWait    = 100
)

// StoreOptions are the flags about the store. Their values count only where that is on other machines.
type StoreOptions struct {
	URL, PasswordFile, KeyPrefix          string
	SentinelUser, SentinelPasswordFile    string
	TLSCA, TLSCert, TLSKey, TLSServerName string

	Timeout    time.Duration
	Wait       int
	OnError    string
	Policy     store.Fallback // of OnError
	LocalShare float64
}

func (o *Options) defineStore(fs *pflag.FlagSet) {
	r := &o.Remote
	fs.StringVar(&r.URL, "store", MemoryStore, "where states are: memory, or the `URL` of a Redis or Valkey that several servers share: redis://user@host:port/db, redis-cluster://host:port,host:port, redis-sentinel://host:port,host:port/master, or with TLS rediss://, rediss-cluster://, rediss-sentinel://; with a password better set by "+EnvName("store"))
	fs.StringVar(&r.PasswordFile, "store-password-file", "", "`file` with that password; the URL then has none")
	fs.StringVar(&r.SentinelUser, "store-sentinel-user", "", "`user` for the sentinels themselves")
	fs.StringVar(&r.SentinelPasswordFile, "store-sentinel-password-file", "", "`file` with the sentinels' own password")
	fs.StringVar(&r.TLSCA, "store-tls-ca", "", "PEM `file` with the authorities that issue the servers' certificates (default the system's)")
	fs.StringVar(&r.TLSCert, "store-tls-cert", "", "PEM `file` with our certificate, for servers that require one")
	fs.StringVar(&r.TLSKey, "store-tls-key", "", "PEM `file` with that certificate's private key")
	fs.StringVar(&r.TLSServerName, "store-tls-server-name", "", "`name` in the servers' certificates (default the host)")
	fs.StringVar(&r.KeyPrefix, "key-prefix", "", "`text` before each key's name on it (default none: the names that redis-cell has)")
	flagvalue.UnitDurationVar(fs, &r.Timeout, "store-timeout", 50*time.Millisecond, minStoreTimeout, maxStoreTimeout, "how long a decision may take; then --on-store-error decides")
	flagvalue.NumberVar(fs, &r.Wait, "store-wait", 0, 0, maxStoreWait, "`number` of replicas that must have a change before it is replied to, by WAIT; it costs a round trip between them")
	flagvalue.ChoiceVar(fs, &r.OnError, "on-store-error", store.FallbackError.String(), "`what` a call gets that the store did not decide in time: error, allow, deny, or local (decided in this server's memory, by --local-share of its limit)", "error", "allow", "deny", "local")
	r.LocalShare = 1
	flagvalue.FuncVar(fs, flagvalue.Func{
		Kind: "part", Takes: "a part above 0 and at most 1, such as 0.25",
		Get: func() string { return strconv.FormatFloat(r.LocalShare, 'g', -1, 64) },
		Set: func(text string) bool {
			share, err := strconv.ParseFloat(text, 64)
			if err != nil || !(share > 0 && share <= 1) { // nor NaN
				return false
			}
			r.LocalShare = share
			return true
		},
	}, "local-share", "`part` of each limit that this server allows by itself with --on-store-error=local, such as 0.25 for one of four servers")
}

// IsRemote reports whether the store is on other machines.
func (o *Options) IsRemote() bool { return o.Remote.URL != MemoryStore }

// HasTables reports whether there is a store in memory, be it for the time without the other one.
func (o *Options) HasTables() bool {
	return !o.IsRemote() || o.Remote.OnError == store.FallbackLocal.String()
}

// checkStore refuses flags that the store makes senseless, and sets what it decides. No message has the URL,
// which may contain a password.
func (o *Options) checkStore() error {
	if !o.IsRemote() {
		return o.refuse(new(Options).defineStore, "only for a store on other machines; set --store, such as --store redis://127.0.0.1:6379")
	}
	for _, f := range []struct {
		name, why string
		refused   bool
	}{
		{"data-dir", "the store keeps the states", true},
		{"max-new-keys-per-second", "only the store knows which keys are new", o.MaxNewKeysPerSecond > 0},
		{"databases", "its URL names the only database", o.Databases != 1},
		{"maxmemory-policy", "that of its Redis decides", !o.HasTables()},
		{"local-share", "it is about --on-store-error=local", o.Remote.OnError != store.FallbackLocal.String()},
	} {
		if f.refused && o.differs(f.name) {
			return fmt.Errorf("%s cannot be used with this --store: %s", o.From.Of(f.name), f.why)
		}
	}
	o.Databases = 1
	o.Remote.Policy, _ = store.FallbackOf(o.Remote.OnError)
	return o.Remote.CheckParts()
}

// differs reports whether a setting was set, and not to its default.
func (o *Options) differs(name string) bool {
	f := o.Flags.Lookup(name)
	return f.Changed && f.Value.String() != f.DefValue
}

// refuse refuses the flags of a group that were set, if any.
func (o *Options) refuse(define func(*pflag.FlagSet), why string) error {
	var misplaced []string
	group := pflag.NewFlagSet("", pflag.ContinueOnError)
	define(group)
	group.VisitAll(func(f *pflag.Flag) {
		if f.Name != "store" && o.differs(f.Name) {
			misplaced = append(misplaced, "--"+f.Name)
		}
	})
	if misplaced != nil {
		return errors.New(strings.Join(misplaced, ", ") + ": " + why)
	}
	return nil
}

// CheckParts refuses flags about a part that the URL does not have.
func (r *StoreOptions) CheckParts() error {
	switch {
	case r.TLSCA+r.TLSCert+r.TLSKey+r.TLSServerName != "" && !strings.HasPrefix(r.URL, "rediss"):
		return errors.New("the flags that begin with --store-tls require a --store with TLS, such as rediss://host:port")
	case (r.TLSCert == "") != (r.TLSKey == ""):
		return errors.New("--store-tls-cert and --store-tls-key require each other; set both")
	case strings.Contains(r.KeyPrefix, "{") && strings.Contains(r.URL, "-cluster://"):
		return errors.New("--key-prefix must not contain { on a cluster: what stands in braces there decides on the slot, and all keys would be in one, or apart from their own {tags}")
	case r.SentinelUser+r.SentinelPasswordFile != "" && !strings.Contains(r.URL, "-sentinel://"):
		return errors.New("the flags that begin with --store-sentinel require a --store with sentinels, such as redis-sentinel://host:port/master")
	}
	return nil
}

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
		return fmt.Errorf("--maxmemory %s %w", o.MaxMemory, err) // as it is written, and in bytes
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
