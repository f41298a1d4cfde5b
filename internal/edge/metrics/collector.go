package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"cellserver/internal/base/buildinfo"
	"cellserver/internal/decide/histogram"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// collector reads the statistics of the store, the engine and the server at each scrape. No label value is chosen by a
// client.
type collector struct{ config *Config }

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	to := sink(ch)
	var st store.Stats
	c.config.Store.UpdateStats(&st)
	to.store(&st)
	var most store.Maximum
	if c.config.Maximum != nil {
		most = c.config.Maximum()
	}
	to.memory(&st, most)
	c.collectCommands(to)
	c.collectConnections(to)
	c.collectPersistence(to)
	c.collectRemote(to)
	c.collectLimits(to)
	ready := c.config.Ready(context.Background()) == nil
	to.truth("ready", "1 while clients are served, 0 while the server starts, does not respond or shuts down.", ready)
	to.labelled("log_lines_dropped_total", "Log lines that were not written: the log did not take them (full), or scripts logged too much (script).",
		"reason", map[string]uint64{"full": c.config.LostLogLines(), "script": c.config.Records.ScriptLinesLeftOut()})
	to.build(&c.config.Build)
}

// build follows Prometheus's own build_info, where a revision that the build did not know is "unknown", too.
func (to sink) build(b *buildinfo.Info) {
	revision := b.Revision
	switch {
	case revision == "":
		revision = "unknown"
	case b.Modified:
		revision += "-modified"
	}
	d := desc("build_info", "Always 1; the labels are the server's version and commit, and the version of Go.", "version", "revision", "goversion")
	to.series(d, prometheus.GaugeValue, 1, b.Version, revision, b.Go)
}

func (to sink) store(st *store.Stats) {
	decisions := desc("decisions_total", "Limiter decisions by outcome and by the limiter's command, including those within scripts and transactions; "+
		"cl.throttle stands for all commands on funnels but cl.reserve.", "command", "outcome")
	byCommand := map[string]store.Outcomes{}
	for kind, n := range st.Outcomes {
		command := limiter.Kind(kind).Row().Command
		sum := byCommand[command]
		byCommand[command] = store.Outcomes{Allowed: sum.Allowed + n.Allowed, Limited: sum.Limited + n.Limited}
	}
	for command, n := range byCommand {
		to.series(decisions, prometheus.CounterValue, float64(n.Allowed), command, "allowed")
		to.series(decisions, prometheus.CounterValue, float64(n.Limited), command, "denied")
	}
	to.counter("tokens_asked_total", "Units requested; one call counts for at most 2^32.", st.Requested)
	to.counter("tokens_granted_total", "Units granted to allowed calls.", st.Granted)
	to.gauge("keys", "Keys in this server's memory, including some that expired in the last seconds.", st.Keys)
	to.gauge("table_slots", "Keys that the tables can hold before one grows.", st.Slots)
	to.gauge("table_bytes", "Memory of the tables that hold the keys, in bytes.", st.Bytes)
	to.counter("expired_keys_total", "Expired keys removed by the sweeper.", st.Expired)
	to.counter("swept_segments_total", "Table segments of 155 slots examined by the sweeper.", st.Swept)
}

func (to sink) memory(st *store.Stats, most store.Maximum) {
	to.gauge("memory_max_bytes", "The largest memory of the server: --maxmemory, 0 for none.", int(most.Bytes))
	to.gauge("table_max_bytes", "The most memory of the tables that hold the keys, a part of --maxmemory; 0 for no maximum.", st.MaxBytes)
	policy := desc("memory_policy_info", "Always 1; the label is --maxmemory-policy.", "policy")
	to.series(policy, prometheus.GaugeValue, 1, most.Policy.String())
	to.counter("evicted_keys_total", "Keys evicted for new ones at the maximum, by volatile-ttl.", st.Evicted)
	to.counter("refused_keys_total", "Calls that failed because their new key had no room, by noeviction.", st.Refused)
}

