package admin_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// TestConfigSet sets all or nothing.
func TestConfigSet(t *testing.T) {
	values := map[string]string{"one": "1", "two": "2"}
	var mu sync.Mutex // guards values
	setting := func(name string) admin.Setting {
		return admin.Setting{Name: name, Get: func() string { mu.Lock(); defer mu.Unlock(); return values[name] }, Set: func(value string, _ admin.Others) (func(), error) {
			if value == "bad" {
				return nil, errors.New("bad\r\nvalue")
			}
			return func() { mu.Lock(); defer mu.Unlock(); values[name] = value }, nil
		}}
	}
	r := commandstest.New(func(c *commands.Config) {
		c.Settings = []admin.Setting{setting("one"), setting("two"), admin.Constant("fixed", "x")}
	})
	s := r.Session()
	both := func(one, two string) string {
		return "*4\r\n$3\r\none\r\n$1\r\n" + one + "\r\n$3\r\ntwo\r\n$1\r\n" + two + "\r\n"
	}
	for _, tt := range []struct{ in, want, one, two string }{
		{"one 3 TWO 4", "+OK\r\n", "3", "4"},
		{"one 5 two bad", "-ERR CONFIG SET failed (possibly related to argument 'two') - bad\\r\\nvalue\r\n", "3", "4"},
		{"one bad two 5", "-ERR CONFIG SET failed (possibly related to argument 'one') - bad\\r\\nvalue\r\n", "3", "4"},
		{"one 5 fixed y", "-ERR CONFIG SET failed (possibly related to argument 'fixed') - can't set immutable config\r\n", "3", "4"},
		{"one 5 ONE 6", "-ERR CONFIG SET failed (possibly related to argument 'ONE') - duplicate parameter\r\n", "3", "4"},
		{"one 5 nosuch 6", "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'\r\n", "3", "4"},
		{"one 5 two", "-ERR syntax error\r\n", "3", "4"},
		{"two 7", "+OK\r\n", "3", "7"},
	} {
		commandstest.Expect(t, s, "CONFIG SET "+tt.in+"\r\nCONFIG GET one two\r\n",
			tt.want+both(tt.one, tt.two))
	}
	var wg sync.WaitGroup
	for _, value := range []string{"8", "9"} {
		wg.Go(func() {
			s := r.Session()
			commandstest.Say(t, s, strings.Repeat("CONFIG SET one "+value+" two "+value+"\r\n", 300))
		})
	}
	wg.Wait()
	if values["one"] != values["two"] {
		t.Errorf("two clients' settings are mixed: %v", values)
	}
}

func TestResetStatLeavesHistograms(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	commandstest.Say(t, s, "CL.THROTTLE k 1 1 1\r\nFOO\r\nCONFIG RESETSTAT\r\n")
	st := r.Engine.Records.Stats()
	if st.Calls["cl.throttle"] != 0 || st.Errors["ERR"] != 0 || st.Durations["cl.throttle"].Count != 1 || st.Batches.Count != 1 {
		t.Errorf("got %d calls, %d errors, %d durations, %d batches", st.Calls["cl.throttle"], st.Errors["ERR"],
			st.Durations["cl.throttle"].Count, st.Batches.Count)
	}
}

// TestConfigGetIsBounded in names and in patterns costly to match.
func TestConfigGetIsBounded(t *testing.T) {
	const maxNames = 128 // of one CONFIG GET
	s := commandstest.New().Session()
	most := "CONFIG GET" + strings.Repeat(" client", maxNames)
	want := "*0\r\n-ERR more than 128 names or patterns; ask for all of them instead\r\n"
	commandstest.Expect(t, s, most+"\r\n"+most+" client\r\n", want)
	evil := strings.Repeat(" *m*a*?*?*?*?*?*?*?*#?*", maxNames)
	commandstest.Expect(t, s, "CONFIG GET"+evil+"\r\n", "*0\r\n")
}

// TestThresholdSettings: SLOWLOG's and LATENCY's thresholds have bounds.
func TestThresholdSettings(t *testing.T) {
	const most = "9223372036854775807"
	failed := func(name, reason string) string {
		return "-ERR CONFIG SET failed (possibly related to argument '" + name + "') - argument " + reason + "\r\n"
	}
	for _, tt := range []struct{ name, value, reason string }{
		{"slowlog-log-slower-than", "-1", ""},
		{"slowlog-log-slower-than", "-2", "must be between -1 and " + most + " inclusive"},
		{"slowlog-log-slower-than", most, ""},
		{"slowlog-log-slower-than", "1x", "couldn't be parsed into an integer"},
		{"slowlog-max-len", "0", ""},
		{"slowlog-max-len", "-1", "must be between 0 and 16384 inclusive"},
		{"slowlog-max-len", "16384", ""},
		{"slowlog-max-len", "16385", "must be between 0 and 16384 inclusive"},
		{"latency-monitor-threshold", "0", ""},
		{"latency-monitor-threshold", "-1", "must be between 0 and " + most + " inclusive"},
		{"latency-monitor-threshold", most, ""},
	} {
		s := commandstest.New(func(c *commands.Config) {
			c.Thresholds = admin.Thresholds{SlowlogFromUs: 7, SlowlogMaxLen: 7, LatencyFromMs: 7}
		}).Session()
		want, value := "+OK\r\n", tt.value
		if tt.reason != "" {
			want, value = failed(tt.name, tt.reason), "7"
		}
		got := resptest.ParseAll(t, commandstest.Say(t, s, "CONFIG SET "+tt.name+" "+tt.value+"\r\nCONFIG GET "+tt.name+"\r\n"))
		if text := string(got[0].Kind) + got[0].Text + "\r\n"; text != want || got[1].Field(tt.name).Text != value {
			t.Errorf("%s %s: got %q, and then it is %+v", tt.name, tt.value, text, got[1])
		}
	}
}

// TestNoThresholds: without entries to keep, nothing is slow.
func TestNoThresholds(t *testing.T) {
	for _, tt := range []struct {
		thresholds admin.Thresholds
		fromUs     int64
	}{
		{admin.Thresholds{}, -1},
		{admin.Thresholds{SlowlogFromUs: 5}, -1},
		{admin.Thresholds{SlowlogFromUs: 5, SlowlogMaxLen: 1}, 5},
		{admin.Thresholds{SlowlogMaxLen: 1}, 0},
	} {
		r := commandstest.New(func(c *commands.Config) { c.Thresholds = tt.thresholds })
		if got := r.Engine.Records.Slowness.Slowlog(); got != tt.fromUs {
			t.Errorf("%+v: from %d us", tt.thresholds, got)
		}
	}
}
