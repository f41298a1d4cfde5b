package app

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

	"cellserver/internal/app/cli"
	"cellserver/internal/app/settings"
	"cellserver/internal/app/storage"
	"cellserver/internal/base/buildinfo"
	"cellserver/internal/base/certs"
	"cellserver/internal/base/clock"
	"cellserver/internal/base/logwriter"
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/metrics"
	"cellserver/internal/edge/server"
	"cellserver/internal/keep/memory"
	"cellserver/internal/keep/replication"
	"cellserver/internal/lua"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/redis/execute"
	"cellserver/internal/resp"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// logAndServe serves until ctx ends. It returns nil then, even during the start.
func logAndServe(ctx context.Context, o *settings.Options, stderr io.Writer) error {
	signal.Ignore(syscall.SIGPIPE) // else SIGPIPE from the log's reader would end the server
	lines := logwriter.New(stderr, func(sink io.Writer, lost uint64) { noteLostLines(o, sink, lost) })
	defer lines.Close(flushTimeout)
	log := newLogger(o, lines)
	settings.WarnOfUnknownVariables(os.Environ(), log)
	o.File.WarnOfReaders(log)
	err := startAndRun(ctx, o, log, lines)
	if !errors.Is(err, context.Canceled) || ctx.Err() == nil {
		return err
	}
	log.Info("stopped before clients were served")
	return nil
}

func startAndRun(ctx context.Context, o *settings.Options, log *slog.Logger, lines *logwriter.Writer) error {
	if err := o.ReadPassword(log); err != nil {
		return err
	}
	keeper, err := openCerts(o, log)
	if err != nil {
		return err
	}
	clk := clock.New()
	web, err := newWebServer(o, clk.Now, log)
	if err != nil {
		return err
	}
	listeners, err := openListeners(ctx, o)
	if err != nil {
		return err
	}
	defer listeners.Close()
	maxClients := o.MaxClients
	o.MaxClients = FitMaxClients(maxClients, o.IOThreads)
	a, err := newApp(ctx, o, clk, log, lines, listeners, keeper, web)
	if err != nil {
		return err
	}
	a.logStart(maxClients)
	return a.run(ctx)
}

type app struct {
	options   *settings.Options
	log       *slog.Logger
	lines     *logwriter.Writer // of the log
	listeners *listeners
	certs     *certs.Keeper // nil without TLS
	now       func() int64  // the clock's
	storage   *storage.Storage
	keepErr   error // why the data directory is incomplete; valid once the parts have ended
	tuning    *tuning
	access    *access
	runID     string
	// replication is nil for a store on other machines.
	replication *replication.Node
	engine      *commands.Engine
	server      *server.Server
	web         *webServer
	doors       *doors
	prober      *prober
	parts       parts
	notReady    atomic.Pointer[string] // why; empty while clients are served
	up          chan struct{}          // closed once clients are served
	stop        func()                 // ends the server gracefully
}

func newApp(
	ctx context.Context, o *settings.Options, clk *clock.Clock, log *slog.Logger, lines *logwriter.Writer,
	l *listeners, keeper *certs.Keeper, web *webServer,
) (_ *app, err error) {
	cat := catalog.New()
	a := &app{
		options: o, log: log, lines: lines, listeners: l, certs: keeper, web: web, now: clk.Now,
		access: newAccess(o, cat), up: make(chan struct{}), runID: admin.NewRunID(),
	}
	a.tuning = &tuning{app: a, loaded: o}
	if a.storage, err = storage.Open(ctx, o, clk, log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			a.storage.Close()
		}
	}()
	a.setNotReady("starting")
	if err := a.openReplication(clk); err != nil {
		return nil, err
	}
	engine, err := commands.NewEngine(a.engineConfig(cat))
	if err != nil {
		return nil, err
	}
	a.engine = engine
	a.storage.Memory.OnClients(a.engine.Clients.SetMaxMemory)
	a.engine.NewKeys.Limit(o.MaxNewKeysPerSecond)
	a.server = a.newServer()
	if a.doors, err = a.openDoors(); err != nil {
		return nil, err
	}
	a.prober = &prober{Loops: a.server.Probe, Shards: func() { a.storage.Keys() }, Log: log}
	a.logPage()
	if o.ACLFile != "" {
		if err := a.engine.ReloadUsers(); err != nil {
			return nil, fmt.Errorf("--aclfile: %w", err)
		}
	}
	a.access.warnOfUsers(&a.doors.tokens, a.log)
	if o.PageActions && !a.access.users.AnyPassword() {
		a.log.Warn("nobody can sign in on the live page to act there, as no user has a password: add one to --aclfile, or set --requirepass-file")
	}
	return a, nil
}

