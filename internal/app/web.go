package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/buildinfo"
	"cellserver/internal/base/certs"
	"cellserver/internal/base/often"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/metrics"
)

// maxWebConns bounds connections to the metrics address, so that descriptors are left for clients. An
// attacker blocks a health check only by opening this many between its connection and its request.
const maxWebConns = 32

// requestTimeout bounds the arrival of a request's header, and then of its body.
const requestTimeout = 5 * time.Second

// webServer serves HTTP on the metrics address, and keeps connections free for health checks.
type webServer struct {
	server *http.Server
	also   []*http.Server // at other addresses
	Access *metrics.Access
	Certs  *certs.Keeper // nil without TLS
}

// newWebServer reads the certificate and token of the metrics address.
func newWebServer(o *settings.Options, now func() int64, to *slog.Logger) (*webServer, error) {
	w := &webServer{Access: &metrics.Access{Log: to, Now: now}}
	w.server = newHTTPServer(now, to)
	if err := readToken(o, w.Access, to); err != nil {
		return nil, err
	}
	if o.MetricsTLSCert == "" {
		return w, nil
	}
	var err error
	w.Certs, err = certs.Open(certs.Files{Flags: "--metrics-tls", Cert: o.MetricsTLSCert, Key: o.MetricsTLSKey}, time.Now, to)
	return w, err
}

// newHTTPServer returns a server for one address, with its bounds.
func newHTTPServer(now func() int64, to *slog.Logger) *http.Server {
	return &http.Server{
		ReadHeaderTimeout: requestTimeout,
		MaxHeaderBytes:    64 << 10,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       10 * time.Second,
		ErrorLog:          log.New(&webLog{log: to, now: now}, "", 0),
		ConnState:         (&webConns{maxConns: maxWebConns, log: to, now: now, conns: map[net.Conn]webConn{}}).changed,

		DisableGeneralOptionsHandler: true, // it would answer before door.CloseDoubtful
	}
}

func readToken(o *settings.Options, access *metrics.Access, log *slog.Logger) error {
	token, err := settings.ReadSecret("--metrics-token-file", o.MetricsTokenFile, "the token", log)
	if err != nil {
		return err
	}
	if strings.ContainsFunc(token, unicode.IsSpace) { // not allowed in a header
		return fmt.Errorf("--metrics-token-file %s must be one line without spaces", o.MetricsTokenFile)
	}
	access.Set(token)
	return nil
}

func (w *webServer) Serve(l net.Listener, h http.Handler) error {
	w.server.Handler = guarded(h)
	if w.Certs != nil {
		l = tls.NewListener(l, w.Certs.Config())
	}
	return w.server.Serve(l)
}

// Also returns a function that serves another address, without TLS, until Shutdown.
func (w *webServer) Also(l net.Listener, h http.Handler) func() error {
	s := newHTTPServer(w.Access.Now, w.Access.Log)
	s.Handler = guarded(h)
	w.also = append(w.also, s)
	return func() error { return s.Serve(l) }
}

// Shutdown ends the server: gracefully until ctx is done, then at once.
func (w *webServer) Shutdown(ctx context.Context) {
	for _, s := range append([]*http.Server{w.server}, w.also...) {
		if s.Shutdown(ctx) != nil {
			_ = s.Close()
		}
	}
}

// guarded closes connections behind doubtful requests, and bounds the time for reading a request's body:
// net/http reads its rest after the response. ReadTimeout would also cut long requests for profiles.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		door.CloseDoubtful(w, r)
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(requestTimeout))
		}
		next.ServeHTTP(w, r)
	})
}

// Reload rereads token and certificates. Bad ones are logged, and the previous ones stay in use.
func (w *webServer) Reload(o *settings.Options, log *slog.Logger) {
	if w.Certs != nil {
		w.Certs.Reload()
	}
	if err := readToken(o, w.Access, log); err != nil {
		log.Error("cannot use the changed token of the metrics address; the previous one stays in use", "error", err,
			"hint", "correct the file and send SIGHUP")
	}
}

// URL returns what a browser on this host opens for addr, the listener's address.
func (w *webServer) URL(addr net.Addr) string {
	to, host := url.URL{Scheme: "http", Host: addr.String(), Path: "/"}, addr.(*net.TCPAddr)
	if w.Certs != nil {
		to.Scheme = "https"
	}
	if host.IP.IsUnspecified() {
		to.Host = net.JoinHostPort("localhost", strconv.Itoa(host.Port))
	}
	return to.String()
}

