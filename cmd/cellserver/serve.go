package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"cellserver/internal/command"
	"cellserver/internal/funnel"
	"cellserver/internal/metrics"
	"cellserver/internal/resp"
	"cellserver/internal/server"
	"cellserver/internal/shard"
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
	listeners, err := o.listen(ctx)
	if err != nil {
		return err
	}
	defer listeners.close()
	o.maxClients = fitMaxClients(o.maxClients, o.ioThreads, log)
	return newApp(o, log, listeners).run(ctx)
}

// app is the parts of a running server.
type app struct {
	options   *options
	log       *slog.Logger
	listeners *listeners
	now       func() int64
	store     *shard.Store
	server    *server.Server
}

func newApp(o *options, log *slog.Logger, l *listeners) *app {
	a := &app{options: o, log: log, listeners: l, now: monotonicClock(), store: shard.New()}
	reading := funnel.Burst
	if o.burstIsCapacity {
		reading = funnel.Capacity
	}
	engine := command.NewEngine(command.Config{
		Store:       a.store,
		Now:         a.now,
		Reading:     reading,
		Databases:   o.databases,
		MaxKeyBytes: o.maxKeyBytes,
		Limits:      resp.Limits{MaxArgs: o.maxArgs, MaxCommandBytes: o.maxCommandBytes},
		Password:    o.requirePass,
		Version:     version,
		Settings:    o.settings(),
		Clients:     a.clientStats,
		Log:         log,
	})
	a.server = server.New(server.Config{
		NewSession: func(p command.Peer, wake func()) server.Session { return engine.NewSession(p, wake) },

		IOThreads:        o.ioThreads,
		MaxClients:       o.maxClients,
		MaxOutputBytes:   o.maxOutputBytes,
		OutputTimeout:    o.outputTimeout,
		IdleTimeout:      o.timeout,
		HandshakeTimeout: o.handshakeTimeout,
		Log:              log,
	})
	return a
}

func (a *app) clientStats() command.ClientStats {
	st := a.server.Stats()
	c := command.ClientStats{
		Connected:  st.Connected,
		MaxClients: a.options.maxClients,
		Accepted:   st.Accepted,
		Refused:    st.Refused,
	}
	if a.listeners.tcp != nil {
		c.Port = a.listeners.tcp.Addr().(*net.TCPAddr).Port
	}
	return c
}

// run serves until ctx is done, or until a part fails, and then ends in good order.
func (a *app) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var parts sync.WaitGroup
	start := func(part func() error) {
		parts.Go(func() {
			if err := part(); err != nil && !errors.Is(err, server.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
				stop(err)
			}
		})
	}
	for _, l := range a.listeners.clients() {
		start(func() error { return a.server.Serve(l) })
	}
	web := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       10 * time.Second,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
	}
	if l := a.listeners.metrics; l != nil {
		web.Handler = metrics.Handler(a.store, a.server, l.Addr())
		start(func() error { return web.Serve(netutil.LimitListener(l, maxScrapers)) })
	}
	background, endBackground := context.WithCancel(context.WithoutCancel(ctx))
	parts.Go(func() { shard.NewSweeper(a.store).Run(background, a.now) })
	parts.Go(func() { returnMemory(background, a.keys) })

	a.logReady()
	<-ctx.Done()
	a.shutdown(web)
	endBackground()
	parts.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// maxScrapers bounds the connections to the metrics address, so that they leave descriptors to the clients.
const maxScrapers = 16

func (a *app) keys() int {
	var st shard.Stats
	a.store.UpdateStats(&st)
	return st.Keys
}

func (a *app) logReady() {
	attrs := []any{"version", version}
	for _, l := range a.listeners.clients() {
		attrs = append(attrs, l.Addr().Network(), l.Addr().String())
	}
	if l := a.listeners.metrics; l != nil {
		attrs = append(attrs, "metrics", l.Addr().String())
	}
	a.log.Info("ready", attrs...)
	if l := a.listeners.tcp; l != nil && !l.Addr().(*net.TCPAddr).IP.IsLoopback() && a.options.requirePass == "" {
		a.log.Warn("other hosts can reach this server and it asks for no password; set "+envName("requirepass")+
			" or keep the port behind a firewall", "tcp", l.Addr().String())
	}
}

func (a *app) shutdown(web *http.Server) {
	a.log.Info("shutting down", "clients", a.server.Stats().Connected, "timeout", a.options.shutdownTimeout.String())
	ctx, cancel := context.WithTimeout(context.Background(), a.options.shutdownTimeout)
	defer cancel()
	if err := a.server.Shutdown(ctx); err != nil {
		a.log.Warn("some clients did not end in time and were cut off", "error", err)
	}
	if err := web.Shutdown(ctx); err != nil {
		_ = web.Close()
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

// listeners is what the server listens on; nil where nothing was asked for.
type listeners struct{ tcp, unix, metrics net.Listener }

func (o *options) listen(ctx context.Context) (*listeners, error) {
	var err error
	var config net.ListenConfig
	l := &listeners{}
	if o.addr != "" {
		if l.tcp, err = config.Listen(ctx, "tcp", o.addr); err != nil {
			return nil, listenError("addr", o.addr, err)
		}
	}
	if o.metricsAddr != "" {
		if l.metrics, err = config.Listen(ctx, "tcp", o.metricsAddr); err != nil {
			l.close()
			return nil, listenError("metrics-addr", o.metricsAddr, err)
		}
	}
	if o.unixSocket != "" {
		if l.unix, err = listenUnix(ctx, config, o.unixSocket); err != nil {
			l.close()
			return nil, listenError("unixsocket", o.unixSocket, err)
		}
	}
	return l, nil
}

func listenError(flag, addr string, err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err // without the address, which is said already
	}
	return fmt.Errorf("cannot listen on %s: %w; choose another with --%s or %s", addr, err, flag, envName(flag))
}

// clients returns the listeners for Redis clients.
func (l *listeners) clients() (all []net.Listener) {
	for _, one := range []net.Listener{l.tcp, l.unix} {
		if one != nil {
			all = append(all, one)
		}
	}
	return all
}

func (l *listeners) close() {
	for _, one := range []net.Listener{l.tcp, l.unix, l.metrics} {
		if one != nil {
			_ = one.Close()
		}
	}
}
