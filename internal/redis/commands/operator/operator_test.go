package operator_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/decide/observe"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

func TestLatency(t *testing.T) {
	const samples = 160 // kept of an event, as in Redis
	r := commandstest.New()
	s := r.Session()
	latency := func(event string, ns int64) { r.Engine.Records.Latency(event, r.Clock.Now(), ns) }
	latency(observe.SweepEvent, 50*int64(time.Millisecond)) // recording is off
	commandstest.Expect(t, s, "LATENCY LATEST\r\nLATENCY HISTORY sweep\r\nLATENCY RESET\r\n", "*0\r\n*0\r\n:0\r\n")
	commandstest.Expect(t, s, "CONFIG SET latency-monitor-threshold 5\r\n", "+OK\r\n")
	for _, step := range []struct{ afterSec, ms int64 }{{0, 4}, {0, 5}, {0, 9}, {0, 7}, {60, 20}, {60, 14}} {
		r.Clock.Advance(step.afterSec * commandstest.Sec)
		latency(observe.SweepEvent, step.ms*int64(time.Millisecond)+999)
	}
	latency("command", int64(time.Second))
	at := commandstest.T0 / 1e9
	for _, tt := range []struct{ in, want string }{
		{"LATENCY HISTORY sweep\r\n", fmt.Sprintf("*3\r\n*2\r\n:%d\r\n:9\r\n*2\r\n:%d\r\n:20\r\n*2\r\n:%d\r\n:14\r\n", at, at+60, at+120)},
		{"LATENCY LATEST\r\n", fmt.Sprintf("*2\r\n*4\r\n$7\r\ncommand\r\n:%d\r\n:1000\r\n:1000\r\n*4\r\n$5\r\nsweep\r\n:%d\r\n:14\r\n:20\r\n", at+120, at+120)},
		{"LATENCY RESET nosuch command\r\n", ":1\r\n"},
		{"LATENCY HISTORY command\r\n", "*0\r\n"},
	} {
		commandstest.Expect(t, s, tt.in, tt.want)
	}
	for i := range 2 * samples {
		r.Clock.Advance(commandstest.Sec)
		latency("command", int64(5+i)*int64(time.Millisecond))
	}
	if v := r.Engine.Records.Latencies.All()["command"]; len(v.Samples) != samples || v.WorstMs != 5+2*samples-1 || v.Samples[0].Ms != 5+samples {
		t.Errorf("%d samples from %+v, worst %d ms", len(v.Samples), v.Samples[0], v.WorstMs)
	}
	commandstest.Expect(t, s, "LATENCY RESET\r\n", ":2\r\n")
}

func TestLatencyHistogram(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	r.Clock.StepBy(3000)
	commandstest.Say(t, s, "PING\r\nPING\r\nCLIENT ID\r\n")
	r.Clock.StepBy(5000)
	commandstest.Say(t, s, strings.Repeat("CL.THROTTLE k 1 1 1\r\n", 3))
	r.Clock.StepBy(0)
	const throttle = "$11\r\ncl.throttle\r\n*4\r\n$5\r\ncalls\r\n:3\r\n$14\r\nhistogram_usec\r\n*2\r\n:2\r\n:3\r\n"
	const pings = "$4\r\nping\r\n%2\r\n$5\r\ncalls\r\n:2\r\n$14\r\nhistogram_usec\r\n%1\r\n:4\r\n:2\r\n"
	const id = "$9\r\nclient|id\r\n%2\r\n$5\r\ncalls\r\n:1\r\n$14\r\nhistogram_usec\r\n%1\r\n:4\r\n:1\r\n"
	for _, tt := range []struct{ in, want string }{
		{"LATENCY HISTOGRAM ping nosuch get PING\r\n", "*2\r\n" + strings.NewReplacer("%2", "*4", "%1", "*2").Replace(pings)},
		{"LATENCY HISTOGRAM cl.throttle\r\n", "*2\r\n" + throttle},
		{"LATENCY HISTOGRAM client|id\r\n", "*2\r\n" + strings.NewReplacer("%2", "*4", "%1", "*2").Replace(id)},
		{"HELLO 3\r\nLATENCY HISTOGRAM client ping\r\n", "%2\r\n" + id + pings},
		{"CONFIG RESETSTAT\r\nLATENCY HISTOGRAM ping\r\n", "%0\r\n"},
	} {
		commandstest.ExpectLike(t, s, tt.in, "…"+tt.want)
	}
}

