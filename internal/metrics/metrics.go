// Package metrics serves over HTTP what operators need: health and readiness checks, metrics in Prometheus's format, and
// profiles. Metrics are collected when they are scraped. Its handler is safe for concurrent use.
package metrics

import (
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cellserver/internal/clients"
	"cellserver/internal/login"
	"cellserver/internal/observe"
	"cellserver/internal/server"
	"cellserver/internal/store"
	"cellserver/internal/topkeys"
)

// Config configures a handler.
type Config struct {
	Store       store.Store
	Records     *observe.Records
	Logins      *login.Failures
	Clients     *clients.Register
	NewKeys     *clients.NewKeys
	Now         func() int64 // Unix nanoseconds
	Server      *server.Server
	Version     string
	NotReady    func() (why string) // empty while clients are served
	Access      *Access             // for everything but /healthz and /readyz
	Page        http.Handler        // at /, nil for none
	TopKeys     int                 // how many a metric shows of each ranking; 0 for none
	TopKeyNames NameStyle
	Profiles    bool // whether /debug/pprof is served
	// BoundTo is the listener's address. On a loopback address only requests for a loopback host are answered, so that
	// no web page can reach it by DNS rebinding.
	BoundTo net.Addr
}

// Handler returns the HTTP handler.
func Handler(c Config) http.Handler {
	guarded := http.NewServeMux()
	guarded.Handle("GET /metrics", promhttp.HandlerFor(newRegistry(&c), promhttp.HandlerOpts{}))
	if c.Page != nil {
		guarded.Handle("GET /{$}", c.Page)
	}
	if c.Profiles {
		handleProfiles(guarded)
	}
	mux := http.NewServeMux()
	mux.Handle("/", c.Access.guard(guarded))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := c.NotReady(); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	if tcp, ok := c.BoundTo.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return loopbackOnly(mux)
	}
	return mux
}

func (c *Config) topKeys(kind topkeys.Ranking, n int) []topkeys.Entry {
	return c.Records.TopKeys.Top(kind, c.Now(), n)
}

func newRegistry(c *Config) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{config: c},
		newTopKeysCollector(c.topKeys, c.TopKeys, c.TopKeyNames),
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

func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopbackHost(r.Host) {
			http.Error(w, "this address answers only to a loopback host, such as localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopbackHost reports whether a Host header, with or without a port, names the loopback interface.
func isLoopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
