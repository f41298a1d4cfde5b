package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/clients"
	"cellserver/internal/commands/admin"
	"cellserver/internal/memory"
	"cellserver/internal/metrics"
)

// options holds the values of the flags.
type options struct {
	addr, unixSocket, unixSocketPerm, metricsAddr string

	tlsAddr, tlsCert, tlsKey, tlsClientCA, tlsAuthClients string

	metricsTokenFile, metricsPasswordFile, metricsTLSCert, metricsTLSKey string

	metricsHosts []string

	pprof, noDashboard bool

	databases       int
	burstIsCapacity bool
	limitsFile      string
	requirePass     string
	requirePassFile string
	protectedMode   bool
	aclFile         string
	debugCommand    string

	remote storeOptions

	dataDir      string
	syncInterval syncInterval
	dataRecover  bool

	unreadyOnDiskFault bool

	lua          bool
	luaTimeLimit time.Duration

	ioThreads, maxClients, maxArgs, maxCommandBytes, maxKeyBytes, maxOutputBytes int

	maxMemory, maxMemoryPolicy string
	maxMemoryClients           memory.Part

	maxClientsPerAddress, maxNewKeysPerSecond int

	timeout, handshakeTimeout, inputTimeout, outputTimeout, shutdownTimeout time.Duration

	thresholds    admin.Thresholds
	topKeysMetric int
	topKeysNames  metrics.NameStyle

	logLevel, logFormat string

	help, version bool
}

func (o *options) flagGroups() []flagGroup {
	group := func(title string, define func(*pflag.FlagSet)) flagGroup {
		fs := pflag.NewFlagSet(title, pflag.ContinueOnError)
		fs.SortFlags = false
		define(fs)
		return flagGroup{title, fs}
	}
	return []flagGroup{
		group("Listening", func(fs *pflag.FlagSet) {
			fs.StringVar(&o.addr, "addr", "127.0.0.1:6380", "`host:port` for Redis clients; empty disables it")
			fs.StringVar(&o.unixSocket, "unixsocket", "", "`path` of a unix socket for Redis clients (default none)")
			fs.StringVar(&o.unixSocketPerm, "unixsocketperm", "", "octal `permissions` of the unix socket, such as 700 (default set by the umask)")
		}),
		group("TLS", o.defineTLS),
		group("Metrics", o.defineMetrics),
		group("Threads", func(fs *pflag.FlagSet) {
			fs.IntVar(&o.ioThreads, "io-threads", max(1, runtime.GOMAXPROCS(0)/2), "event loops that serve clients (Linux); with 0 each client has a goroutine")
		}),
		group("Rate limiting", func(fs *pflag.FlagSet) {
			fs.BoolVar(&o.burstIsCapacity, "burst-is-capacity", false, "read CL.THROTTLE's second argument, and max_burst wherever it stands, as a funnel's whole capacity, not as the burst beyond the first unit")
			fs.StringVar(&o.limitsFile, "limits-file", "", "YAML `file` with named limits for CL.CHECK; SIGHUP and CL.LIMIT RELOAD reload it")
			fs.IntVar(&o.databases, "databases", 16, "number of databases for SELECT")
		}),
		group("Access", func(fs *pflag.FlagSet) {
			fs.StringVar(&o.requirePass, "requirepass", "", "`password` of the default user (default none); better set by "+envName("requirepass"))
			fs.StringVar(&o.requirePassFile, "requirepass-file", "", "`file` with that password")
			fs.StringVar(&o.aclFile, "aclfile", "", "`file` with users and their permissions in the syntax of Redis's aclfile; SIGHUP and ACL LOAD reload it")
			fs.StringVar(&o.debugCommand, "enable-debug-command", "no", "who may use DEBUG: `no|local|yes`")
			o.protectedMode = true
			fs.Var(boolFlag{&o.protectedMode, "yes", "no"}, "protected-mode", "refuse clients on other hosts while there is no password: `yes|no`")
		}),
		group("Scripts", o.defineScripts),
		group("Store", o.defineStore),
		group("Durability", o.defineDurability),
		group("Memory", o.defineMemory),
		group("Client limits", o.defineClientLimits),
		group("Monitoring", o.defineMonitoring),
		group("Logs and help", func(fs *pflag.FlagSet) {
			o.defineLogs(fs)
			fs.BoolVarP(&o.help, "help", "h", false, "show this help")
			fs.BoolVar(&o.version, "version", false, "show the version")
		}),
	}
}

func (o *options) defineScripts(fs *pflag.FlagSet) {
	o.lua = true
	fs.Var(boolFlag{&o.lua, "on", "off"}, "lua", "enable EVAL, SCRIPT and the like: `on|off`")
	fs.DurationVar(&o.luaTimeLimit, "lua-time-limit", 50*time.Millisecond, "CPU time (and 20 times that in wall-clock time) after which a script is stopped and its writes discarded")
}

