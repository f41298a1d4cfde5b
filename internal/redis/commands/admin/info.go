package admin

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// infoText collects the text of INFO.
type infoText struct {
	strings.Builder
	*Server
	nowNs    int64
	wallTime time.Time
	stats    store.Stats
	live     []store.KeyCount // keys by database; nil if not counted
}

func (t *infoText) field(name string, value any) { _, _ = fmt.Fprintf(t, "%s:%v\r\n", name, value) }

// fields writes names and values in turn.
func (t *infoText) fields(pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		t.field(pairs[i].(string), pairs[i+1])
	}
}

func (t *infoText) section(section infoSection) {
	if section.name == "store" && t.Remote == nil {
		return
	}
	if t.Len() > 0 {
		t.WriteString("\r\n")
	}
	_, _ = fmt.Fprintf(t, "# %s\r\n", section.title())
	section.write(t)
}

type infoSection struct {
	name      string
	byDefault bool
	write     func(*infoText)
}

// title returns the section's heading.
func (i infoSection) title() string {
	if i.name == "cpu" {
		return "CPU"
	}
	return strings.ToUpper(i.name[:1]) + i.name[1:]
}

// infoSections are in Redis's order.
func infoSections() []infoSection {
	return []infoSection{
		{"server", true, infoServer},
		{"clients", true, infoClients},
		{"memory", true, infoMemory},
		{"persistence", true, infoPersistence},
		{"store", true, infoStore},
		{"stats", true, infoStats},
		{"replication", true, infoReplication},
		{"cpu", true, infoCPU},
		{"modules", true, infoModules},
		{"commandstats", false, infoCommandStats},
		{"errorstats", true, infoErrorStats},
		{"limits", true, infoLimits},
		{"cluster", true, func(t *infoText) { t.field("cluster_enabled", 0) }},
		{"keyspace", true, infoKeyspace},
	}
}

// info is INFO [section ...]. Unknown sections are ignored.
func (k *Server) info(c execute.Call, all store.Walker, args [][]byte) error {
	if err := argument.CheckNames(args[1:]); err != nil {
		return err
	}
	wanted := make([]string, 0, len(args))
	for _, arg := range args[1:] {
		wanted = append(wanted, glob.Fold(arg))
	}
	has := func(name string) bool { return slices.Contains(wanted, name) }
	everything := has("all") || has("everything")
	byDefault := len(wanted) == 0 || has("default")
	t := &infoText{Server: k}
	write := func(c execute.Call) error {
		t.nowNs, t.wallTime = c.Now(), c.WallTime()
		all.UpdateStats(&t.stats)
		for _, section := range infoSections() {
			if everything || has(section.name) || byDefault && section.byDefault {
				t.section(section)
			}
		}
		c.Reply().Verbatim(t.String())
		return nil
	}
	if !everything && !byDefault && !has("keyspace") {
		return write(c)
	}
	return c.Background(func(ctx context.Context, nowNs int64) {
		t.live = make([]store.KeyCount, k.Databases)
		all.Count(ctx, nowNs, t.live)
	}, write)
}

// infoLimits sums up the named limits; CL.LIMIT GET describes each. It ends with the time zones of quotas.
func infoLimits(t *infoText) {
	all, reloads := t.NamedLimits.All(), t.NamedLimits.Reloads()
	var sum limitsSum
	for _, l := range all {
		sum.add(l)
	}
	t.fields("named_limits", len(all), "named_limits_of_file", sum.ofFile, "limits_file_reloads", reloads.Done,
		"limits_file_failed_reloads", reloads.Failed, "limits_file_last_reload_failed", flag(reloads.LastFailed),
		"checks_allowed", sum.Allowed, "checks_limited", sum.Limited, "checks_shadow_limited", sum.ShadowLimited,
		"checks_near", sum.Near, "checks_overridden", sum.Overridden, "checks_charged_beyond", sum.Over,
		"override_keys", sum.keys, "override_keys_by_commands", t.NamedLimits.NumOverrides(), "override_keys_of_file", sum.keysOfFile, "override_patterns_of_file", sum.patterns,
		"holds", sum.held, "holds_settled", sum.settled, "holds_settled_late", sum.late)
	origin := "system"
	if t.Zones.Embedded {
		origin = "embedded"
	}
	t.fields("quota_zones", origin, "quota_zones_version", t.Zones.Version)
}

// limitsSum is the sum of the named limits.
type limitsSum struct {
	namedlimit.Counts
	ofFile     int
	keys       int // with an override in force, by a command or the file
	keysOfFile int // with an override in the file
	patterns   int // only the file has them

	held, settled, late uint64 // holds
}

