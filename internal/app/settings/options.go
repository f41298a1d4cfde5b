// Package settings reads flags, environment and config file into one value. Options belong to one goroutine
// until complete; then they are only read, except for the log level.
package settings

import (
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/observe"
	"cellserver/internal/edge/metrics"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/memory"
	"cellserver/internal/redis/commands/admin"
)

// ProbeTimeout bounds the response of an event loop or a shard to a probe: a thousand times the usual, and as
// long as a script's whole time limit, the longest that anything may take.
const ProbeTimeout = time.Second

// Options holds the values of the flags.
type Options struct {
	Addr, UnixSocket, MetricsAddr string

	SocketMode fs.FileMode // --unixsocketperm; 0 for the umask's

	TLSAddr, TLSCert, TLSKey, TLSClientCA, tlsAuthClients string

	MetricsTokenFile, MetricsTLSCert, MetricsTLSKey string

	MetricsHosts []string

	Pprof, NoDashboard, PageActions bool

	Doors DoorOptions

	Databases       int
	BurstIsCapacity bool
	LimitsFile      string
	RequirePass     string
	requirePassFile string
	ProtectedMode   bool
	ACLFile         string
	DebugCommand    string

	Remote StoreOptions

	Replication ReplicationOptions

	DataDir      string
	SyncInterval SyncInterval
	SyncTimeout  time.Duration
	DataRecover  bool

	UnreadyOnDiskFault bool

	Lua          bool
	LuaTimeLimit time.Duration

	IOThreads, MaxClients, MaxArgs, MaxCommandBytes, MaxKeyBytes, MaxValueBytes, MaxOutputBytes int

	MaxMemory, MaxMemoryPolicy string
	MaxMemoryClients           memory.Part
	MaxMemoryValues            memory.Part
	RequireTTL                 bool

	MaxClientsPerAddress, MaxNewKeysPerSecond int

	Timeout, InputTimeout, OutputTimeout, ShutdownTimeout time.Duration

	Thresholds    admin.Thresholds
	TopKeysMetric int
	TopKeysNames  metrics.NameStyle

	LogLevel, LogFormat string
	Level               slog.LevelVar // of the loggers; a reload may change it

	Config        string // path of the config file; "" for none
	help, Version bool

	Flags  *pflag.FlagSet    // set these options
	Values map[string]string // as set; the server adjusts some fields
	From   Origins           // of the values
	File   *ConfigFile       // named by Config; nil for none

	Getenv func(string) (string, bool) // the environment of which they were completed
}

// FlagGroups defines all flags, which set o, under the headings of the help.
func (o *Options) FlagGroups() []FlagGroup {
	group := func(title string, define func(*pflag.FlagSet)) FlagGroup {
		fs := pflag.NewFlagSet(title, pflag.ContinueOnError)
		fs.SortFlags = false
		define(fs)
		return FlagGroup{title, fs}
	}
	return []FlagGroup{
		group("Listening", func(fs *pflag.FlagSet) {
			flagvalue.AddressVar(fs, &o.Addr, "addr", "127.0.0.1:6380", "127.0.0.1:6380", "`host:port` for Redis clients; of all addresses :6380 is IPv4 and IPv6, and 0.0.0.0:6380 IPv4 alone; empty disables it")
			fs.StringVar(&o.UnixSocket, "unixsocket", "", "`path` of a unix socket for Redis clients (default none)")
			o.defineSocketMode(fs)
		}),
		group("TLS", o.defineTLS),
		group("HTTP and Envoy", o.Doors.define),
		group("Metrics", o.defineMetrics),
		group("Threads", o.defineIOThreads),
		group("Rate limiting", func(fs *pflag.FlagSet) {
			flagvalue.BoolVar(fs, &o.BurstIsCapacity, "burst-is-capacity", "read CL.THROTTLE's second argument, and every max_burst, as a funnel's whole capacity instead of the burst beyond the first unit")
			fs.StringVar(&o.LimitsFile, "limits-file", "", "YAML `file` with named limits for CL.CHECK; SIGHUP and CL.LIMIT RELOAD reload it")
			flagvalue.NumberVar(fs, &o.Databases, "databases", 16, 1, 1<<16, "number of databases for SELECT")
		}),
		group("Access", func(fs *pflag.FlagSet) {
			fs.StringVar(&o.RequirePass, "requirepass", "", "`password` of the default user (default none); better set by --requirepass-file or "+EnvName("requirepass"))
			fs.StringVar(&o.requirePassFile, "requirepass-file", "", "`file` with that password")
			fs.StringVar(&o.ACLFile, "aclfile", "", "`file` with users and permissions in the syntax of Redis's aclfile; SIGHUP and ACL LOAD reload it")
			flagvalue.ChoiceVar(fs, &o.DebugCommand, "enable-debug-command", "no", "who may use DEBUG: `no|local|yes`", "no", "local", "yes")
			o.ProtectedMode = true
			flagvalue.SwitchVar(fs, &o.ProtectedMode, "protected-mode", "yes", "no", "refuse clients on other hosts while there is no password: `yes|no`")
		}),
		group("Scripts", o.defineScripts),
		group("Store", o.defineStore),
		group("Durability", o.defineDurability),
		group("Replication", o.Replication.define),
		group("Memory", o.defineMemory),
		group("Client limits", o.defineClientLimits),
		group("Monitoring", o.defineMonitoring),
		group("Config file, logs and help", func(fs *pflag.FlagSet) {
			flagvalue.ChoiceVar(fs, &o.LogLevel, "log-level", "info", "`level`: debug, info, warn or error", "debug", "info", "warn", "error")
			flagvalue.ChoiceVar(fs, &o.LogFormat, "log-format", "text", "`format`: text or json", "text", "json")
			fs.StringVar(&o.Config, "config", "", "YAML `file` with settings named like these flags; SIGHUP reloads it, and cellserver config check checks it")
			fs.BoolVarP(&o.help, "help", "h", false, "show this help")
			fs.BoolVarP(&o.Version, "version", "v", false, "show the version")
		}),
	}
}

