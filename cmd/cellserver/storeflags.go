package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
	"cellserver/internal/store"
)

// memoryStore is the value of --store for the store in memory.
const memoryStore = "memory"

const (
	leastStoreTimeout = time.Millisecond
	mostStoreTimeout  = time.Minute
	mostStoreWait     = 100
)

// storeOptions are the flags about the store. Their values count only where that is on other machines.
type storeOptions struct {
	url, passwordFile, keyPrefix          string
	sentinelUser, sentinelPasswordFile    string
	tlsCA, tlsCert, tlsKey, tlsServerName string

	timeout    time.Duration
	wait       int
	onError    string
	policy     store.Fallback // of onError
	localShare float64
	prefilter  bool

	lease         bool
	leaseAbove    int
	leaseMaxUnits int
	leaseTime     time.Duration
}

func (o *options) defineStore(fs *pflag.FlagSet) {
	r := &o.remote
	fs.StringVar(&r.url, "store", memoryStore, "where states are: memory, or the `URL` of a Redis or Valkey that several servers share: redis://user:password@host:port/db, redis-cluster://host:port,host:port, redis-sentinel://host:port,host:port/master, or with TLS rediss://, rediss-cluster://, rediss-sentinel://; with a password better set by "+envName("store"))
	fs.StringVar(&r.passwordFile, "store-password-file", "", "`file` with that password; the URL then has none")
	fs.StringVar(&r.sentinelUser, "store-sentinel-user", "", "`user` for the sentinels themselves")
	fs.StringVar(&r.sentinelPasswordFile, "store-sentinel-password-file", "", "`file` with the sentinels' own password")
	fs.StringVar(&r.tlsCA, "store-tls-ca", "", "PEM `file` with the authorities that issue the servers' certificates (default the system's)")
	fs.StringVar(&r.tlsCert, "store-tls-cert", "", "PEM `file` with our certificate, for servers that require one")
	fs.StringVar(&r.tlsKey, "store-tls-key", "", "PEM `file` with that certificate's private key")
	fs.StringVar(&r.tlsServerName, "store-tls-server-name", "", "`name` in the servers' certificates (default the host)")
	fs.StringVar(&r.keyPrefix, "key-prefix", "", "`text` before each key's name on it (default none: the names that redis-cell has)")
	flagvalue.UnitDurationVar(fs, &r.timeout, "store-timeout", 50*time.Millisecond, leastStoreTimeout, mostStoreTimeout, "how long a decision may take; then --on-store-error decides")
	flagvalue.NumberVar(fs, &r.wait, "store-wait", 0, 0, mostStoreWait, "`number` of replicas that must have a change before it is replied to, by WAIT; it costs a round trip between them")
	flagvalue.ChoiceVar(fs, &r.onError, "on-store-error", store.FallbackError.String(), "`what` a call gets that the store did not decide in time: error, allow, deny, or local (decided in this server's memory, by --local-share of its limit)", "error", "allow", "deny", "local")
	r.defineLocalShare(fs, "`part` of each limit that this server allows by itself with --on-store-error=local, such as 0.25 for one of four servers")
	r.prefilter = true
	flagvalue.SwitchVar(fs, &r.prefilter, "prefilter", "on", "off", "deny calls without asking where what was read of the key less than a second ago denies them: `on|off`")
	flagvalue.SwitchVar(fs, &r.lease, "lease", "on", "off", "take units of keys with many calls ahead, and decide from them in memory (funnels only): `on|off`")
	flagvalue.NumberVar(fs, &r.leaseAbove, "lease-above", 100, 1, 1<<30, "`calls` of a key per second at this server from which on that is done")
	flagvalue.NumberVar(fs, &r.leaseMaxUnits, "lease-max-units", 10_000, 1, 1<<30, "most units of a key that are taken ahead, and an eighth of its capacity at most")
	flagvalue.UnitDurationVar(fs, &r.leaseTime, "lease-time", time.Second, time.Millisecond, mostStoreTimeout, "most time for which they are")
}

