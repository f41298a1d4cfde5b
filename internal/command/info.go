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

func timeCommand(s *Session, _ [][]byte) error {
	now := time.Now()
	s.w.Array(2)
	s.w.BulkString(strconv.FormatInt(now.Unix(), 10))
	s.w.BulkString(strconv.Itoa(now.Nanosecond() / 1000))
	return nil
}

func moduleList(s *Session, _ [][]byte) error {
	s.replyModules()
	return nil
}

func (s *Session) replyModules() {
	s.w.Array(1)
	s.w.Map(4)
	s.replyPair("name", moduleName)
	s.w.BulkString("ver")
	s.w.Int(moduleVersion)
	s.replyPair("path", "")
	s.w.BulkString("args")
	s.w.Array(0)
}

// configGet is CONFIG GET pattern [pattern ...].
func configGet(s *Session, args [][]byte) error {
	if err := checkNames(args[2:]); err != nil {
		return err
	}
	var found []Setting
	for _, setting := range s.engine.config.Settings {
		for _, pattern := range args[2:] {
			if matches(setting.Name, string(pattern)) {
				found = append(found, setting)
				break
			}
		}
	}
	s.w.Map(len(found))
	for _, setting := range found {
		s.replyPair(setting.Name, setting.Value)
	}
	return nil
}

type infoSection struct {
	name  string
	write func(*Session, *strings.Builder)
}

// infoSections is given how many live keys each database has.
func infoSections(live []int) []infoSection {
	infoKeyspace := func(_ *Session, b *strings.Builder) { writeKeyspace(b, live) }
	return []infoSection{
		{"server", infoServer}, {"clients", infoClients}, {"memory", infoMemory},
		{"stats", infoStats}, {"modules", infoModules}, {"keyspace", infoKeyspace},
	}
}

// info is INFO [section ...]; sections that it does not know are left out.
func info(s *Session, args [][]byte) error {
	wanted := make([]string, 0, len(args))
	for _, arg := range args[1:] {
		wanted = append(wanted, lower(arg))
	}
	all := len(wanted) == 0 || slices.Contains(wanted, "default") || slices.Contains(wanted, "all") || slices.Contains(wanted, "everything")
	isWanted := func(section string) bool { return all || slices.Contains(wanted, section) }
	if !isWanted("keyspace") {
		s.replyInfo(isWanted, nil)
		return nil
	}
	var live []int
	s.aside(func() { live = s.engine.countLive() }, func(s *Session) { s.replyInfo(isWanted, live) })
	return nil
}

func (s *Session) replyInfo(isWanted func(section string) bool, live []int) {
	var b strings.Builder
	for _, section := range infoSections(live) {
		if !isWanted(section.name) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		fmt.Fprintf(&b, "# %s\r\n", strings.ToUpper(section.name[:1])+section.name[1:])
		section.write(s, &b)
	}
	s.w.Verbatim(b.String())
}

func infoServer(s *Session, b *strings.Builder) {
	up := int(time.Since(s.engine.started).Seconds())
	fmt.Fprintf(b, "redis_version:%s\r\ncellserver_version:%s\r\nredis_mode:standalone\r\nos:%s %s\r\narch_bits:%d\r\n"+
		"go_version:%s\r\nprocess_id:%d\r\ntcp_port:%d\r\nuptime_in_seconds:%d\r\nuptime_in_days:%d\r\n",
		RedisVersion, s.engine.config.Version, runtime.GOOS, runtime.GOARCH, strconv.IntSize,
		runtime.Version(), os.Getpid(), s.engine.config.Clients().Port, up, up/(24*60*60))
}

func infoClients(s *Session, b *strings.Builder) {
	c := s.engine.config.Clients()
	fmt.Fprintf(b, "connected_clients:%d\r\nmaxclients:%d\r\nblocked_clients:0\r\n", c.Connected, c.MaxClients)
}

func infoMemory(_ *Session, b *strings.Builder) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	used := samples[0].Value.Uint64()
	resident := samples[1].Value.Uint64() - samples[2].Value.Uint64()
	fmt.Fprintf(b, "used_memory:%d\r\nused_memory_rss:%d\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n", used, resident)
}

func infoStats(s *Session, b *strings.Builder) {
	c := s.engine.config.Clients()
	var st shard.Stats
	s.engine.config.Store.UpdateStats(&st)
	fmt.Fprintf(b, "total_connections_received:%d\r\ntotal_commands_processed:%d\r\nrejected_connections:%d\r\n"+
		"expired_keys:%d\r\nevicted_keys:0\r\ncell_allowed:%d\r\ncell_denied:%d\r\n",
		c.Accepted, s.engine.commands.Load(), c.Refused, st.Expired, st.Allowed, st.Denied)
}

func infoModules(_ *Session, b *strings.Builder) {
	fmt.Fprintf(b, "module:name=%s,ver=%d\r\n", moduleName, moduleVersion)
}

func writeKeyspace(b *strings.Builder, live []int) {
	for db, n := range live {
		if n > 0 {
			fmt.Fprintf(b, "db%d:keys=%d,expires=%d,avg_ttl=0\r\n", db, n, n)
		}
	}
}
