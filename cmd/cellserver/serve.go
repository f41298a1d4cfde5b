package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cellserver/internal/base/buildinfo"
	"cellserver/internal/base/certs"
	"cellserver/internal/base/clock"
	"cellserver/internal/base/logwriter"
	"cellserver/internal/decide/limits"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/metrics"
	"cellserver/internal/edge/server"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/memory"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/lua"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/resp"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

const serveHelp = `cellserver is a rate limiter that speaks the Redis protocol and answers CL.THROTTLE.`

const serveExample = `  cellserver &
  redis-cli -p 6380 cl.throttle laoqian:reply 15 30 60 1`

// serveCommand is the root: without a subcommand the program serves.
func serveCommand(help *helpPrinter) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "cellserver [flags]", Short: "serve Redis clients", Long: serveHelp, Example: serveExample, Args: onlySubcommands,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.version {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), buildinfo.Read())
				return err
			}
			if err := o.complete(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			return o.logAndServe(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	help.groups = o.flagGroups()
	for _, g := range help.groups {
		cmd.Flags().AddFlagSet(g.flags)
	}
	return cmd
}

// logAndServe serves with a log to stderr.
func (o *options) logAndServe(ctx context.Context, stderr io.Writer) error {
	signal.Ignore(syscall.SIGPIPE) // or the end of who reads the log would end the server
	lines := logwriter.New(stderr, o.noteLostLines)
	defer lines.Close(flushTimeout)
	log := o.logger(lines)
	warnOfUnknownVariables(os.Environ(), log)
	o.file.warnOfReaders(log)
	return o.serve(ctx, log, lines)
}

// serve serves until ctx ends, which is no error at any time.
func (o *options) serve(ctx context.Context, log *slog.Logger, lines *logwriter.Writer) error {
	err := o.startAndRun(ctx, log, lines)
	if !errors.Is(err, context.Canceled) || ctx.Err() == nil {
		return err
	}
	log.Info("stopped before clients were served")
	return nil
}

func (o *options) startAndRun(ctx context.Context, log *slog.Logger, lines *logwriter.Writer) error {
	if err := o.readPassword(log); err != nil {
		return err
	}
	keeper, err := o.openCerts(log)
	if err != nil {
		return err
	}
	clk := clock.New()
	web, err := o.newWeb(clk.Now, log)
	if err != nil {
		return err
	}
	listeners, err := o.listen(ctx)
	if err != nil {
		return err
	}
	defer listeners.close()
	o.maxClients = warnedMaxClients(o.maxClients, o.ioThreads, log)
	a, err := newApp(ctx, o, clk, log, lines, listeners, keeper, web)
	if err != nil {
		return err
	}
	return a.run(ctx)
}

// warnedMaxClients is fitMaxClients that warns of what it lowers.
func warnedMaxClients(maxClients, ioThreads int, log *slog.Logger) int {
	most := fitMaxClients(maxClients, ioThreads)
	if most < maxClients {
		log.Warn("the limit of open files allows fewer clients than --maxclients; raise it with ulimit -n",
			"maxclients", maxClients, "lowered_to", most)
	}
	return most
}

// app is the parts of a running server.
type app struct {
	options   *options
	log       *slog.Logger
	lines     *logwriter.Writer // of the log
	listeners *listeners
	certs     *certs.Keeper // nil without TLS
	clock     *clock.Clock
	now       func() int64 // the clock's
	loaded    *options     // of the last reload, or the first; the reloads' own
	store     store.Store
	tables    *shard.Store // the store, or what stands in for it; nil for neither
	remote    *remoteStore // the store on other machines; nil for none
	memory    *memory.Bound
	shortage  memory.Shortage // of the memory for keys
	dir       *disk.OS        // nil without --data-dir
	keeper    *persist.Keeper // of the directory
	keepErr   error           // why it has not kept all, once the parts have ended
	limits    *limits.Registry
	access    *access
	engine    *commands.Engine
	server    *server.Server
	web       *web
	prober    *prober
	parts     parts
	notReady  atomic.Pointer[string] // why; empty while clients are served
	up        chan struct{}          // closed once clients are served
	stop      func()                 // ends the server gracefully
}

func newApp(
	ctx context.Context, o *options, clk *clock.Clock, log *slog.Logger, lines *logwriter.Writer,
	l *listeners, keeper *certs.Keeper, web *web,
) (_ *app, err error) {
	cat := catalog.New()
	a := &app{
		options: o, loaded: o, log: log, lines: lines, listeners: l, certs: keeper, web: web, clock: clk, now: clk.Now,
		access: newAccess(o, cat), up: make(chan struct{}),
	}
	if err := a.openStore(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			a.remote.close()
		}
	}()
	if err := a.openDataDir(ctx); err != nil {
		return nil, err
	}
	if err := a.openLimits(); err != nil {
		return nil, err
	}
	a.setNotReady("starting")
	engine, err := commands.NewEngine(a.engineConfig(cat))
	if err != nil {
		return nil, err
	}
	a.engine = engine
	a.limitClients()
	a.server = a.newServer()
	a.prober = &prober{loops: a.server.Probe, shards: func() { a.keys() }, log: log}
	if o.aclFile != "" {
		if err := a.engine.ReloadUsers(); err != nil {
			return nil, fmt.Errorf("--aclfile: %w", err)
		}
	}
	return a, nil
}