// isRemote reports whether the store is on other machines.
func (o *options) isRemote() bool { return o.remote.url != memoryStore }

// hasTables reports whether there is a store in memory, be it for the time without the other one.
func (o *options) hasTables() bool {
	return !o.isRemote() || o.remote.onError == store.FallbackLocal.String()
}

// checkStore refuses flags that the store makes senseless, and sets what it decides. No message has the URL, which may contain
// a password.
func (o *options) checkStore() error {
	if !o.isRemote() {
		return o.checkMemoryStore()
	}
	for _, f := range []struct {
		name, why string
		refused   bool
	}{
		{"data-dir", "the store keeps the states", true},
		{"max-new-keys-per-second", "only the store knows which keys are new", o.maxNewKeysPerSecond > 0},
		{"databases", "its URL names the only database", o.databases != 1},
		{"maxmemory-policy", "that of its Redis decides", !o.hasTables()},
		{"local-share", "it is about --on-store-error=local", o.remote.onError != store.FallbackLocal.String()},
		{"lease-above", "it is about --lease=on", !o.remote.lease},
		{"lease-max-units", "it is about --lease=on", !o.remote.lease},
		{"lease-time", "it is about --lease=on", !o.remote.lease},
	} {
		if f.refused && o.differs(f.name) {
			return fmt.Errorf("%s cannot be used with this --store: %s", o.from.of(f.name), f.why)
		}
	}
	o.databases = 1
	o.remote.policy, _ = store.FallbackOf(o.remote.onError)
	return o.remote.checkParts()
}

// differs reports whether a setting was set, and not to its default.
func (o *options) differs(name string) bool {
	f := o.flags.Lookup(name)
	return f.Changed && f.Value.String() != f.DefValue
}

// checkMemoryStore refuses flags that are about another store.
func (o *options) checkMemoryStore() error {
	var misplaced []string
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(options).defineStore(own)
	own.VisitAll(func(f *pflag.Flag) {
		if f.Name != "store" && o.differs(f.Name) {
			misplaced = append(misplaced, "--"+f.Name)
		}
	})
	if misplaced != nil {
		return fmt.Errorf("%s: only for a store on other machines; set --store, such as --store redis://127.0.0.1:6379", strings.Join(misplaced, ", "))
	}
	return nil
}

func (r *storeOptions) defineLocalShare(fs *pflag.FlagSet, usage string) {
	r.localShare = 1
	flagvalue.FuncVar(fs, flagvalue.Func{
		Kind: "part", Takes: "a part above 0 and at most 1, such as 0.25",
		Get: func() string { return strconv.FormatFloat(r.localShare, 'g', -1, 64) },
		Set: func(text string) bool {
			share, err := strconv.ParseFloat(text, 64)
			if err != nil || !(share > 0 && share <= 1) { // nor NaN
				return false
			}
			r.localShare = share
			return true
		},
	}, "local-share", usage)
}

// checkParts refuses flags about a part that the URL does not have.
func (r *storeOptions) checkParts() error {
	switch {
	case r.tlsCA+r.tlsCert+r.tlsKey+r.tlsServerName != "" && !strings.HasPrefix(r.url, "rediss"):
		return errors.New("the flags that begin with --store-tls require a --store with TLS, such as rediss://host:port")
	case (r.tlsCert == "") != (r.tlsKey == ""):
		return errors.New("--store-tls-cert and --store-tls-key require each other; set both")
	case strings.Contains(r.keyPrefix, "{") && strings.Contains(r.url, "-cluster://"):
		return errors.New("--key-prefix must not contain { on a cluster: what stands in braces there decides on the slot, and all keys would be in one, or apart from their own {tags}")
	case r.sentinelUser+r.sentinelPasswordFile != "" && !strings.Contains(r.url, "-sentinel://"):
		return errors.New("the flags that begin with --store-sentinel require a --store with sentinels, such as redis-sentinel://host:port/master")
	}
	return nil
}
