package main

import (
	"context"
	"crypto/tls"
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

	"cellserver/internal/catalog"
	"cellserver/internal/certs"
	"cellserver/internal/commands"
	"cellserver/internal/commands/admin"
	"cellserver/internal/funnel"
	"cellserver/internal/lua"
	"cellserver/internal/metrics"
	"cellserver/internal/observe"
	"cellserver/internal/peer"
	"cellserver/internal/resp"
	"cellserver/internal/server"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/topkeys"
)

func runServe(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stdout)
	if err != nil || o == nil {
		return err
	}
	log, err := o.logger(stderr)
	if err != nil {
		return usageError{err}
	}
	if err := o.readPassword(log); err != nil {
		return err
	}
	keeper, err := o.openCerts(log)
	if err != nil {
		return err
	}
	now := monotonicClock()
	web, err := o.newWeb(now, log)
	if err != nil {
		return err
	}
	listeners, err := o.listen(ctx)
	if err != nil {
		return err
	}
	defer listeners.close()
	if most := fitMaxClients(o.maxClients, o.ioThreads); most < o.maxClients {
		log.Warn("the limit of open files allows fewer clients than --maxclients; raise it with ulimit -n",
			"maxclients", o.maxClients, "lowered_to", most)
		o.maxClients = most
	}
	a, err := newApp(o, now, log, listeners, keeper, web)
	if err != nil {
		return err
	}
	return a.run(ctx)
}

// app is the parts of a running server.
type app struct {
	options   *options
	log       *slog.Logger
	listeners *listeners
	certs     *certs.Keeper // nil without TLS
	now       func() int64
	store     *shard.Store
	access    *access
	engine    *commands.Engine
	server    *server.Server
	web       *web
	notReady  atomic.Pointer[string] // why; empty while clients are served
	stop      func()                 // ends the server gracefully
}

func newApp(o *options, now func() int64, log *slog.Logger, l *listeners, keeper *certs.Keeper, web *web) (*app, error) {
	cat := catalog.New()
	a := &app{
		options: o, log: log, listeners: l, certs: keeper, web: web, now: now, store: shard.New(),
		access: newAccess(o, cat),
	}
	a.setNotReady("starting")
	engine, err := commands.NewEngine(commands.Config{
		Store:             a.store,
		Now:               a.now,
		WallTime:          time.Now,
		Catalog:           cat,
		Users:             a.access.users,
		Reading:           o.reading(),
		Databases:         o.databases,
		MaxKeyBytes:       o.maxKeyBytes,
		MaxReplyBytes:     o.maxOutputBytes,
		Limits:            resp.Limits{MaxArgs: o.maxArgs, MaxCommandBytes: o.maxCommandBytes},
		ACLFile:           o.aclFile,
		Scripts:           o.scripts(a.now),
		BackgroundThreads: backgroundThreads(o.ioThreads), // once the store has as many shards as there are processors for
		Version:           version,
		Settings:          a.settings(),
		Thresholds:        o.thresholds,
		Connections:       a.connections,
		Shutdown:          func() { a.stop() },
		MayDebug:          o.mayDebug,
		Log:               log,
	})
	if err != nil {
		return nil, err
	}
	a.engine = engine
	a.server = server.New(server.Config{
		NewSession: func(p peer.Peer, c peer.Conn) peer.Session { return a.engine.NewSession(p, c) },
		Admit:      a.admit,
		IOThreads:  o.ioThreads,
		Limits:     o.limits(),
		Now:        a.now,
		Log:        log,
	})
	if o.aclFile != "" {
		if err := a.engine.ReloadUsers(); err != nil {
			return nil, fmt.Errorf("--aclfile: %w", err)
		}
	}
	return a, nil
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

// reading is how CL.THROTTLE's second argument is to be understood.
func (o *options) reading() funnel.Reading {
	if o.burstIsCapacity {
		return funnel.Capacity
	}
	return funnel.Burst
}

// scripts returns what executes scripts, or nil.
func (o *options) scripts(now func() int64) *lua.Engine {
	if !o.lua {
		return nil
	}
	return lua.New(lua.Config{Now: now, TimeLimit: o.luaTimeLimit, MaxReplyBytes: o.maxOutputBytes})
}

func (o *options) limits() server.Limits {
	return server.Limits{
		MaxClients:       o.maxClients,
		MaxOutputBytes:   o.maxOutputBytes,
		OutputTimeout:    o.outputTimeout,
		IdleTimeout:      o.timeout,
		HandshakeTimeout: o.handshakeTimeout,
	}
}

func (a *app) connections() admin.Connections {
	st := a.server.Stats()
	c := admin.Connections{
		Connected:  st.Connected,
		MaxClients: a.server.Limits().MaxClients,
		Accepted:   st.Accepted,
		Refused:    st.Refused + st.Denied,
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
	var parts sync.WaitGroup
	start := func(part func() error) {
		parts.Go(func() {
			if err := part(); err != nil && !errors.Is(err, server.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
				stop(err)
			}
		})
	}
	a.serveClients(start)
	background, endBackground := context.WithCancel(context.WithoutCancel(ctx))
	if l := a.listeners.metrics; l != nil {
		config := metrics.Config{
			Store: a.store, Records: a.engine.Records, Logins: a.engine.Logins, Now: a.now, Server: a.server, Version: version, NotReady: func() string { return *a.notReady.Load() },
			Access: a.web.access, Profiles: a.options.pprof, BoundTo: l.Addr(),
			TopKeys: a.options.topKeysMetric, TopKeyNames: a.options.topKeysNames,
		}
		if !a.options.noDashboard {
			page := a.newPage()
			config.Page = page
			parts.Go(func() { page.Run(background) })
		}
		start(func() error { return a.web.serve(l, metrics.Handler(config)) })
	}
	sweeper := shard.NewSweeper(a.store)
	sweeper.Took = func(ns int64) { a.engine.Records.Latency(observe.SweepEvent, a.now(), ns) }
	parts.Go(func() { sweeper.Run(background, a.now) })
	parts.Go(func() { returnMemory(background, a.keys) })
	parts.Go(func() { a.reloadOnHangup(background) })
	parts.Go(func() { a.feedWatchdog(background) })

	a.setNotReady("")
	a.logReady()
	a.notifyReady()
	<-ctx.Done()
	a.setNotReady("shutting down")
	a.shutdown()
	endBackground()
	parts.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// serveClients starts a part for each listener.
func (a *app) serveClients(start func(part func() error)) {
	for _, l := range []net.Listener{a.listeners.tcp, a.listeners.unix} {
		if l != nil {
			start(func() error { return a.server.Serve(l) })
		}
	}
	if l := a.listeners.tls; l != nil {
		start(func() error { return a.server.ServeTLS(l, a.certs.Config()) })
	}
}

// reloadOnHangup reloads on each SIGHUP.
func (a *app) reloadOnHangup(ctx context.Context) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			a.reload()
		}
	}
}

