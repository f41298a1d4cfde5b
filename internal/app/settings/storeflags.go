package settings

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
	fs.StringVar(&r.URL, "store", MemoryStore, "where states are: memory, or the `URL` of a Redis or Valkey that several servers share: redis://user:password@host:port/db, redis-cluster://host:port,host:port, redis-sentinel://host:port,host:port/master, or with TLS rediss://, rediss-cluster://, rediss-sentinel://; with a password better set by "+EnvName("store"))
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
			return fmt.Errorf("%s cannot be used with this --store: %s", o.From.of(f.name), f.why)
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