// defineIOThreads shows the default as auto: help and man pages are made on other machines.
func (o *Options) defineIOThreads(fs *pflag.FlagSet) {
	automatic := max(1, runtime.GOMAXPROCS(0)/2)
	text := "auto"
	o.IOThreads = automatic
	flagvalue.FuncVar(fs, flagvalue.Func{
		Kind: "number", Takes: "auto, or a whole number from 0 to 1024, such as 4", Get: func() string { return text },
		Set: func(given string) bool {
			n, err := strconv.Atoi(given)
			if given == "auto" {
				n, err = automatic, nil
			}
			if err != nil || n < 0 || n > 1024 {
				return false
			}
			o.IOThreads, text = n, given
			return true
		},
	}, "io-threads", "`number` of event loops that serve clients (Linux); 0 for a goroutine per client; auto is half of the processors")
}

func (o *Options) defineScripts(fs *pflag.FlagSet) {
	o.Lua = true
	flagvalue.SwitchVar(fs, &o.Lua, "lua", "on", "off", "enable EVAL, SCRIPT and the like: `on|off`")
	flagvalue.UnitDurationVar(fs, &o.LuaTimeLimit, "lua-time-limit", 50*time.Millisecond, time.Millisecond, math.MaxInt64, "CPU `time` after which a script is stopped and its writes discarded; wall-clock time is limited to 20 times that")
}

func (o *Options) defineClientLimits(fs *pflag.FlagSet) {
	flagvalue.NumberVar(fs, &o.MaxClients, "maxclients", 10_000, 1, 1<<30, "largest number of connected clients")
	flagvalue.NumberVar(fs, &o.MaxClientsPerAddress, "maxclients-per-address", 0, 0, 1<<30, "largest number of connected clients per IPv4 address, or per first 64 bits of an IPv6 address; 0 for no limit")
	o.MaxMemoryClients = Quarter()
	flagvalue.FuncVar(fs, flagvalue.Func{
		Kind: "size", Takes: "a size or a percentage, such as 64mb or 25%", Get: o.MaxMemoryClients.String,
		Set: func(text string) bool { return o.MaxMemoryClients.Set(text) == nil },
	}, "maxmemory-clients", "largest `size` of memory held for all clients, such as 64mb, or a percentage of --maxmemory, or without one of the cgroup's limit or the machine's memory; beyond it the connection that holds most is closed; 0 for no limit")
	flagvalue.NumberVar(fs, &o.MaxNewKeysPerSecond, "max-new-keys-per-second", 0, 0, clients.MaxNewKeys, "new keys that the clients of one address may create per second; calls on existing keys are not limited; 0 for no limit")
	flagvalue.NumberVar(fs, &o.MaxArgs, "max-args", 1<<20, 16, 1<<31-1, "largest number of arguments of a command")
	flagvalue.NumberVar(fs, &o.MaxCommandBytes, "max-command-bytes", 4<<20, 1<<10, 1<<30, "largest size of a command in bytes")
	flagvalue.NumberVar(fs, &o.MaxKeyBytes, "max-key-bytes", 4<<10, 1, 1<<30, "largest size of a key in bytes")
	flagvalue.NumberVar(fs, &o.MaxOutputBytes, "max-output-bytes", 32<<20, 1<<10, 1<<30, "bytes of unread replies beyond which the server stops reading from a client")
	flagvalue.DurationVar(fs, &o.InputTimeout, "input-timeout", 30*time.Second, 0, math.MaxInt64, "close clients that leave more than 16 KiB of a command unfinished for this `time`; 0 for no limit")
	flagvalue.DurationVar(fs, &o.OutputTimeout, "output-timeout", time.Minute, 0, math.MaxInt64, "close clients that exceed --max-output-bytes for this `time`; 0 for no limit")
	flagvalue.DurationVar(fs, &o.Timeout, "timeout", 0, 0, math.MaxInt64, "close clients that are idle for this `time`; 0 for no limit")
	flagvalue.DurationVar(fs, &o.ShutdownTimeout, "shutdown-timeout", 10*time.Second, 0, math.MaxInt64, "longest `time` that a graceful shutdown waits for clients, and again for the disk with --data-dir")
}

