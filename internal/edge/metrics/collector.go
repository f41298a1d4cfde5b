package metrics

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"cellserver/internal/base/buildinfo"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/histogram"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/rls"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// collect reads the statistics of the store, the engine and the server at each scrape. Clients choose no
// label value, except for the keys of topKeys.
func (c *Config) collect(ch chan<- prometheus.Metric) {
	to := sink(ch)
	var st store.Stats
	c.Store.UpdateStats(&st)
	to.store(&st)
	var most store.Maximum
	if c.Maximum != nil {
		most = c.Maximum()
	}
	to.memory(&st, most)
	c.collectCommands(to)
	c.collectConnections(to)
	c.collectDoors(to)
	c.collectEnvoy(to)
	c.collectPersistence(to)
	c.collectRemote(to)
	c.collectReplication(to)
	c.collectLimits(to, &st)
	ready := c.Ready(context.Background()) == nil
	to.truth("ready", "1 while clients are served; 0 while the server starts, hangs or shuts down.", ready)
	labelled(to, "log_lines_dropped_total", "Log lines dropped because the log was full (full) or a script logged too much (script).",
		"reason", map[string]uint64{"full": c.LostLogLines(), "script": c.Records.ScriptLinesLeftOut()})
	to.build(&c.Build)
	to.topKeys(c.topKeys, c.TopKeys, c.TopKeyNames)
}

// build follows Prometheus's own build_info, in which an unknown revision is "unknown".
func (to sink) build(b *buildinfo.Info) {
	revision := b.Revision
	switch {
	case revision == "":
		revision = "unknown"
	case b.Modified:
		revision += "-modified"
	}
	d := desc("build_info", "Always 1; labels give the server's version and commit, and the version of Go.", "version", "revision", "goversion")
	to.series(d, prometheus.GaugeValue, 1, b.Version, revision, b.Go)
}

func (to sink) store(st *store.Stats) {
	decisions := desc("decisions_total", "Decisions by limiter command and outcome, scripts and transactions included; "+
		"cl.throttle counts every funnel command except cl.reserve.", "command", "outcome")
	allowed, limited := map[string]uint64{}, map[string]uint64{}
	for kind, n := range st.Outcomes {
		if limiter.Kind(kind) == limiter.Value {
			continue // nothing is decided
		}
		command := limiter.Kind(kind).Row().Command
		allowed[command] += n.Allowed
		limited[command] += n.Limited
	}
	for command := range allowed {
		to.series(decisions, prometheus.CounterValue, float64(allowed[command]), command, "allowed")
		to.series(decisions, prometheus.CounterValue, float64(limited[command]), command, "denied")
	}
	to.counter("tokens_asked_total", "Units requested, at most 2^32 per call; with ATMOST those taken, or one if it was limited.", st.Requested)
	to.counter("tokens_granted_total", "Units granted to allowed calls.", st.Granted)
	to.counter("debits_cut_total", "Debits cut off, as a funnel's TAT is at most 2^62 ns (146 years) ahead.", st.DebitsCut)
	to.gauge("keys", "Keys in this server's memory, including some that expired a few seconds ago.", st.Keys)
	to.gauge("table_slots", "Keys the tables can hold before one grows.", st.Slots)
	to.gauge("table_bytes", "Memory of the limiters' tables, in bytes.", st.Bytes)
	to.counter("expired_keys_total", "Keys that have expired, counted when they are removed or called again.", st.Expired)
	to.counter("swept_segments_total", "Table segments (155 slots each) examined by the sweeper.", st.Swept)
}

func (to sink) memory(st *store.Stats, most store.Maximum) {
	to.gauge("memory_max_bytes", "Memory limit of the server in bytes (--maxmemory); 0 if unlimited.", int(most.Bytes))
	to.gauge("table_max_bytes", "Memory limit of the limiters' tables in bytes, a part of --maxmemory; 0 if unlimited.", st.MaxBytes)
	policy := desc("memory_policy_info", "Always 1; the label gives --maxmemory-policy.", "policy")
	to.series(policy, prometheus.GaugeValue, 1, most.Policy.String())
	to.counter("evicted_keys_total", "Limiters evicted at the memory limit to make room for new ones (volatile-ttl).", st.Evicted)
	to.counter("refused_keys_total", "Calls that failed at the memory limit because they needed a new limiter's key (noeviction).", st.Refused)
	to.values(&st.Values)
}

