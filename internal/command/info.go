package command

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/shard"
)

// infoText is INFO as it is written.
type infoText struct {
	strings.Builder
	s    *Session
	live []int // keys of each database; nil where they were not counted
}

func (t *infoText) field(name string, value any) { _, _ = fmt.Fprintf(t, "%s:%v\r\n", name, value) }

// fields writes names and values in turn.
func (t *infoText) fields(pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		t.field(pairs[i].(string), pairs[i+1])
	}
}

func (t *infoText) section(section infoSection) {
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

// title is the section's name as its heading has it.
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
		{"stats", true, infoStats},
		{"replication", true, infoReplication},
		{"cpu", true, infoCPU},
		{"modules", true, infoModules},
		{"commandstats", false, infoCommandStats},
		{"errorstats", true, infoErrorStats},
		{"cluster", true, func(t *infoText) { t.field("cluster_enabled", 0) }},
		{"keyspace", true, infoKeyspace},
	}
}

// info is INFO [section ...]; sections that it does not know are left out.
func info(s *Session, args [][]byte) error {
	wanted := make([]string, 0, len(args))
	for _, arg := range args[1:] {
		wanted = append(wanted, lower(arg))
	}
	has := func(name string) bool { return slices.Contains(wanted, name) }
	all := has("all") || has("everything")
	byDefault := len(wanted) == 0 || has("default")
	t := &infoText{s: s}
	write := func(s *Session) {
		for _, section := range infoSections() {
			if all || has(section.name) || byDefault && section.byDefault {
				t.section(section)
			}
		}
		s.w.Verbatim(t.String())
	}
	if !all && !byDefault && !has("keyspace") {
		write(s)
		return nil
	}
	s.aside(func() { t.live = s.countLive() }, write)
	return nil
}

func infoServer(t *infoText) {
	c := &t.s.engine.config
	up := int(time.Since(t.s.engine.started).Seconds())
	t.fields("redis_version", RedisVersion, "redis_mode", "standalone", "cellserver_version", c.Version,
		"os", runtime.GOOS+" "+runtime.GOARCH, "arch_bits", strconv.IntSize, "go_version", runtime.Version(),
		"process_id", os.Getpid(), "run_id", t.s.engine.runID, "tcp_port", c.Clients().Port,
		"server_time_usec", time.Now().UnixMicro(), "uptime_in_seconds", up, "uptime_in_days", up/(24*60*60),
		"executable", executable(), "config_file", "")
}

func executable() string {
	path, _ := os.Executable() // "" where the system cannot say
	return path
}

func infoClients(t *infoText) {
	c := t.s.engine.config.Clients()
	tracking := len(t.s.engine.clients.all(func(c *client) bool { return c.snapshot().tracking.on }))
	t.fields("connected_clients", c.Connected, "cluster_connections", 0, "maxclients", c.MaxClients,
		"blocked_clients", 0, "tracking_clients", tracking)
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
	t.fields("used_memory", used, "used_memory_human", humanBytes(used), "used_memory_rss", resident,
		"used_memory_rss_human", humanBytes(resident), "maxmemory", 0, "maxmemory_human", "0B",
		"maxmemory_policy", "noeviction", "mem_allocator", "go")
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

func infoPersistence(t *infoText) {
	t.fields("loading", 0, "async_loading", 0, "rdb_changes_since_last_save", 0, "rdb_bgsave_in_progress", 0,
		"rdb_last_save_time", t.s.engine.started.Unix(), "rdb_last_bgsave_status", "ok", "aof_enabled", 0,
		"aof_rewrite_in_progress", 0)
}

func infoStats(t *infoText) {
	e := t.s.engine
	c := e.config.Clients()
	var st shard.Stats
	t.s.whole().UpdateStats(&st)
	t.fields("total_connections_received", c.Accepted, "total_commands_processed", e.executed(),
		"rejected_connections", c.Refused, "expired_keys", st.Expired, "evicted_keys", 0,
		"pubsub_channels", 0, "pubsub_patterns", 0, "total_error_replies", e.errors.sum(),
		"acl_access_denied_auth", e.logins.total.Load(), "cell_allowed", st.Allowed, "cell_denied", st.Denied)
}

func infoReplication(t *infoText) {
	t.fields("role", "master", "connected_slaves", 0, "master_failover_state", "no-failover",
		"master_replid", t.s.engine.runID, "master_repl_offset", 0)
}

func infoModules(t *infoText) {
	_, _ = fmt.Fprintf(t, "module:name=%s,ver=%d\r\n", moduleName, moduleVersion)
}

func infoCommandStats(t *infoText) {
	called := t.s.engine.called()
	t.s.engine.table.each(func(r *row) {
		calls, rejected := called[r.id].calls, r.stats.rejected.Load()
		if calls == 0 && rejected == 0 {
			return
		}
		us := float64(called[r.id].ns) / 1e3
		perCall := 0.0
		if calls > 0 {
			perCall = us / float64(calls)
		}
		t.field("cmdstat_"+r.fullName(), fmt.Sprintf("calls=%d,usec=%.0f,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			calls, us, perCall, rejected, r.stats.failed.Load()))
	})
}

func infoErrorStats(t *infoText) {
	var lines []string
	plain := func(c rune) rune {
		if c <= ' ' || c > '~' || c == ':' || c == '#' { // it would not be one field
			return '_'
		}
		return c
	}
	t.s.engine.errors.each(func(code string, n int64) {
		lines = append(lines, fmt.Sprintf("errorstat_%s:count=%d\r\n", strings.Map(plain, code), n))
	})
	slices.Sort(lines)
	t.WriteString(strings.Join(lines, ""))
}

func infoKeyspace(t *infoText) {
	for db, n := range t.live {
		if n > 0 {
			t.field(fmt.Sprintf("db%d", db), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=0", n, n))
		}
	}
}