func (o *options) defineClientLimits(fs *pflag.FlagSet) {
	fs.IntVar(&o.maxClients, "maxclients", 10_000, "largest number of connected clients")
	fs.IntVar(&o.maxClientsPerAddress, "maxclients-per-address", 0, "largest number of connected clients of one IPv4 address, or of IPv6 addresses with the same first 64 bits; 0 for no limit")
	o.maxMemoryClients = defaultClients()
	fs.Var(&o.maxMemoryClients, "maxmemory-clients", "`size` of memory that all clients may make the server hold together, such as 64mb, or a percentage of the maximum of all memory; beyond it the connection that holds most is closed; 0 for no limit")
	fs.IntVar(&o.maxNewKeysPerSecond, "max-new-keys-per-second", 0, "new keys that the clients of one address may make per second; calls for existing keys still answer; 0 for no limit")
	fs.IntVar(&o.maxArgs, "max-args", 1<<20, "largest number of arguments of a command")
	fs.IntVar(&o.maxCommandBytes, "max-command-bytes", 4<<20, "largest size of a command in bytes")
	fs.IntVar(&o.maxKeyBytes, "max-key-bytes", 4<<10, "largest size of a key in bytes")
	fs.IntVar(&o.maxOutputBytes, "max-output-bytes", 32<<20, "unread replies in bytes beyond which the server stops reading from a client")
	fs.DurationVar(&o.inputTimeout, "input-timeout", 30*time.Second, "close clients that leave more than 16 KiB of a command half-sent for this long; 0 never")
	fs.DurationVar(&o.outputTimeout, "output-timeout", time.Minute, "close clients that exceed --max-output-bytes for this long; 0 never")
	fs.DurationVar(&o.timeout, "timeout", 0, "close clients that are idle for this long; 0 never")
	fs.DurationVar(&o.handshakeTimeout, "handshake-timeout", 10*time.Second, "close clients that have not completed the TLS handshake and authenticated in this time; 0 never")
	fs.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 10*time.Second, "how long a graceful shutdown waits for clients, and with --data-dir as long again for the disk")
}

// parseOptions reads a command line of the server.
func parseOptions(args []string) (*options, error) {
	o := &options{}
	fs := pflag.NewFlagSet("cellserver", pflag.ContinueOnError)
	for _, g := range o.flagGroups() {
		fs.AddFlagSet(g.flags)
	}
	if err := fs.Parse(args); err != nil {
		return nil, usageError{err}
	}
	if err := setFromEnvironment(fs, os.LookupEnv); err != nil {
		return nil, err
	}
	return o, o.complete(fs)
}

// complete checks the values of flags that were given, and sets what they decide.
func (o *options) complete(given *pflag.FlagSet) error {
	if err := o.checkStore(given); err != nil {
		return usageError{err}
	}
	if err := o.check(); err != nil {
		return usageError{err}
	}
	return nil
}

// check validates the values; an error names the flag.
func (o *options) check() error {
	if err := o.checkNumbers(); err != nil {
		return err
	}
	if err := o.checkTimes(); err != nil {
		return err
	}
	if o.addr == "" && o.unixSocket == "" && o.tlsAddr == "" {
		return errors.New("nothing to listen on: set --addr, --tls-addr or --unixsocket")
	}
	switch o.debugCommand {
	case "no", "local", "yes":
	default:
		return fmt.Errorf("--enable-debug-command must be no, local or yes, got %q", o.debugCommand)
	}
	if o.requirePass != "" && o.requirePassFile != "" {
		return errors.New("--requirepass and --requirepass-file are mutually exclusive; set only one")
	}
	if _, err := o.socketMode(); err != nil {
		return err
	}
	for _, check := range []func() error{o.checkMemory, o.checkDurability, o.checkTLS, o.checkMetrics, o.checkMonitoring} {
		if err := check(); err != nil {
			return err
		}
	}
	_, err := o.logger(io.Discard)
	return err
}

func (o *options) checkNumbers() error {
	for _, f := range []struct {
		name               string
		value, least, most int
	}{
		{"databases", o.databases, 1, 1 << 16},
		{"io-threads", o.ioThreads, 0, 1 << 10},
		{"maxclients", o.maxClients, 1, 1 << 30},
		{"maxclients-per-address", o.maxClientsPerAddress, 0, 1 << 30},
		{"max-new-keys-per-second", o.maxNewKeysPerSecond, 0, clients.MaxNewKeys},
		{"max-args", o.maxArgs, 16, 1<<31 - 1},
		{"max-command-bytes", o.maxCommandBytes, 1 << 10, 1 << 30},
		{"max-key-bytes", o.maxKeyBytes, 1, 1 << 30},
		{"max-output-bytes", o.maxOutputBytes, 1 << 10, 1 << 30},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("--%s must be from %d to %d, got %d", f.name, f.least, f.most, f.value)
		}
	}
	return nil
}

func (o *options) checkTimes() error {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"input-timeout", o.inputTimeout}, {"output-timeout", o.outputTimeout}, {"timeout", o.timeout},
		{"handshake-timeout", o.handshakeTimeout}, {"shutdown-timeout", o.shutdownTimeout},
	} {
		if f.value < 0 {
			return fmt.Errorf("--%s must not be negative, got %s", f.name, f.value)
		}
	}
	if o.luaTimeLimit < time.Millisecond {
		return fmt.Errorf("--lua-time-limit must be at least 1ms, got %s", o.luaTimeLimit)
	}
	return nil
}