func (to sink) values(st *store.ValueStats) {
	to.gauge("values", "Values (counters and texts), which are among the keys.", st.Keys)
	to.gauge("values_endless", "Values without a time to live, which are never evicted.", st.Endless)
	to.gauge("value_bytes", "Memory of the values' tables, in bytes.", st.Bytes)
	to.gauge("value_max_bytes", "Memory limit of values in bytes (--maxmemory-values); 0 if unlimited.", st.MaxBytes)
	to.counter("evicted_values_total", "Values evicted at their memory limit to make room for new ones (volatile-ttl).", st.Evicted)
	to.counter("refused_values_total", "Calls that failed at the values' memory limit because they needed more of it.", st.Refused)
}

func (c *Config) collectCommands(to sink) {
	st := c.Records.Stats()
	failedLogins, _ := c.Logins.Total()
	labelled(to, "commands_total", "Commands executed, failed ones included.", "command", st.Calls)
	labelled(to, "errors_total", "Error replies by code; codes made up by scripts count as other, as do refusals that clients expect when they connect.", "code", st.Errors)
	to.counter("protocol_errors_total", "Connections closed because of malformed input.", st.ProtocolErrors)
	to.counter("auth_failures_total", "Failed authentications.", failedLogins)
	labelled(to, "scripts_total", "Lua scripts by outcome: completed, failed, or ended at a limit.", "outcome", st.Scripts)
	durations := desc("command_duration_seconds", "Duration of commands in seconds; cl.throttle counts every batched command, "+
		"each call with the duration of its batch.", "command")
	for command, d := range st.Durations {
		to <- newDuration(durations, d, st.Since, command)
	}
	sizes := desc("batch_size", "Calls decided in one batch.")
	to <- prometheus.MustNewConstHistogram(sizes, st.Batches.Count, float64(st.Batches.Commands), st.Batches.UpTo)
}

func (c *Config) collectConnections(to sink) {
	st := c.Server.Stats()
	to.gauge("connections", "Connected clients.", st.Connected)
	to.gauge("connections_max", "Maximum number of connected clients (--maxclients).", c.Server.Limits().MaxClients)
	to.gauge("connections_blocked", "Clients waiting in a blocking command.", c.Clients.Blocked())
	to.counter("connections_accepted_total", "Connections accepted.", st.Accepted)
	labelled(to, "connections_refused_total", "Connections refused by --maxclients, --maxclients-per-address or --protected-mode.", "reason",
		map[string]uint64{"maxclients": st.Refused, "maxclients_per_address": st.RefusedAddresses, "protected_mode": st.Denied})
	labelled(to, "connections_closed_total", "Closed connections by reason: by the client, by the session "+
		"(QUIT or a protocol error), at a limit (idle, handshake, input, output, memory), or other.", "reason", st.Closed)
	to.gauge("client_memory_bytes", "Memory held for clients in bytes: incomplete and queued commands, unread replies, watched keys.",
		int(c.Clients.Memory()))
	to.gauge("client_memory_max_bytes", "Limit of client_memory_bytes (--maxmemory-clients); 0 if unlimited.", int(c.Clients.MaxMemory()))
	to.counter("new_keys_refused_total", "Calls refused by --max-new-keys-per-second.", c.NewKeys.Refused())
	to.counter("tls_handshakes_failed_total", "Connections closed because the TLS handshake failed.", st.HandshakesFailed)
	to.counter("panics_total", "Connections closed by a panic.", st.Panics)
	to.counter("received_bytes_total", "Bytes received from clients.", st.Received)
	to.counter("sent_bytes_total", "Bytes sent to clients.", st.Sent)
}

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
	to.value(name, help, number(is))
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func labelled[L ~string](to sink, name, help, label string, counts map[L]uint64) {
	d := desc(name, help, label)
	for value, n := range counts {
		to.series(d, prometheus.CounterValue, float64(n), string(value))
	}
}