func (a *app) engineConfig(cat *catalog.Catalog) commands.Config {
	o := a.options
	c := commands.Config{
		Store:             a.store,
		Now:               a.now,
		WallTime:          time.Now,
		Catalog:           cat,
		Users:             a.access.users,
		Reading:           o.reading(),
		Databases:         o.databases,
		MaxKeyBytes:       o.maxKeyBytes,
		MaxReplyBytes:     o.maxOutputBytes,
		StoreTimeout:      o.remote.timeout,
		Limits:            resp.Limits{MaxArgs: o.maxArgs, MaxCommandBytes: o.maxCommandBytes},
		ACLFile:           o.aclFile,
		Scripts:           o.scripts(cat, a.now, a.memory.State().Shares.Scripts),
		BackgroundThreads: backgroundThreads(o.ioThreads), // once the store has as many shards as there are processors for
		Version:           buildinfo.Version,
		Settings:          a.settings(),
		ConfigFile:        absolute(o.config),
		Maximum:           a.memory.Maximum,
		ReleaseMemory:     memory.Release,
		Remote:            a.remoteStatus(),
		NamedLimits:       a.limits,
		Thresholds:        o.thresholds,
		Connections:       a.connections,
		Shutdown:          func() { a.stop() },
		MayDebug:          o.mayDebug,
		Log:               a.log,
		LostLogLines:      a.lines.Dropped,
	}
	if a.keeper != nil { // or the field would not be nil
		c.Keeper = a.keeper
	}
	return c
}

// backgroundThreads returns how many long commands run at once, and lets the runtime execute that many goroutines beside the
// event loops. A loop keeps its place in the scheduler while it waits in the kernel: where loops have all places, all else,
// such as scripts, waits for up to 10 ms until one is made to leave. The system shares the processors among the threads.
func backgroundThreads(ioThreads int) int {
	places := runtime.GOMAXPROCS(0)
	if places > ioThreads {
		return places - max(1, ioThreads) // without loops, one is left for clients
	}
	runtime.GOMAXPROCS(ioThreads + 1)
	return 1
}

func (a *app) newServer() *server.Server {
	return server.New(server.Config{
		NewSession: func(p peer.Peer, c peer.Conn) peer.Session { return a.engine.NewSession(p, c) },
		Admit:      a.admit,
		IOThreads:  a.options.ioThreads,
		Limits:     a.options.limits(),
		Now:        a.now,
		Log:        a.log,
	})
}

// reading is how CL.THROTTLE's second argument is to be understood.
func (o *options) reading() funnel.Reading {
	if o.burstIsCapacity {
		return funnel.Capacity
	}
	return funnel.Burst
}

// scripts returns what executes scripts of a catalog, or nil. The bytes bound its cache; 0 is the default.
func (o *options) scripts(cat *catalog.Catalog, now func() int64, cacheBytes int64) *lua.Engine {
	if !o.lua {
		return nil
	}
	return lua.New(lua.Config{
		Now: now, ThreadNow: lua.ThreadClock(), TimeLimit: o.luaTimeLimit, MaxReplyBytes: o.maxOutputBytes,
		MaxCacheBytes: int(cacheBytes), Native: cat.Batched(),
	})
}

