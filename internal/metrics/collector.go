package metrics

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"cellserver/internal/histogram"
	"cellserver/internal/store"
)

// collector reads the figures of the floors below at each scrape. No label has a value that a client chooses.
type collector struct{ config *Config }

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	to := sink(ch)
	var st store.Stats
	c.config.Store.UpdateStats(&st)
	to.store(&st)
	c.collectCommands(to)
	c.collectConnections(to)
	ready := 0
	if c.config.NotReady() == "" {
		ready = 1
	}
	to.gauge("ready", "Whether clients are served: 0 while the server starts or shuts down.", ready)
	info := desc("build_info", "The server's version and that of Go, as labels of a 1.", "version", "goversion")
	to <- prometheus.MustNewConstMetric(info, prometheus.GaugeValue, 1, c.config.Version, runtime.Version())
}

func (to sink) store(st *store.Stats) {
	decisions := desc("decisions_total", "Limiter decisions by command and outcome; those of calls within scripts and transactions are among them.", "command", "outcome")
	to.series(decisions, prometheus.CounterValue, float64(st.Allowed), "cl.throttle", "allowed")
	to.series(decisions, prometheus.CounterValue, float64(st.Limited), "cl.throttle", "denied")
	to.counter("tokens_asked_total", "Units that callers asked for; one call counts for 2^32 at most.", st.Requested)
	to.counter("tokens_granted_total", "Units of the calls that were allowed.", st.Granted)
	to.gauge("keys", "Keys in the store, those included that expired in the last seconds.", st.Keys)
	to.gauge("table_slots", "Keys that there is room for before a table grows.", st.Slots)
	to.gauge("table_bytes", "Memory of the tables that hold the keys.", st.Bytes)
	to.counter("expired_keys_total", "Expired keys that the sweep removed.", st.Expired)
	to.counter("swept_segments_total", "Parts of tables, 155 slots each, that the sweep looked at.", st.Swept)
}

func (c *collector) collectCommands(to sink) {
	st := c.config.Records.Stats()
	failedLogins, _ := c.config.Logins.Total()
	to.labelled("commands_total", "Commands that were executed, those included that failed.", "command", st.Calls)
	to.labelled("errors_total", "Error replies by their codes, those that are not ours as other.", "code", st.Errors)
	to.counter("protocol_errors_total", "Connections closed for bytes that are no command.", st.ProtocolErrors)
	to.counter("auth_failures_total", "Logins with a wrong user name or password.", failedLogins)
	to.labelled("scripts_total", "Lua scripts by outcome: completed, failed with an error, or ended by a bound.", "outcome", st.Scripts)
	durations := desc("command_duration_seconds", "How long commands took; the calls of a batch take as long as the batch.", "command")
	for command, d := range st.Durations {
		to <- newDuration(durations, d, st.Since, command)
	}
	sizes := desc("batch_size", "Calls of CL.THROTTLE that were decided together.")
	to <- prometheus.MustNewConstHistogram(sizes, st.Batches.Count, float64(st.Batches.Commands), st.Batches.UpTo)
}

func (c *collector) collectConnections(to sink) {
	st := c.config.Server.Stats()
	to.gauge("connections", "Clients that are connected.", st.Connected)
	to.gauge("connections_max", "Clients that may be connected at once: --maxclients.", c.config.Server.Limits().MaxClients)
	to.counter("connections_accepted_total", "Connections accepted.", st.Accepted)
	to.labelled("connections_refused_total", "Connections refused by --maxclients or by --protected-mode.", "reason",
		map[string]uint64{"maxclients": st.Refused, "protected_mode": st.Denied})
	to.labelled("connections_closed_total", "Accepted connections that have ended, by why: the client closed it, the "+
		"session did (QUIT, a protocol error), a bound was reached (idle, handshake, output), or else.", "reason", st.Closed)
	to.counter("tls_handshakes_failed_total", "Connections closed because TLS could not be agreed on.", st.HandshakesFailed)
	to.counter("panics_total", "Connections closed by a panic.", st.Panics)
	to.counter("received_bytes_total", "Bytes received from clients.", st.Received)
	to.counter("sent_bytes_total", "Bytes sent to clients.", st.Sent)
}

// sink takes metrics.
type sink chan<- prometheus.Metric

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("cellserver_"+name, help, labels, nil)
}

func (to sink) series(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
}

func (to sink) counter(name, help string, n uint64) {
	to.series(desc(name, help), prometheus.CounterValue, float64(n))
}

func (to sink) gauge(name, help string, n int) {
	to.series(desc(name, help), prometheus.GaugeValue, float64(n))
}

func (to sink) labelled(name, help, label string, counts map[string]uint64) {
	d := desc(name, help, label)
	for value, n := range counts {
		to.series(d, prometheus.CounterValue, float64(n), value)
	}
}

// duration is a histogram in both of Prometheus's forms: the native one is for scrapes in its protobuf format, all
// others get the classic one.
type duration struct{ native, classic prometheus.Metric }

func newDuration(d *prometheus.Desc, s histogram.Snapshot, since time.Time, labels ...string) prometheus.Metric {
	sec := float64(s.SumNs) / 1e9
	return duration{
		native: must(prometheus.NewConstNativeHistogram(d, s.Count, sec, s.Native(), nil, 0, histogram.Schema, 0,
			since, labels...)),
		classic: prometheus.MustNewConstHistogram(d, s.Count, sec, s.Classic(), labels...),
	}
}

// must is for what is wrong only if this file is.
func must(m prometheus.Metric, err error) prometheus.Metric {
	if err != nil {
		panic(err)
	}
	return m
}

// Desc implements prometheus.Metric.
func (d duration) Desc() *prometheus.Desc { return d.native.Desc() }

// Write implements prometheus.Metric.
func (d duration) Write(m *dto.Metric) error {
	var classic dto.Metric
	if err := d.classic.Write(&classic); err != nil {
		return err
	}
	if err := d.native.Write(m); err != nil {
		return err
	}
	m.Histogram.Bucket = classic.Histogram.Bucket
	return nil
}
