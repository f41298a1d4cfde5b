package admin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/catalog"
	"cellserver/internal/commands/rig"
	"cellserver/internal/resptest"
)

// TestInfoSections: each line of INFO is a key and a value, under its section, and the sections are those asked for.
func TestInfoSections(t *testing.T) {
	usual := []string{"Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "CPU", "Modules", "Errorstats", "Cluster", "Keyspace"}
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
		{" nosuch", nil},
	} {
		s := rig.New().Session()
		got := resptest.ParseAll(t, rig.Say(t, s, "CL.THROTTLE a 0 1 1\r\nINFO"+tt.args+"\r\n"))[1].Text
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
	got := rig.Say(t, rig.New().Session(), "INFO server memory\r\n")
	for _, want := range []string{"redis_version:" + catalog.RedisVersion, "cellserver_version:1.2.3", "redis_mode:standalone", "tcp_port:6380",
		"uptime_in_seconds:0", "maxmemory:0", "maxmemory_policy:noeviction"} {
		if !strings.Contains(got, want+"\r\n") {
			t.Errorf("INFO lacks %s in %q", want, got)
		}
	}
}

// TestTime: seconds and microseconds of the wall clock, not of the engine's.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.New().Session()
		time.Sleep(1500*time.Millisecond + 42*time.Microsecond + 999)
		if got := rig.Say(t, s, "TIME\r\n"); got != "*2\r\n$9\r\n946684801\r\n$6\r\n500042\r\n" {
			t.Errorf("got %q", got)
		}
	})
}
