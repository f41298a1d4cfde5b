package admin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/catalog"
)

// TestInfoSections: INFO has the requested sections, with a key and a value a line.
func TestInfoSections(t *testing.T) {
	usual := []string{"Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "CPU", "Modules", "Errorstats", "Limits", "Cluster", "Keyspace"}
	all := slices.Insert(slices.Clone(usual), 8, "Commandstats")
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"", usual},
		{" default", usual},
		{" ALL", all},
		{" everything", all},
		{" nosuch default", usual},
		{" commandstats default", all},
		{" server", []string{"Server"}},
		{" Memory SERVER", []string{"Server", "Memory"}},
		{" keyspace keyspace", []string{"Keyspace"}},
		{" limits", []string{"Limits"}},
		{" nosuch", nil},
	} {
		s := commandstest.New().Session()
		got := resptest.ParseAll(t, commandstest.Say(t, s, "CL.THROTTLE a 0 1 1\r\nINFO"+tt.args+"\r\n"))[1].Text
		var titles []string
		for section := range strings.SplitSeq(strings.TrimSuffix(got, "\r\n"), "\r\n\r\n") {
			lines := strings.Split(section, "\r\n")
			if title, ok := strings.CutPrefix(lines[0], "# "); ok {
				titles = append(titles, title)
			}
			for _, line := range lines[1:] {
				if key, value, ok := strings.Cut(line, ":"); !ok || key == "" || value == "" && key != "config_file" || strings.Contains(key, " ") {
					t.Errorf("INFO%s: line %q", tt.args, line)
				}
			}
		}
		if fmt.Sprint(titles) != fmt.Sprint(tt.want) {
			t.Errorf("INFO%s: sections %q, want %q", tt.args, titles, tt.want)
		}
	}
	got := commandstest.Say(t, commandstest.New().Session(), "INFO server memory\r\n")
	for _, want := range []string{"redis_version:" + catalog.RedisVersion, "cellserver_version:1.2.3", "redis_mode:standalone", "tcp_port:6380",
		"uptime_in_seconds:0", "maxmemory:0", "maxmemory_policy:volatile-ttl"} {
		if !strings.Contains(got, want+"\r\n") {
			t.Errorf("INFO lacks %s in %q", want, got)
		}
	}
}

// TestInfoLimits sums over all named limits.
func TestInfoLimits(t *testing.T) {
	t.Setenv("ZONEINFO", zoneinfo(t, "2031a"))
	s := commandstest.New().Session()
	got := commandstest.Say(t, s, "CL.LIMIT SET a 0 1 60\r\nCL.LIMIT SET b 0 1 60 SHADOW\r\nCL.CHECK a k\r\nCL.CHECK a k\r\nCL.CHECK b k\r\nCL.CHECK b k\r\nCL.CHECK b k\r\n"+
		"CL.CHECK a k 5 DEBIT\r\nCL.LIMIT OVERRIDE a vip UNLIMITED\r\nCL.LIMIT OVERRIDE b out DENY\r\nCL.CHECK a vip\r\nINFO limits\r\n")
	for _, want := range []string{"named_limits:2", "named_limits_of_file:0", "limits_file_reloads:0", "limits_file_failed_reloads:0",
		"limits_file_last_reload_failed:0", "checks_allowed:3", "checks_limited:2", "checks_shadow_limited:2", "checks_near:2", "checks_overridden:1", "checks_charged_beyond:1",
		"override_keys:2", "override_keys_of_file:0", "override_patterns_of_file:0", "quota_zones:system", "quota_zones_version:2031a"} {
		if !strings.Contains(got, want+"\r\n") {
			t.Errorf("INFO lacks %s in %q", want, got)
		}
	}
}

// zoneinfo returns a directory of time zones of a version.
func zoneinfo(t *testing.T, version string) string {
	t.Helper()
	directory := t.TempDir()
	for name, text := range map[string]string{"Europe/Berlin": "", "+VERSION": version + "\n"} {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// TestInfoDebitsCut: a debit beyond the largest TAT is cut off.
func TestInfoDebitsCut(t *testing.T) {
	s := commandstest.New().Session()
	if got := field(t, s, "stats", "cell_debits_cut"); got != "0" {
		t.Errorf("got %s before any", got)
	}
	commandstest.Say(t, s, "CL.DEBIT k 0 1 3600 9000000000000000000\r\n")
	if got := field(t, s, "stats", "cell_debits_cut"); got != "1" {
		t.Errorf("got %s, want 1", got)
	}
}

// TestInfoValues counts values apart, and among the keys and the dataset.
func TestInfoValues(t *testing.T) {
	s := commandstest.New().Session()
	commandstest.Say(t, s, "INCR endless\r\nSET text x EX 60\r\nCL.THROTTLE funnel 1 1 60\r\n")
	for _, want := range []struct{ section, name, value string }{
		{"stats", "cell_values", "2"}, {"stats", "cell_values_endless", "1"}, {"stats", "evicted_keys", "0"},
		{"keyspace", "db0", "keys=3,expires=2,avg_ttl=0"},
	} {
		if got := field(t, s, want.section, want.name); got != want.value {
			t.Errorf("%s is %s, want %s", want.name, got, want.value)
		}
	}
	bytes := func(name string) int {
		n, err := strconv.Atoi(field(t, s, "memory", name))
		if err != nil {
			t.Error(err)
		}
		return n
	}
	if values, all := bytes("used_memory_values"), bytes("used_memory_dataset"); values == 0 || values >= all {
		t.Errorf("values take %d bytes of %d", values, all)
	}
}

// TestTime has seconds and microseconds of the wall clock, not of the engine's.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := commandstest.New().Session()
		time.Sleep(1500*time.Millisecond + 42*time.Microsecond + 999)
		commandstest.Expect(t, s, "TIME\r\n", "*2\r\n$9\r\n946684801\r\n$6\r\n500042\r\n")
	})
}

