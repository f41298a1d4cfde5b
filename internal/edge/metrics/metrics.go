// Package metrics serves health and readiness checks, metrics in Prometheus's formats, and profiles over
// HTTP. Metrics are collected at each scrape. The handler is safe for concurrent use.
package metrics

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cellserver/internal/base/buildinfo"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/rls"
	"cellserver/internal/edge/server"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

// Config configures a handler.
type Config struct {
	Store   store.Store
	Records *observe.Records
	Logins  *clients.Logins
	Clients *clients.Register
	NewKeys *clients.NewKeys
	Now     func() int64 // Unix nanoseconds
	Server  *server.Server
	Maximum func() store.Maximum // nil for none
	// Persistence returns the state of the data directory; nil without one.
	Persistence func() store.Durability
	// Remote returns the state of a store on other machines; nil for a store in memory.
	Remote func() store.Health
	// Replication returns the state of replication; nil for a store on other machines.
	Replication func() replicas.Status
	Limits      *namedlimit.Registry
	Spent       func(limit string) store.Spends // under a limit, or all if it is empty; nil for none
	Doors       map[string]*door.Stats          // by name
	Envoy       *rls.Service                    // nil without a door for it
	EnvoyLimits func() envoyconfig.Status       // of that
	EnvoyLabels map[string]string               // of its series by rule
	Build       buildinfo.Info
	// Ready returns an error while clients are not served, Alive once that has lasted so long that the
	// process should be restarted. Both return soon.
	Ready func(context.Context) error
	Alive func() error
	// Degraded lists, a line each, what a ready server fails to do; nil means nothing.
	Degraded     func() []string
	LostLogLines func() uint64
	Access       *Access      // guards everything but /healthz and /readyz
	Page         http.Handler // at /, /live.json and /runbook; nil for none
	Actions      http.Handler // at /signin, /signout and /act; nil for none
	Path         string       // of the metrics, beside /metrics; "" for none
	TopKeys      int          // keys per ranking in a metric; 0 for none
	TopKeyNames  NameStyle
	Profiles     bool // serve /debug/pprof
	// BoundTo is the listener's address. On loopback only requests for a loopback host are answered, so that
	// no web page can reach it by DNS rebinding.
	BoundTo net.Addr
	// AllowedHosts are further host names to answer for. If there are any, other names are refused on every
	// address, except for /healthz and /readyz.
	AllowedHosts []string
}

// Handler returns the HTTP handler.
func Handler(c Config) http.Handler {
	guarded, renders := http.NewServeMux(), newShare()
	// OpenMetrics without _created lines: Prometheus makes series of them unless told otherwise, and
	// process_start_time_seconds says the same.
	formats := promhttp.HandlerOpts{EnableOpenMetrics: true}
	guarded.Handle("GET /metrics", renders.handler(promhttp.HandlerFor(newRegistry(&c), formats)))
	if c.Page != nil {
		page := renders.handler(c.Page)
		guarded.Handle("GET /{$}", page)
		guarded.Handle("GET /live.json", page)
		guarded.Handle("GET /runbook", page)
	}
	if c.Actions != nil { // waits longer than others, for the disk
		for _, path := range []string{"/signin", "/signout", "/act"} {
			guarded.Handle(path, c.Actions)
		}
	}
	guarded.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the HTTP API is not at the metrics address, but at --http-addr", http.StatusNotFound)
	})
	if c.Profiles {
		handleProfiles(guarded)
	}
	tcp, ok := c.BoundTo.(*net.TCPAddr)
	allowed := hosts{c.AllowedHosts, ok && tcp.IP.IsLoopback()}
	all := c.Access.guard(guarded)
	if len(allowed.names) > 0 {
		all = allowed.guard(all)
	}
	mux := http.NewServeMux()
	mux.Handle("/", c.atPath(all))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeHealth(w, c.Alive(), nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { writeHealth(w, c.Ready(r.Context()), c.Degraded) })
	if allowed.loopback && len(allowed.names) == 0 {
		return allowed.guard(mux)
	}
	return mux
}

// atPath serves the metrics at Path, too.
func (c *Config) atPath(next http.Handler) http.Handler {
	if c.Path == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == c.Path {
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = "/metrics", ""
		}
		next.ServeHTTP(w, r)
	})
}

func writeHealth(w http.ResponseWriter, err error, degraded func() []string) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
	if degraded == nil {
		return
	}
	for _, way := range degraded() {
		_, _ = io.WriteString(w, "degraded: "+way+"\n")
	}
}

func (c *Config) topKeys(kind topkeys.Ranking, n int) []topkeys.Entry {
	return c.Records.TopKeys.Top(kind, c.Now(), n)
}

func newRegistry(c *Config) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.CollectorFunc(c.collect),
	)
	return registry
}

// handleProfiles omits pprof's cmdline, which would show a password given as a flag.
func handleProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}

// hosts decides by the Host header whether a request is meant for this server. A web page whose name resolves
// to this address (DNS rebinding) could otherwise read it through a visitor's browser. The header is then the
// page's name, never an IP address.
type hosts struct {
	names    []string // in addition to localhost
	loopback bool     // the server listens on loopback only
}

// guard answers 403 to requests for other hosts.
func (a hosts) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.allows(r.Host) {
			http.Error(w, a.refusal(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (a hosts) refusal() string {
	if a.loopback {
		return "this address answers only to a loopback host, such as localhost, and to --metrics-allowed-hosts"
	}
	return "this address answers only to an IP address, localhost, and --metrics-allowed-hosts"
}

// allows checks a Host header, with or without a port.
func (a hosts) allows(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if ip := net.ParseIP(host); ip != nil {
		return !a.loopback || ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost") ||
		slices.ContainsFunc(a.names, func(name string) bool { return strings.EqualFold(host, name) })
}