// FlagSet returns the flags of all groups.
func (o *Options) FlagSet(groups []FlagGroup) *pflag.FlagSet {
	fs := pflag.NewFlagSet("cellserver", pflag.ContinueOnError)
	for _, g := range groups {
		fs.AddFlagSet(g.Flags)
	}
	return fs
}

// Complete sets what the command line leaves out from the environment and the config file, and checks all.
func (o *Options) Complete(fs *pflag.FlagSet, getenv func(string) (string, bool)) error {
	from, file, wrong := SetRest(fs, getenv)
	o.Getenv = getenv
	o.From, o.File, o.Flags, o.Values = from, file, fs, map[string]string{}
	fs.VisitAll(func(f *pflag.Flag) { o.Values[f.Name] = f.Value.String() })
	if file != nil {
		wrong = append(wrong, file.Wrong...)
	}
	wrong = slices.Concat(wrong, removedVariables(getenv), o.check())
	if err := wrong.Err(); err != nil {
		return usage.Errorf("%w", err)
	}
	return nil
}

func (o *Options) check() (wrong Problems) {
	for _, check := range []func() error{o.checkStore, o.checkListening, o.checkMemory, o.checkDurability, o.checkTLS, o.checkMetrics, o.checkDoors, o.checkReplication} {
		if err := check(); err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}

func (o *Options) checkListening() error {
	switch {
	case o.Addr == "" && o.UnixSocket == "" && o.TLSAddr == "" && o.Doors.HTTPAddr+o.Doors.HTTPTLSAddr == "" && !o.Doors.HasGRPC():
		return errors.New("nothing to listen on: set --addr, --tls-addr, --unixsocket, --http-addr or --grpc-addr")
	case o.RequirePass != "" && o.requirePassFile != "":
		return errors.New("--requirepass and --requirepass-file are mutually exclusive; set only one")
	case o.SocketMode != 0 && o.UnixSocket == "":
		return errors.New("--unixsocketperm requires --unixsocket")
	}
	return nil
}

// Reading returns the meaning of CL.THROTTLE's second argument.
func (o *Options) Reading() funnel.Reading {
	if o.BurstIsCapacity {
		return funnel.Capacity
	}
	return funnel.Burst
}

// FlagGroup is the flags under one heading of the help.
type FlagGroup struct {
	Title string
	Flags *pflag.FlagSet
}

// SlogLevel converts a valid --log-level.
func SlogLevel(name string) (level slog.Level) {
	_ = level.UnmarshalText([]byte(name))
	return level
}

func (o *Options) defineMonitoring(fs *pflag.FlagSet) {
	flagvalue.NumberVar(fs, &o.Thresholds.SlowlogFromUs, "slowlog-log-slower-than", 10_000, -1, math.MaxInt64, "`microseconds` from which SLOWLOG records a call or batch; negative to disable")
	flagvalue.NumberVar(fs, &o.Thresholds.SlowlogMaxLen, "slowlog-max-len", 128, 0, observe.MaxSlowlogLen, "`number` of entries that SLOWLOG keeps")
	flagvalue.NumberVar(fs, &o.Thresholds.LatencyFromMs, "latency-monitor-threshold", 0, 0, math.MaxInt64, "`milliseconds` from which LATENCY records an event; 0 to disable")
	flagvalue.NumberVar(fs, &o.TopKeysMetric, "top-keys-metric", 0, 0, metrics.MaxTopKeys, "`number` of the most requested and the most limited keys in a metric, at most 100; keys may be personal data")
	flagvalue.ChoiceVar(fs, (*string)(&o.TopKeysNames), "top-keys-metric-names", string(metrics.PlainNames), "`style` of keys in that metric: plain; hash (16 digits of SHA-256); or cut (the first 8 bytes, summing keys with the same start)",
		string(metrics.PlainNames), string(metrics.HashedNames), string(metrics.CutNames))
}

func (o *Options) defineSocketMode(flags *pflag.FlagSet) {
	text := ""
	flagvalue.FuncVar(flags, flagvalue.Func{
		Kind: "permissions", Takes: "octal permissions from 1 to 777, such as 700", Get: func() string { return text },
		Set: func(given string) bool {
			mode, err := strconv.ParseUint(given, 8, 32)
			if given != "" && (err != nil || mode < 1 || mode > 0o777) {
				return false
			}
			o.SocketMode, text = fs.FileMode(mode), given
			return true
		},
	}, "unixsocketperm", "octal `permissions` of the unix socket, such as 700 (default set by the umask)")
}

func settingNames() (names []string) {
	for _, g := range (&Options{}).FlagGroups() {
		g.Flags.VisitAll(func(f *pflag.Flag) {
			if IsSetting(f) {
				names = append(names, f.Name)
			}
		})
	}
	return names
}

// IsSetting reports whether a flag sets a value, unlike --help and --version.
func IsSetting(f *pflag.Flag) bool { return f.Name != "help" && f.Name != "version" }