func (a *app) engineConfig(cat *catalog.Catalog) commands.Config {
	o := a.options
	c := commands.Config{
		Config: execute.Config{
			Store:         a.storage.Store,
			Now:           a.now,
			WallTime:      time.Now,
			Catalog:       cat,
			Users:         a.access.users,
			Reading:       o.Reading(),
			Databases:     o.Databases,
			MaxKeyBytes:   o.MaxKeyBytes,
			MaxValueBytes: o.MaxValueBytes,
			RequireTTL:    o.RequireTTL,
			MaxReplyBytes: o.MaxOutputBytes,
			StoreTimeout:  o.Remote.Timeout,
			Limits:        resp.Limits{MaxArgs: o.MaxArgs, MaxCommandBytes: o.MaxCommandBytes},
			Scripts:       newScripts(o, cat, a.now, a.storage.Memory.State().Shares.Scripts),
			NamedLimits:   a.storage.Limits,
			Gate:          a.storage.Gate,
			Log:           a.log,
			// after the store has sized its shards by GOMAXPROCS
			BackgroundThreads: backgroundThreads(o.IOThreads),
		},
		Options: admin.Options{
			ACLFile:       o.ACLFile,
			Version:       buildinfo.Version,
			RunID:         a.runID,
			Settings:      a.tuning.settings(),
			ConfigFile:    absolute(o.Config),
			Maximum:       a.storage.Memory.Maximum,
			ReleaseMemory: memory.Release,
			Remote:        a.storage.RemoteStatus(),
			Thresholds:    o.Thresholds,
			Connections:   a.connections,
			Shutdown:      func() { a.stop() },
			MayDebug:      func(p peer.Peer) bool { return o.DebugCommand == "yes" || o.DebugCommand == "local" && isLocal(p) },
			LostLogLines:  a.lines.Dropped,
		},
	}
	if a.replication != nil { // a nil *Node would make the interface non-nil
		c.Replication = a.replication
	}
	if a.storage.Keeper != nil { // a nil *Keeper would make the interface non-nil
		c.Keeper = a.storage.Keeper
	}
	return c
}

// backgroundThreads returns how many long commands run at once, and lets the runtime execute that many
// goroutines beside the event loops. A loop keeps its P while it waits in the kernel: if loops had every P,
// everything else, such as scripts, would wait up to 10 ms for preemption. The system shares the processors
// among the threads.
func backgroundThreads(ioThreads int) int {
	places := runtime.GOMAXPROCS(0)
	if places > ioThreads {
		return places - max(1, ioThreads) // without loops, one for clients
	}
	runtime.GOMAXPROCS(ioThreads + 1)
	return 1
}

func (a *app) newServer() *server.Server {
	return server.New(server.Config{
		NewSession: func(p peer.Peer, c peer.Conn) peer.Session { return a.engine.NewSession(p, c) },
		Admit:      a.admit,
		IOThreads:  a.options.IOThreads,
		Limits:     serverLimits(a.options),
		Now:        a.now,
		Log:        a.log,
	})
}

// newScripts returns the script engine, or nil. cacheBytes bounds its cache; 0 is the default.
func newScripts(o *settings.Options, cat *catalog.Catalog, now func() int64, cacheBytes int64) *lua.Engine {
	if !o.Lua {
		return nil
	}
	return lua.New(lua.Config{
		Now: now, ThreadNow: lua.ThreadClock(), TimeLimit: o.LuaTimeLimit, MaxReplyBytes: o.MaxOutputBytes,
		MaxCacheBytes: int(cacheBytes), Native: cat.Batched(), Version: catalog.RedisVersion,
	})
}