// WarnOfOtherHosts warns if other hosts can reach an unprotected metrics address.
func (w *webServer) WarnOfOtherHosts(l net.Listener, log *slog.Logger) {
	if !isOpenToOthers(l) {
		return
	}
	addr := l.Addr().String()
	switch {
	case w.Access.IsOpen():
		log.Warn("other hosts can reach the metrics address and it requires no token; set --metrics-token-file, "+
			"or protect the port with a firewall", "metrics", addr)
	case w.Certs == nil:
		log.Warn("the token of the metrics address crosses the network unencrypted; set --metrics-tls-cert and "+
			"--metrics-tls-key, or protect the port with a firewall", "metrics", addr)
	}
}

func (a *app) metricsConfig() metrics.Config {
	return metrics.Config{
		Store: a.storage.Store, Remote: a.storage.RemoteStatus(), Replication: a.replicationStatus(), Records: a.engine.Records, Logins: a.engine.Logins, Clients: a.engine.Clients, NewKeys: a.engine.NewKeys,
		Now: a.now, Server: a.server, Maximum: a.storage.Memory.Maximum, Persistence: a.storage.Persistence(), Limits: a.storage.Limits, Spent: a.storage.Spent, Doors: a.doors.Stats(), Envoy: a.doors.envoy, EnvoyLimits: a.rules.Limits, Build: buildinfo.Read(),
		Ready: a.ready, Alive: a.prober.Alive, Degraded: a.storage.Degraded, LostLogLines: a.lines.Dropped,
		Access: a.web.Access, Profiles: a.options.Pprof, AllowedHosts: a.options.MetricsHosts,
		TopKeys: a.options.TopKeysMetric, TopKeyNames: a.options.TopKeysNames, EnvoyLabels: a.options.Doors.Envoy.Ratelimit.ExtraTags,
	}
}

func (a *app) serveMetrics(background context.Context, config metrics.Config, start func(name string, part func() error)) {
	l := a.listeners.Metrics
	config.BoundTo = l.Addr()
	if hasOneMetricsAddr(a.options) {
		config.Path = a.options.Doors.Envoy.Ratelimit.MetricsPath
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

// webLog logs messages of net/http at a limited rate, as clients can cause any number of them.
type webLog struct {
	log   *slog.Logger
	now   func() int64
	lines often.Counter
}

// Write implements io.Writer.
func (w *webLog) Write(line []byte) (int, error) {
	if count := w.lines.Due(w.now()); count > 0 {
		w.log.Warn("a client of the metrics address caused a problem", "problem", string(bytes.TrimSpace(line)), "count", count)
	}
	return len(line), nil
}

// webConns admits every new connection to the metrics address, so that slow or many clients cannot keep out
// health checks: beyond the limit it closes a connection of the host with most. Of those it closes the one
// that has waited longest for a request or, if all have one, the one with the oldest request. It is safe for
// concurrent use.
type webConns struct {
	maxConns int
	log      *slog.Logger
	now      func() int64

	mu     sync.Mutex // rank 90: guards all below
	turn   uint64     // counts the changes
	conns  map[net.Conn]webConn
	closed often.Counter
}

type webConn struct {
	host    string
	since   uint64 // a value of turn
	waiting bool   // for a request or the rest of its header
}

// changed is the http.Server's ConnState.
func (w *webConns) changed(nc net.Conn, state http.ConnState) {
	if excess := w.note(nc, state); excess != nil {
		if secured, ok := excess.(*tls.Conn); ok {
			excess = secured.NetConn() // skips TLS's close_notify, which could block
		}
		_ = excess.Close()
		if count := w.closed.Due(w.now()); count > 0 {
			w.log.Warn("too many connections to the metrics address; closed the slowest of the host with most",
				"client", excess.RemoteAddr().String(), "count", count)
		}
	}
}

// note returns a connection to close, or nil.
func (w *webConns) note(nc net.Conn, state http.ConnState) (excess net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(w.conns, nc)
		return nil
	}
	c, known := w.conns[nc]
	if !known && state != http.StateNew {
		return nil // closed by excessLocked
	}
	if state == http.StateNew {
		c.host = hostOf(nc)
		if len(w.conns) >= w.maxConns {
			excess = w.excessLocked()
			delete(w.conns, excess)
		}
	}
	w.turn++
	c.since, c.waiting = w.turn, state != http.StateActive
	w.conns[nc] = c
	return excess
}

func hostOf(nc net.Conn) string {
	if tcp, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return ""
}

// excessLocked chooses the connection to close.
func (w *webConns) excessLocked() (excess net.Conn) {
	have := map[string]int{}
	for _, c := range w.conns {
		have[c.host]++
	}
	var first webConn
	before := func(c webConn) bool {
		if have[c.host] != have[first.host] {
			return have[c.host] > have[first.host]
		}
		if c.waiting != first.waiting {
			return c.waiting
		}
		return c.since < first.since
	}
	for nc, c := range w.conns {
		if excess == nil || before(c) {
			excess, first = nc, c
		}
	}
	return excess
}