// field returns a line of INFO.
func field(t *testing.T, s *commandstest.Client, section, name string) string {
	t.Helper()
	for line := range strings.SplitSeq(resptest.ParseAll(t, commandstest.Say(t, s, "INFO "+section+"\r\n"))[0].Text, "\r\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return value
		}
	}
	t.Errorf("INFO %s lacks %s", section, name)
	return ""
}

func TestInfoTimes(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	r.Clock.Advance((3*86400 + 5) * commandstest.Sec)
	for _, tt := range []struct{ section, name, want string }{
		{"server", "uptime_in_seconds", "259205"},
		{"server", "uptime_in_days", "3"},
		{"persistence", "rdb_last_save_time", "1700000000"},
	} {
		if got := field(t, s, tt.section, tt.name); got != tt.want {
			t.Errorf("%s is %s, want %s", tt.name, got, tt.want)
		}
	}
	for _, name := range []string{"used_cpu_sys", "used_cpu_user", "used_cpu_sys_children", "used_cpu_user_children"} {
		if sec, err := strconv.ParseFloat(field(t, s, "cpu", name), 64); err != nil || sec < 0 || sec > 1e6 { // not nanoseconds
			t.Errorf("%s is %f, %v", name, sec, err)
		}
	}
}

// TestInfoMemory does not count memory returned to the system.
func TestInfoMemory(t *testing.T) {
	s := commandstest.New().Session()
	garbage := make([]byte, 32<<20)
	garbage[len(garbage)-1] = 1
	commandstest.Say(t, s, "MEMORY PURGE\r\n")
	bytes := func(name string) uint64 {
		n, err := strconv.ParseUint(field(t, s, "memory", name), 10, 64)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	used, resident := bytes("used_memory"), bytes("used_memory_rss")
	total := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(total)
	if used == 0 || resident == 0 || resident > total[0].Value.Uint64() {
		t.Errorf("%d bytes are used and %d resident, of %d", used, resident, total[0].Value.Uint64())
	}
}

// TestCommandStats lists the called and the rejected commands.
func TestCommandStats(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	r.Clock.StepBy(2500)
	commandstest.Say(t, s, "PING\r\nPING\r\nEXPIRE k x\r\nGET\r\n")
	r.Clock.StepBy(0)
	want := "# Commandstats\r\n" +
		"cmdstat_expire:calls=1,usec=2,usec_per_call=2.50,rejected_calls=0,failed_calls=1\r\n" +
		"cmdstat_get:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0\r\n" +
		"cmdstat_ping:calls=2,usec=5,usec_per_call=2.50,rejected_calls=0,failed_calls=0\r\n"
	if got := resptest.ParseAll(t, commandstest.Say(t, s, "INFO commandstats\r\n"))[0].Text; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestErrorStats: a code invented by a script is one field.
func TestErrorStats(t *testing.T) {
	s := commandstest.New().Session()
	for _, code := range []string{"a:b#c\\td", "~!", "\\127x", "\\200", "0"} {
		commandstest.Say(t, s, resptest.Encode("EVAL", "return {err='"+code+" why'}", "0"))
	}
	want := "# Errorstats\r\nerrorstat_0:count=1\r\nerrorstat__:count=1\r\nerrorstat__x:count=1\r\nerrorstat_a_b_c_d:count=1\r\nerrorstat_~!:count=1\r\n"
	if got := resptest.ParseAll(t, commandstest.Say(t, s, "INFO errorstats\r\n"))[0].Text; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestVersion: clients and scripts are told the same version, of which the script's number is made.
func TestVersion(t *testing.T) {
	s := commandstest.New().Session()
	info := commandstest.Say(t, s, "INFO server\r\n")
	hello := resptest.ParseAll(t, commandstest.Say(t, s, "HELLO 3\r\n"))[0].Field("version").Text
	script := resptest.ParseAll(t, commandstest.Say(t, s, resptest.Encode("EVAL", "return {redis.REDIS_VERSION, redis.REDIS_VERSION_NUM}", "0")))[0].Elements
	var major, minor, patch int64
	if _, err := fmt.Sscanf(hello, "%d.%d.%d", &major, &minor, &patch); err != nil {
		t.Fatal(err)
	}
	if num := major<<16 | minor<<8 | patch; !strings.Contains(info, "redis_version:"+hello+"\r\n") ||
		script[0].Text != hello || script[1].Number != num {
		t.Errorf("HELLO says %s, scripts %v, INFO %q", hello, script, info)
	}
}