// handshakeTimeout is for TLS and, where required, AUTH: what other doors give a stranger.
const handshakeTimeout = 10 * time.Second

func serverLimits(o *settings.Options) server.Limits {
	return server.Limits{
		MaxClients:           o.MaxClients,
		MaxClientsPerAddress: o.MaxClientsPerAddress,
		MaxOutputBytes:       o.MaxOutputBytes,
		OutputTimeout:        o.OutputTimeout,
		InputTimeout:         o.InputTimeout,
		IdleTimeout:          o.Timeout,
		HandshakeTimeout:     handshakeTimeout,
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
	if a.listeners.TCP != nil {
		c.Port = a.listeners.TCP.Addr().(*net.TCPAddr).Port
	}
	return c
}

// run serves until ctx is done or a part fails, then ends gracefully.
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
	if a.listeners.Metrics != nil {
		a.serveMetrics(background, start)
	}
	a.storage.Tend(background, a.parts.run, func(ns int64) { a.engine.Records.Latency(observe.SweepEvent, a.now(), ns) })
	a.parts.run("the care of memory", func() { a.storage.TendMemory(background, a.engine.Clients.Memory) })
	hangups := cli.HangupsOf(ctx).Signals
	a.parts.run("reloading", func() { a.reloadOn(background, hangups) })
	a.parts.run("the prober", func() { a.prober.Run(ctx) })
	a.parts.run("the watchdog", func() { a.feedWatchdog(background) })

	a.parts.run("the rules for Envoy", func() { a.doors.Watch(background) })

	a.letInOnceLoaded(background, start)
	<-ctx.Done()
	a.setNotReady("shutting down")
	err := a.end(endBackground)
	a.storage.Close()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

func (a *app) serveMetrics(background context.Context, start func(name string, part func() error)) {
	l := a.listeners.Metrics
	config := metrics.Config{
		Store: a.storage.Store, Remote: a.storage.RemoteStatus(), Replication: a.replicationStatus(), Records: a.engine.Records, Logins: a.engine.Logins, Clients: a.engine.Clients, NewKeys: a.engine.NewKeys,
		Now: a.now, Server: a.server, Maximum: a.storage.Memory.Maximum, Persistence: a.storage.Persistence(), Limits: a.storage.Limits, Spent: a.storage.Spent, Doors: a.doors.Stats(), Envoy: a.doors.envoy, EnvoyFailed: a.doors.RulesFailed, Build: buildinfo.Read(),
		Ready: a.ready, Alive: a.prober.Alive, Degraded: a.storage.Degraded, LostLogLines: a.lines.Dropped,
		Access: a.web.Access, Profiles: a.options.Pprof, BoundTo: l.Addr(), AllowedHosts: a.options.MetricsHosts,
		TopKeys: a.options.TopKeysMetric, TopKeyNames: a.options.TopKeysNames,
	}
	if !a.options.NoDashboard {
		actions := a.newActions()
		page := a.newPage(actions)
		config.Page = page
		if actions != nil { // a nil *Handler would make the interface non-nil
			config.Actions = actions
		}
		a.parts.run("the live page", func() { page.Run(background) })
	}
	start("the metrics address", func() error { return a.web.Serve(l, metrics.Handler(config)) })
}

func (a *app) serveClients(start func(name string, part func() error)) {
	for _, l := range []net.Listener{a.listeners.TCP, a.listeners.Unix} {
		if l != nil {
			start("a listener", func() error { return a.server.Serve(l) })
		}
	}
	if l := a.listeners.TLS; l != nil {
		start("a listener", func() error { return a.server.ServeTLS(l, a.certs.Config()) })
	}
	a.doors.Serve(start)
}

func (a *app) topKeys(kind topkeys.Ranking, n int) []topkeys.Entry {
	return a.engine.Records.TopKeys.Top(kind, a.now(), n)
}
