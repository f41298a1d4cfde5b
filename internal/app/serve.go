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
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"cellserver/internal/app/cli"
	"cellserver/internal/app/ratelimit"
	"cellserver/internal/app/settings"
	"cellserver/internal/app/storage"
	"cellserver/internal/base/buildinfo"
	"cellserver/internal/base/certs"
	"cellserver/internal/base/clock"
	"cellserver/internal/base/logwriter"
	"cellserver/internal/decide/observe"
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
	settings.WarnOfUnknownVariables(ratelimit.OwnEnviron(o, os.Environ()), log)
	for _, warning := range o.Doors.Envoy.Ratelimit.Warnings {
		log.Warn(warning)
	}
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
	maxClients := o.MaxClients
	o.MaxClients = FitMaxClients(maxClients, o.IOThreads)
	a, err := newApp(ctx, o, clk, log, lines, keeper, web)
	if err != nil {
		return err
	}
	defer a.listeners.Close()
	a.logStart(maxClients)
	return a.run(ctx)
}

type app struct {
	options   *settings.Options
	log       *slog.Logger
	lines     *logwriter.Writer // of the log
	listeners *listeners
	certs     *certs.Keeper // nil without TLS
	grpcCerts *certs.Keeper // of the door of gRPC alone; nil for those of all
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
	rules       ruleSource
	firstRules  <-chan struct{} // closed once there are some over xDS
	prober      *prober
	parts       parts
	writers     sync.WaitGroup         // parts that write to the data directory beside its keeper
	background  context.Context        // of parts that a shutdown ends last
	notReady    atomic.Pointer[string] // why; empty while clients are served
	wasReady    atomic.Bool            // as Envoy's health has seen
	up          chan struct{}          // closed once clients are served
	stop        func()                 // ends the server gracefully

	endBackground func()
}

func newApp(
	ctx context.Context, o *settings.Options, clk *clock.Clock, log *slog.Logger, lines *logwriter.Writer, keeper *certs.Keeper, web *webServer,
) (*app, error) {
	cat := catalog.New()
	a := &app{
		options: o, log: log, lines: lines, listeners: &listeners{}, certs: keeper, web: web, now: clk.Now,
		access: newAccess(o, cat), up: make(chan struct{}), runID: admin.NewRunID(),
	}
	a.tuning = &tuning{app: a, loaded: o}
	a.background, a.endBackground = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	if a.grpcCerts, err = openRatelimitCerts(o, log); err == nil { // before limits over xDS are awaited
		err = a.openStorage(ctx, clk)
	}
	if err == nil {
		err = a.openEngine(cat, clk)
	}
	if err != nil {
		a.abandon()
		return nil, err
	}
	return a, nil
}

// openStorage opens the storage, the listeners and the rules for Envoy.
func (a *app) openStorage(ctx context.Context, clk *clock.Clock) (err error) {
	if !a.awaitsRules() { // else what is kept must be open first
		if err := a.listeners.open(ctx, a.options); err != nil {
			return err
		}
	}
	if a.storage, err = storage.Open(ctx, a.options, clk, a.log); err != nil {
		return err
	}
	if err := a.startRules(); err != nil {
		return err
	}
	if !a.awaitsRules() {
		return nil
	}
	if err := a.awaitRules(ctx); err != nil {
		return err
	}
	return a.listeners.open(ctx, a.options)
}

func (a *app) openEngine(cat *catalog.Catalog, clk *clock.Clock) error {
	o := a.options
	a.setNotReady("starting")
	if err := a.openReplication(clk); err != nil {
		return err
	}
	engine, err := commands.NewEngine(a.engineConfig(cat))
	if err != nil {
		return err
	}
	a.engine = engine
	a.storage.Memory.OnClients(a.engine.Clients.SetMaxMemory)
	a.engine.NewKeys.Limit(o.MaxNewKeysPerSecond)
	a.server = a.newServer()
	if a.doors, err = a.openDoors(); err != nil {
		return err
	}
	a.prober = &prober{Loops: a.server.Probe, Shards: func() { a.storage.Keys() }, Log: a.log}
	a.logPage()
	if o.ACLFile != "" {
		if err := a.engine.ReloadUsers(); err != nil {
			return fmt.Errorf("--aclfile: %w", err)
		}
	}
	a.access.warnOfUsers(&a.doors.tokens, a.log)
	if o.PageActions && !a.access.users.AnyPassword() {
		a.log.Warn("nobody can sign in on the live page to act there, as no user has a password: add one to --aclfile, or set --requirepass-file")
	}
	return nil
}

// abandon closes what a start has opened that has failed.
func (a *app) abandon() {
	a.endBackground()
	a.parts.wg.Wait()
	if a.storage != nil {
		a.storage.Close()
	}
	a.listeners.Close()
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
			Envoy:         a.rules.Limits,
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
	background := a.background
	config := a.metricsConfig()
	if a.listeners.Metrics != nil {
		a.serveMetrics(background, config, start)
	}
	a.servePrometheus(config, start)
	a.storage.Tend(background, a.parts.run, func(ns int64) { a.engine.Records.Latency(observe.SweepEvent, a.now(), ns) })
	a.parts.run("the care of memory", func() { a.storage.TendMemory(background, a.engine.Clients.Memory) })
	hangups := cli.HangupsOf(ctx).Signals
	a.parts.run("reloading", func() { a.reloadOn(background, hangups) })
	a.parts.run("the prober", func() { a.prober.Run(ctx) })
	a.parts.run("the watchdog", func() { a.feedWatchdog(background) })

	a.letInOnceLoaded(background, start)
	<-ctx.Done()
	a.setNotReady(shuttingDown)
	err := a.end(a.endBackground)
	a.storage.Close()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
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
	a.doors.Serve(false, start)
}