func TestTop(t *testing.T) {
	var nowNs atomic.Int64
	nowNs.Store(commandstest.T0)
	r := commandstest.New(func(c *commands.Config) { c.Now = nowNs.Load })
	s := r.Session()
	commandstest.Say(t, s, strings.Repeat("CL.THROTTLE often 1 1 60\r\n", 6)+"CL.THROTTLE once 1 1 60\r\nSELECT 3\r\nCL.THROTTLE often 1 1 60\r\n"+
		"MULTI\r\nCL.THROTTLE exec 1 1 60\r\nEXEC\r\n"+resptest.Encode("EVAL", "return redis.call('cl.throttle', KEYS[1], 1, 1, 60)", "1", "script"))
	nowNs.Add(commandstest.Sec / 2) // less than a second: the rates are as of one
	entry := func(name string, rate, share string, db int) string {
		return fmt.Sprintf("*5\r\n$%d\r\n%s\r\n,%s\r\n,%s\r\n,0\r\n:%d\r\n", len(name), name, rate, share, db)
	}
	commandstest.Say(t, s, "HELLO 3\r\n")
	for _, tt := range []struct{ in, want string }{
		{"CL.TOP\r\n", "*5\r\n" + entry("often", "6", "0.6", 0) + entry("once", "1", "0.1", 0) + entry("exec", "1", "0.1", 3) + entry("often", "1", "0.1", 3) + entry("script", "1", "0.1", 3)},
		{"cl.top asked count 1\r\n", "*1\r\n" + entry("often", "6", "0.6", 0)},
		{"CL.TOP COUNT 1\r\n", "*1\r\n" + entry("often", "6", "0.6", 0)},
		{"CL.TOP COUNT 1024 \r\n", "*5\r\n"},
		{"CL.TOP DENIED\r\n", "*1\r\n" + entry("often", "4", "1", 0)},
		{"CL.TOP COUNT 0\r\nCL.TOP COUNT 1025\r\nCL.TOP COUNT x\r\n", strings.Repeat("-ERR COUNT must be from 1 to 1024\r\n", 3)},
		{"CL.TOP x\r\nCL.TOP COUNT\r\nCL.TOP COUNT 1 DENIED\r\nCL.TOP WITHNAMES 1\r\n", strings.Repeat("-ERR syntax error; usage: CL.TOP [REQUESTED|LIMITED] [COUNT <count>] [WITHNAMES]\r\n", 4)},
		{resptest.Encode("EVAL", "return redis.call('cl.top')", "0"), "-ERR This Redis command is not allowed from script"},
		{"HELLO 2\r\nCL.TOP DENIED\r\n", "*1\r\n*5\r\n$5\r\noften\r\n$1\r\n4\r\n$1\r\n1\r\n$1\r\n0\r\n:0\r\n"},
	} {
		commandstest.ExpectLike(t, s, tt.in, "…"+tt.want+"…")
	}
}

// TestTopWithNames: a map in RESP3, names and values in turn in RESP2; what is not known yet is null.
func TestTopWithNames(t *testing.T) {
	var nowNs atomic.Int64
	nowNs.Store(commandstest.T0)
	r := commandstest.New(func(c *commands.Config) { c.Now = nowNs.Load })
	s := r.Session()
	long := strings.Repeat("x", 200)
	second := func(calls string) {
		commandstest.Say(t, s, calls)
		nowNs.Add(commandstest.Sec)
	}
	for range 20 {
		second(strings.Repeat("CL.THROTTLE often 1 1 60\r\n", 3))
	}
	second("SELECT 3\r\nCL.THROTTLE " + long + " 1 1 60\r\nSELECT 0\r\n")
	ask := func(words string) []resptest.Reply {
		return resptest.ParseAll(t, commandstest.Say(t, s, words+"\r\n"))[0].Elements
	}
	for _, tt := range []struct{ ask, key, cut, db, recent string }{
		{"CL.TOP withnames COUNT 1", "often", "0", "0", "2.7"},
		{"cl.top requested count 2 WITHNAMES", long[:80], "1", "3", "-1"},
	} {
		commandstest.Say(t, s, "HELLO 2\r\n")
		all := ask(tt.ask)
		flat := all[len(all)-1]
		commandstest.Say(t, s, "HELLO 3\r\n")
		all = ask(tt.ask)
		last := all[len(all)-1]
		if flat.Kind != '*' || last.Kind != '%' || len(flat.Elements) != 16 || len(last.Elements) != 16 {
			t.Fatalf("got %+v and %+v", flat, last)
		}
		got := flat.Field
		if !strings.HasPrefix(got("key").Text, tt.key) || fmt.Sprint(got("key_is_cut").Number) != tt.cut || fmt.Sprint(got("database").Number) != tt.db ||
			got("recent_calls_per_second").Text != tt.recent || (got("recent_calls_per_second_error").Kind == '_') != (tt.recent == "-1") {
			t.Errorf("%s: got %+v", tt.ask, flat)
		}
	}
}