// duration is a histogram in both of Prometheus's forms: native for scrapes in protobuf, classic for all
// others. By its threshold of zero, Prometheus recognizes a native histogram without observations.
type duration struct{ native, classic prometheus.Metric }

func newDuration(d *prometheus.Desc, s histogram.Durations, since time.Time, labels ...string) prometheus.Metric {
	sec := float64(s.SumNs) / 1e9
	return duration{
		native: prometheus.MustNewConstNativeHistogram(d, s.Count, sec, s.Native(), nil, 0, histogram.Schema,
			prometheus.DefNativeHistogramZeroThreshold, since, labels...),
		classic: prometheus.MustNewConstHistogram(d, s.Count, sec, s.Classic(), labels...),
	}
}

func (d duration) Desc() *prometheus.Desc { return d.native.Desc() }

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

// collectDoors sends the counts of the protocols beside RESP, by door.
func (c *Config) collectDoors(to sink) {
	requests := desc("door_requests_total", "Requests by door and outcome: allowed (or done), limited, refused for their own "+
		"fault (arguments, rights, tokens), or failed for the server's (loading, disk, store, memory, maximum of clients).", "door", "outcome")
	durations := desc("door_request_duration_seconds", "Duration of requests by door in seconds, from their header to their answer.", "door")
	for _, name := range slices.Sorted(maps.Keys(c.Doors)) {
		counts := c.Doors[name].Counts()
		for _, outcome := range door.Outcomes() {
			to.count(requests, counts.Of(outcome), name, outcome.String())
		}
		to <- newDuration(durations, counts.Durations, counts.Since, name)
	}
}

// collectEnvoy sends the counts of Envoy's rate limit service by rule, under envoyproxy/ratelimit's names.
// Operators choose the rules; those with values of requests are bounded.
func (c *Config) collectEnvoy(to sink) {
	if c.Envoy == nil {
		return
	}
	series := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("ratelimit_service_rate_limit_"+name, help+" The name is envoyproxy/ratelimit's.", []string{"domain", "descriptor"}, c.EnvoyLabels)
	}
	total, within := series("total_hits", "Hits of a rule of --envoy-config."), series("within_limit", "Hits within the limit of the rule.")
	near, over := series("near_limit", "Hits within the limit of the rule, but beyond 80 % of it."), series("over_limit", "Hits over the limit of the rule.")
	shadow := series("shadow_mode", "Hits over the limit of the rule, allowed as it is a shadow.")
	c.Envoy.Metrics.Each(func(domain, descriptor string, counts *rls.Counts) {
		to.theirs(total, counts.TotalHits.Load(), domain, descriptor)
		to.theirs(within, counts.WithinLimit.Load(), domain, descriptor)
		to.theirs(near, counts.NearLimit.Load(), domain, descriptor)
		to.theirs(over, counts.OverLimit.Load(), domain, descriptor)
		to.theirs(shadow, counts.ShadowMode.Load(), domain, descriptor)
	})
	to.counter("envoy_global_shadow_mode_total", "Requests of Envoy over their limits that SHADOW_MODE has allowed.", c.Envoy.Metrics.GlobalShadow())
	to.counter("envoy_domains_unknown_total", "Requests of Envoy for a domain that has no limits.", c.Envoy.Metrics.NotFound())
	st := c.EnvoyLimits()
	c.collectLoads(to, st.Loads)
	to.envoyLimits(st)
}

// theirs sends a count under envoyproxy/ratelimit's name. It has no type, as OpenMetrics, which that program
// does not speak, would end a counter's name in _total.
func (to sink) theirs(d *prometheus.Desc, n uint64, labels ...string) {
	to.series(d, prometheus.UntypedValue, float64(n), labels...)
}

func (c *Config) collectLoads(to sink, loads envoyconfig.Loads) {
	series := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("ratelimit_service_config_load_"+name, help+" The name is envoyproxy/ratelimit's.", nil, c.EnvoyLabels)
	}
	done := series("success", "Loads of the limits for Envoy, from files or over xDS.")
	to.theirs(done, loads.Done)
	failed := series("error", "Loads of the limits for Envoy, from files or over xDS, that failed; the previous limits stay.")
	to.theirs(failed, loads.Failed)
}