func (c *collector) collectCommands(to sink) {
	st := c.config.Records.Stats()
	failedLogins, _ := c.config.Logins.Total()
	to.labelled("commands_total", "Commands executed, including those that failed.", "command", st.Calls)
	to.labelled("errors_total", "Error replies by error code; codes that scripts make up count as other.", "code", st.Errors)
	to.counter("protocol_errors_total", "Connections closed because of malformed input.", st.ProtocolErrors)
	to.counter("auth_failures_total", "Authentications with a wrong user name or password.", failedLogins)
	to.labelled("scripts_total", "Lua scripts by outcome: completed, failed with an error, or ended at a limit.", "outcome", st.Scripts)
	durations := desc("command_duration_seconds", "Duration of commands; cl.throttle stands for all that are decided in batches, of which each call counts with the duration of the batch.", "command")
	for command, d := range st.Durations {
		to <- newDuration(durations, d, st.Since, command)
	}
	sizes := desc("batch_size", "Calls of CL.THROTTLE, or of a command like it, decided in one batch.")
	to <- prometheus.MustNewConstHistogram(sizes, st.Batches.Count, float64(st.Batches.Commands), st.Batches.UpTo)
}

func (c *collector) collectConnections(to sink) {
	st := c.config.Server.Stats()
	to.gauge("connections", "Connected clients.", st.Connected)
	to.gauge("connections_max", "The largest number of connected clients: --maxclients.", c.config.Server.Limits().MaxClients)
	to.gauge("connections_blocked", "Clients that wait for their turn in a command that blocks.", c.config.Clients.Blocked())
	to.counter("connections_accepted_total", "Connections accepted.", st.Accepted)
	to.labelled("connections_refused_total", "Connections refused by --maxclients, --maxclients-per-address or --protected-mode.", "reason",
		map[string]uint64{"maxclients": st.Refused, "maxclients_per_address": st.RefusedAddresses, "protected_mode": st.Denied})
	to.labelled("connections_closed_total", "Closed connections by reason: closed by the client, by the session "+
		"(QUIT, a protocol error), at a limit (idle, handshake, input, output, memory), or for another reason.", "reason", st.Closed)
	to.gauge("client_memory_bytes", "Memory that clients hold: incomplete commands, unread replies, queued commands, watched keys.", int(c.config.Clients.Memory()))
	to.gauge("client_memory_max_bytes", "The most that clients may hold together: --maxmemory-clients; 0 for no limit.", int(c.config.Clients.MaxMemory()))
	to.counter("new_keys_refused_total", "Calls refused by --max-new-keys-per-second.", c.config.NewKeys.Refused())
	to.counter("tls_handshakes_failed_total", "Connections closed because the TLS handshake failed.", st.HandshakesFailed)
	to.counter("panics_total", "Connections closed by a panic.", st.Panics)
	to.counter("received_bytes_total", "Bytes received from clients.", st.Received)
	to.counter("sent_bytes_total", "Bytes sent to clients.", st.Sent)
}

// sink receives metrics.
type sink chan<- prometheus.Metric

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("cellserver_"+name, help, labels, nil)
}

func (to sink) series(d *prometheus.Desc, typ prometheus.ValueType, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, typ, value, labels...)
}

func (to sink) counter(name, help string, n uint64) {
	to.series(desc(name, help), prometheus.CounterValue, float64(n))
}

func (to sink) gauge(name, help string, n int) { to.value(name, help, float64(n)) }

func (to sink) value(name, help string, v float64) {
	to.series(desc(name, help), prometheus.GaugeValue, v)
}

func (to sink) truth(name, help string, is bool) {
	n := 0
	if is {
		n = 1
	}
	to.gauge(name, help, n)
}

func (to sink) labelled(name, help, label string, counts map[string]uint64) {
	d := desc(name, help, label)
	for value, n := range counts {
		to.series(d, prometheus.CounterValue, float64(n), value)
	}
}

// duration is a histogram in both of Prometheus's forms: scrapes in the protobuf format get the native one, all others
// the classic one.
type duration struct{ native, classic prometheus.Metric }

func newDuration(d *prometheus.Desc, s histogram.Snapshot, since time.Time, labels ...string) prometheus.Metric {
	sec := float64(s.SumNs) / 1e9
	return duration{
		native: must(prometheus.NewConstNativeHistogram(d, s.Count, sec, s.Native(), nil, 0, histogram.Schema, 0,
			since, labels...)),
		classic: prometheus.MustNewConstHistogram(d, s.Count, sec, s.Classic(), labels...),
	}
}

// must panics on errors that only a bug in this file can cause.
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