func (s *limitsSum) add(l *namedlimit.Limit) {
	if l.Source == namedlimit.ByFile {
		s.ofFile++
	}
	counts := l.Counts()
	s.Allowed += counts.Allowed
	s.Limited += counts.Limited
	s.ShadowLimited += counts.ShadowLimited
	s.Near += counts.Near
	s.Over += counts.Over
	s.Overridden += counts.Overridden
	keys, patterns := l.NumOverrides()
	s.keys += keys
	s.patterns += patterns
	holds := l.HoldCounts()
	s.held += holds.Held
	s.settled += holds.Settled
	s.late += holds.Late
	for i := range l.Overrides {
		s.keysOfFile += len(l.Overrides[i].Keys)
	}
}

func infoServer(t *infoText) {
	up := (t.nowNs - t.StartedNs) / int64(time.Second)
	t.fields("redis_version", catalog.RedisVersion, "redis_mode", "standalone", "cellserver_version", t.Version,
		"os", runtime.GOOS+" "+runtime.GOARCH, "arch_bits", strconv.IntSize, "go_version", runtime.Version(),
		"process_id", os.Getpid(), "run_id", t.RunID, "tcp_port", t.Connections().Port,
		"server_time_usec", t.wallTime.UnixMicro(), "uptime_in_seconds", up, "uptime_in_days", up/(24*60*60),
		"executable", executable(), "config_file", t.ConfigFile)
}

func executable() string {
	path, _ := os.Executable() // "" if unknown
	return path
}

func infoClients(t *infoText) {
	c := t.Connections()
	tracking := len(t.Clients.All(func(c *clients.Client) bool { return c.Info().Tracking }))
	t.fields("connected_clients", c.Connected, "cluster_connections", 0, "maxclients", c.MaxClients,
		"blocked_clients", t.Clients.Blocked(), "tracking_clients", tracking)
}

func infoMemory(t *infoText) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	used := samples[0].Value.Uint64()
	resident := samples[1].Value.Uint64() - samples[2].Value.Uint64()
	var most store.Maximum
	if t.Maximum != nil {
		most = t.Maximum()
	}
	scripts, scriptBytes := 0, 0
	if t.Scripts != nil {
		scripts, scriptBytes = t.Scripts.CacheStats()
	}
	values := &t.stats.Values
	dataset, mostDataset := t.stats.Bytes+values.Bytes, 0
	if t.stats.MaxBytes > 0 {
		mostDataset = t.stats.MaxBytes + values.MaxBytes
	}
	t.fields("used_memory", used, "used_memory_human", humanBytes(used), "used_memory_rss", resident,
		"used_memory_rss_human", humanBytes(resident), "used_memory_dataset", dataset,
		"used_memory_dataset_human", humanBytes(uint64(dataset)), "used_memory_values", values.Bytes,
		"used_memory_values_human", humanBytes(uint64(values.Bytes)), "used_memory_scripts", scriptBytes,
		"used_memory_scripts_human", humanBytes(uint64(scriptBytes)), "number_of_cached_scripts", scripts,
		"maxmemory", most.Bytes, "maxmemory_human", humanBytes(uint64(most.Bytes)),
		"maxmemory_policy", most.Policy, "maxmemory_dataset", mostDataset,
		"maxmemory_values", values.MaxBytes, "maxmemory_clients", t.Clients.MaxMemory(), "maxmemory_scripts", most.ScriptBytes,
		"mem_clients_slaves", 0, "mem_clients_normal", t.Clients.Memory(), "mem_allocator", "go")
}

// humanBytes writes a size as Redis does.
func humanBytes(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%dB", n)
	}
	unit, size := "K", float64(n)/(1<<10)
	for _, next := range []string{"M", "G", "T"} {
		if size < 1<<10 {
			break
		}
		unit, size = next, size/(1<<10)
	}
	return fmt.Sprintf("%.2f%s", size, unit)
}