func (o *options) limits() server.Limits {
	return server.Limits{
		MaxClients:           o.maxClients,
		MaxClientsPerAddress: o.maxClientsPerAddress,
		MaxOutputBytes:       o.maxOutputBytes,
		OutputTimeout:        o.outputTimeout,
		InputTimeout:         o.inputTimeout,
		IdleTimeout:          o.timeout,
		HandshakeTimeout:     o.handshakeTimeout,
	}
}

func (a *app) connections() admin.Connections {
	st := a.server.Stats()
	c := admin.Connections{
		Connected:  st.Connected,
		MaxClients: a.server.Limits().MaxClients,
		Accepted:   st.Accepted,
		Refused:    st.Refused + st.RefusedAddresses + st.Denied,
	}
	if a.listeners.tcp != nil {
		c.Port = a.listeners.tcp.Addr().(*net.TCPAddr).Port
	}
	return c
}

// run serves until ctx is done, or until a part fails, and then ends gracefully.
func (a *app) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a.stop = func() { stop(nil) }
	start := func(name string, part func() error) {
		a.parts.run(name, func() {
			if err := part(); err != nil && !errors.Is(err, server.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
				stop(err)
			}
		})
	}
	a.serveClients(start)
	background, endBackground := context.WithCancel(context.WithoutCancel(ctx))
	if a.listeners.metrics != nil {
		a.serveMetrics(background, start)
	}
	a.tendStore(background)
	a.parts.run("the care of memory", func() { a.tendMemory(background) })
	hangups := hangupsOf(ctx).signals
	a.parts.run("reloading", func() { a.reloadOn(background, hangups) })
	a.parts.run("the prober", func() { a.prober.run(ctx) })
	a.parts.run("the watchdog", func() { a.feedWatchdog(background) })

	a.keep(background, start)
	<-ctx.Done()
	a.setNotReady("shutting down")
	err := a.end(endBackground)
	a.remote.close()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// serveMetrics starts what serves the metrics address.
func (a *app) serveMetrics(background context.Context, start func(name string, part func() error)) {
	l := a.listeners.metrics
	config := metrics.Config{
		Store: a.store, Remote: a.remoteStatus(), Records: a.engine.Records, Logins: a.engine.Logins, Clients: a.engine.Clients, NewKeys: a.engine.NewKeys,
		Now: a.now, Server: a.server, Maximum: a.memory.Maximum, Persistence: a.persistence(), Limits: a.limits, Build: buildinfo.Read(),
		Ready: a.ready, Alive: a.prober.alive, Degraded: a.degraded, LostLogLines: a.lines.Dropped,
		Access: a.web.access, Profiles: a.options.pprof, BoundTo: l.Addr(), AllowedHosts: a.options.metricsHosts,
		TopKeys: a.options.topKeysMetric, TopKeyNames: a.options.topKeysNames,
	}
	if !a.options.noDashboard {
		page := a.newPage()
		config.Page = page
		a.parts.run("the live page", func() { page.Run(background) })
	}
	start("the metrics address", func() error { return a.web.serve(l, metrics.Handler(config)) })
}

// serveClients starts a part for each listener.
func (a *app) serveClients(start func(name string, part func() error)) {
	for _, l := range []net.Listener{a.listeners.tcp, a.listeners.unix} {
		if l != nil {
			start("a listener", func() error { return a.server.Serve(l) })
		}
	}
	if l := a.listeners.tls; l != nil {
		start("a listener", func() error { return a.server.ServeTLS(l, a.certs.Config()) })
	}
}

func (a *app) keys() int {
	var st store.Stats
	a.store.UpdateStats(&st)
	return st.Keys
}

// topKeys returns up to n keys of a ranking, the first first.
func (a *app) topKeys(kind topkeys.Ranking, n int) []topkeys.Entry {
	return a.engine.Records.TopKeys.Top(kind, a.now(), n)
}

func noteSuspension(log *slog.Logger, slept time.Duration) {
	if slept > 0 {
		log.Warn("the machine was suspended; the clock was set forward by that time", "for", slept.Round(time.Millisecond))
	}
}