// reload reads again what stands in files. What cannot be used is logged, and what was there before stays.
func (a *app) reload() {
	a.notifyReloading()
	defer a.notifyReady()
	a.log.Info("reloading on SIGHUP")
	if a.certs != nil {
		a.certs.Reload()
	}
	a.web.reload(a.options, a.log)
	if a.options.aclFile == "" {
		return
	}
	if err := a.engine.ReloadUsers(); err != nil {
		a.log.Error("cannot use the ACL file; the users stay as they were", "error", err,
			"hint", "correct it and send SIGHUP, or ACL LOAD")
	}
}

func (a *app) setNotReady(why string) { a.notReady.Store(&why) }

func (a *app) keys() int {
	var st store.Stats
	a.store.UpdateStats(&st)
	return st.Keys
}

// topKeys returns up to n keys of a ranking, the first first.
func (a *app) topKeys(kind topkeys.Ranking, n int) []topkeys.Entry {
	return a.engine.Records.TopKeys.Top(kind, a.now(), n)
}

func (a *app) logReady() {
	attrs := []any{"version", version}
	for _, on := range []struct {
		kind string
		l    net.Listener
	}{
		{"tcp", a.listeners.tcp}, {"tls", a.listeners.tls}, {"unix", a.listeners.unix}, {"metrics", a.listeners.metrics},
	} {
		if on.l != nil {
			attrs = append(attrs, on.kind, on.l.Addr().String())
		}
	}
	a.log.Info("ready", attrs...)
	a.warnOfOtherHosts("tcp", a.listeners.tcp)
	if a.options.clientAuth() != tls.RequireAndVerifyClientCert || a.access.refusesOtherHosts() {
		a.warnOfOtherHosts("tls", a.listeners.tls)
	}
	a.web.warnOfOtherHosts(a.listeners.metrics, a.log)
}

func (a *app) shutdown() {
	a.log.Info("shutting down", "clients", a.server.Stats().Connected, "timeout", a.options.shutdownTimeout.String())
	ctx, cancel := context.WithTimeout(context.Background(), a.options.shutdownTimeout)
	defer cancel()
	a.notifyStopping()
	if err := a.server.Shutdown(ctx); err != nil {
		a.log.Warn("some clients did not end in time and were cut off", "error", err)
	}
	if err := a.web.server.Shutdown(ctx); err != nil {
		_ = a.web.server.Close()
	}
	a.log.Info("stopped")
}

// monotonicClock returns the time in Unix nanoseconds, anchored to the wall clock now: later steps of the wall
// clock do not reach it.
func monotonicClock() func() int64 {
	start := time.Now()
	startNs := start.UnixNano()
	return func() int64 { return startNs + int64(time.Since(start)) }
}