func infoStats(t *infoText) {
	c := t.Connections()
	_, failedLogins := t.Logins.Total()
	lostLogLines := uint64(0)
	if t.LostLogLines != nil {
		lostLogLines = t.LostLogLines()
	}
	channels := 0
	for _, ch := range t.Channels {
		channels += flag(ch.Any())
	}
	t.fields("total_connections_received", c.Accepted, "total_commands_processed", t.Records.Executed(),
		"rejected_connections", c.Refused, "expired_keys", t.stats.Expired, "evicted_keys", t.stats.Evicted+t.stats.Values.Evicted,
		"evicted_clients", t.Clients.Evicted(),
		"pubsub_channels", channels, "pubsub_patterns", 0, "total_error_replies", t.Records.Errors.Counts().Total,
		"acl_access_denied_auth", failedLogins, "cell_allowed", t.stats.Allowed, "cell_denied", t.stats.Limited,
		"cell_refused_keys", t.stats.Refused, "cell_values", t.stats.Values.Keys, "cell_values_endless", t.stats.Values.Endless,
		"cell_evicted_values", t.stats.Values.Evicted, "cell_refused_values", t.stats.Values.Refused, "cell_debits_cut", t.stats.DebitsCut,
		"cell_dropped_log_lines", lostLogLines, "cell_dropped_script_log_lines", t.Records.ScriptLinesLeftOut())
}

func infoModules(t *infoText) {
	_, _ = fmt.Fprintf(t, "module:name=%s,ver=%d\r\n", catalog.ModuleName, catalog.ModuleVersion)
}

func infoCommandStats(t *infoText) {
	for _, c := range t.Records.Commands() {
		if c.Calls == 0 && c.Rejected == 0 {
			continue
		}
		us := float64(c.Ns) / 1e3
		perCall := 0.0
		if c.Calls > 0 {
			perCall = us / float64(c.Calls)
		}
		t.field("cmdstat_"+c.Command.FullName(), fmt.Sprintf("calls=%d,usec=%.0f,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			c.Calls, us, perCall, c.Rejected, c.Failed))
	}
}

func infoErrorStats(t *infoText) {
	var lines []string
	plain := func(c rune) rune {
		if c <= ' ' || c > '~' || c == ':' || c == '#' { // it would not be one field
			return '_'
		}
		return c
	}
	t.Records.Errors.Each(func(code string, n int64) {
		lines = append(lines, fmt.Sprintf("errorstat_%s:count=%d\r\n", strings.Map(plain, code), n))
	})
	slices.Sort(lines)
	t.WriteString(strings.Join(lines, ""))
}

func infoKeyspace(t *infoText) {
	for db, n := range t.live {
		if n.Keys > 0 {
			t.field(fmt.Sprintf("db%d", db), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=0", n.Keys, n.Expiring))
		}
	}
}

// infoStore describes a store on other machines.
func infoStore(t *infoText) {
	st := t.Remote()
	t.fields("store", st.Store, "store_status", storeStatus(&st), "store_masters", st.Masters, "store_masters_up", st.Up,
		"store_since", st.SinceNs/int64(time.Second), "store_on_error", st.Policy)
	if st.Fault != nil {
		t.field("store_fault", resp.PrintableN([]byte(st.Fault.Error()), maxReasonBytes))
	}
	s := &st.Stats
	t.fields("store_requests", s.Requests, "store_asked", s.Asked, "store_joined", s.Joined, "store_prefiltered", s.Prefiltered,
		"store_scripts", s.Scripts, "store_pipelines", s.Pipelines, "store_waiting", s.Waiting,
		"store_late_answers", s.Late, "store_keys", st.Keys)
	for _, p := range slices.Sorted(maps.Keys(s.Policy)) {
		if n := s.Policy[p]; n.Total() > 0 || p == st.Policy {
			t.field("store_decided_by_"+p.String(), fmt.Sprintf("allowed=%d,denied=%d,errors=%d", n.Allowed, n.Limited, n.Failed))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Failed)) {
		if s.Failed[reason] > 0 {
			t.field("store_failures_"+string(reason), s.Failed[reason])
		}
	}
	for i, server := range s.Servers {
		name := fmt.Sprintf("store_server%d", i)
		t.field(name, fmt.Sprintf("addr=%s,circuit=%s,queued=%d,in_flight=%d,round_trip_usec=%d,connections=%d,scripts_loaded=%d,redirected=%d",
			server.Addr, server.Circuit, server.Queued, server.InFlight, server.RoundTripNs/int64(time.Microsecond),
			server.Conns, server.Loaded, server.Redirected))
		for _, reason := range slices.Sorted(maps.Keys(server.Failed)) {
			if server.Failed[reason] > 0 {
				t.field(name+"_failures_"+string(reason), server.Failed[reason])
			}
		}
		if server.Error != "" {
			t.field(name+"_error", resp.PrintableN([]byte(server.Error), maxReasonBytes))
		}
	}
}

func storeStatus(st *store.Health) string {
	switch {
	case !st.Asked:
		return "connecting"
	case st.Away():
		return "away"
	case st.Fault != nil:
		return "partly_away"
	}
	return "ok"
}
