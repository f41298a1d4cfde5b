// Package metrics serves what operators ask for over HTTP: /healthz and, in Prometheus's format, /metrics. All
// figures are pulled when they are asked for. Its handler is safe for concurrent use.
package metrics

import (
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cellserver/internal/command"
	"cellserver/internal/server"
	"cellserver/internal/shard"
)

// Handler returns the HTTP handler. boundTo is the address that its listener is bound to: on a loopback address
// only requests for a loopback host are answered, so that no web page can reach it by DNS rebinding. What more there
// is to collect is the caller's.
func Handler(store *shard.Store, commands *command.Engine, clients *server.Server, boundTo net.Addr, more ...prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newCollector(store, commands, clients),
	)
	registry.MustRegister(more...)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	if tcp, ok := boundTo.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return loopbackOnly(mux)
	}
	return mux
}

func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopbackHost(r.Host) {
			http.Error(w, "this address answers only to a loopback Host, such as localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopbackHost reports whether a Host header, with a port or without, names this machine to itself.
func isLoopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// collector reads the figures of the floors below at each scrape.
type collector struct {
	store    *shard.Store
	commands *command.Engine
	clients  *server.Server

	decisions, keys, expired, connections, accepted, refused, denied, handshakesFailed, authFailures, panics *prometheus.Desc
}

func newCollector(store *shard.Store, commands *command.Engine, clients *server.Server) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("cellserver_"+name, help, labels, nil)
	}
	return &collector{
		store:            store,
		commands:         commands,
		clients:          clients,
		decisions:        desc("decisions_total", "Limiter decisions by command and outcome.", "command", "outcome"),
		keys:             desc("keys", "Keys in the store, those included that expired in the last seconds."),
		expired:          desc("expired_keys_total", "Expired keys that the sweep removed."),
		handshakesFailed: desc("tls_handshakes_failed_total", "Connections closed because TLS could not be agreed on."),
		connections:      desc("connections", "Clients that are connected."),
		accepted:         desc("connections_accepted_total", "Connections accepted."),
		refused:          desc("connections_refused_total", "Connections refused because of --maxclients."),
		denied:           desc("connections_denied_total", "Connections denied by --protected-mode."),
		authFailures:     desc("auth_failures_total", "Logins with a wrong user name or password."),
		panics:           desc("panics_total", "Connections closed by a panic."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, n int) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n))
	}
	var st shard.Stats
	c.store.UpdateStats(&st)
	counter(c.decisions, st.Allowed, "cl.throttle", "allowed")
	counter(c.decisions, st.Denied, "cl.throttle", "denied")
	gauge(c.keys, st.Keys)
	counter(c.expired, st.Expired)

	clients := c.clients.Stats()
	gauge(c.connections, clients.Connected)
	counter(c.accepted, clients.Accepted)
	counter(c.refused, clients.Refused)
	counter(c.denied, clients.Denied)
	counter(c.handshakesFailed, clients.HandshakesFailed)
	counter(c.authFailures, c.commands.FailedLogins())
	counter(c.panics, clients.Panics)
}
