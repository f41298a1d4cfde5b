package session_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// TestStatistics: INFO commandstats and errorstats count as Redis does: calls, failed and rejected ones, also
// subcommands, background commands, in MULTI and in scripts.
func TestStatistics(t *testing.T) {
	const throttle, refused = "CL.THROTTLE k 9 1 1\r\n", "CL.THROTTLE k 9 x 1\r\n"
	eval := func(script string) string { return resptest.Encode("EVAL", script, "1", "k") }
	for _, tt := range []struct {
		name, in string
		want     string // command=calls,rejected,failed, by name
		errors   string
	}{
		{"a batch", strings.Repeat(throttle, 300), "cl.throttle=300,0,0", ""},
		{"errors in a batch", throttle + refused + throttle + "CL.THROTTLE\r\n", "cl.throttle=4,0,2", "Cell=2"},
		{"several commands", throttle + "CL.BUCKET TAKE b 1\r\nRL.THROTTLE k 9 1 1\r\nCL.BUCKET TAKE b\r\nCL.FIXEDWINDOW k 9 1\r\nCL.BUCKET LEN b\r\n",
			"cl.bucket|len=1,0,0 cl.bucket|take=2,0,1 cl.fixedwindow=1,0,1 cl.throttle=1,0,0 rl.throttle=1,0,0", "ERR=1 WRONGTYPE=1"},
		{"unknown", "NOSUCH\r\nCLIENT NOSUCH\r\n", "", "ERR=2"},
		{"arity", "GET\r\nCLIENT ID x\r\nCLIENT\r\n", "client=0,1,0 client|id=0,1,0 get=0,1,0", "ERR=3"},
		{"a refused command", "PSUBSCRIBE x\r\n", "", "ERR=1"},
		{"a subcommand fails", "CLIENT KILL 1.2.3.4:5\r\nCLIENT ID\r\n", "client|id=1,0,0 client|kill=1,0,1", "ERR=1"},
		{"aside", "DBSIZE\r\nKEYS *\r\n", "dbsize=1,0,0 keys=1,0,0", ""},
		{"logins", "AUTH a b\r\nHELLO 2 AUTH a b\r\nAUTH b\r\n", "auth=2,0,2 hello=1,0,1", "ERR=1 WRONGPASS=2"},
		{"a transaction", "MULTI\r\n" + throttle + refused + "EXPIRE k x\r\nEXEC\r\n", "cl.throttle=2,0,1 exec=1,0,0 expire=1,0,1 multi=1,0,0", "Cell=1 ERR=1"},
		{"that is aborted", "MULTI\r\nEXPIRE k x\r\nNOSUCH\r\nGET\r\nEXEC\r\n", "exec=1,0,1 get=0,1,0 multi=1,0,0", "ERR=2 EXECABORT=1"},
		{"that is rejected", "MULTI\r\nEXEC x\r\n", "exec=0,1,0 multi=1,0,0", "EXECABORT=1"},
		{"a native script", resptest.Encode("EVAL", native, "1", "k", "9", "1", "1"), "cl.throttle=1,0,0 eval=1,0,0", ""},
		{"a native script of a subcommand", resptest.Encode("EVAL", "return redis.call('cl.bucket', 'take', KEYS[1], 9)", "1", "b"), "cl.bucket|take=1,0,0 eval=1,0,0", ""},
		{"a script", eval("redis.call('cl.throttle', KEYS[1], 9, 1, 1) return redis.call('ttl', KEYS[1])"), "cl.throttle=1,0,0 eval=1,0,0 ttl=1,0,0", ""},
		{"a command in it fails", eval("redis.call('expire', KEYS[1], 'x')"), "eval=1,0,1 expire=1,0,1", "ERR=1"},
		{"is rejected", eval("return redis.call('get')"), "eval=1,0,1 get=0,1,0", "ERR=1"},
		{"is unknown", eval("return redis.call('nosuch')"), "eval=1,0,1", "ERR=1"},
		{"is caught", eval("redis.pcall('get') return 1"), "eval=1,0,0 get=0,1,0", "ERR=1"},
		{"is caught and handed on", eval("return redis.pcall('get')"), "eval=1,0,1 get=0,1,0", "ERR=1"},
		{"is caught, and then another", eval("redis.pcall('get') return redis.error_reply('MY error')"), "eval=1,0,1 get=0,1,0", "ERR=1 MY=1"},
		{"a script's own error", eval("return redis.error_reply('MY error')"), "eval=1,0,1", "MY=1"},
		{"whose code is strange", eval("return {err='a:b#c\\td e'}"), "eval=1,0,1", "a_b_c_d=1"},
		{"raised", eval("error('MY error')"), "eval=1,0,1", "ERR=1"},
		{"not Lua", eval("return ("), "eval=1,0,1", "ERR=1"},
		{"no such script", resptest.Encode("EVALSHA", strings.Repeat("a", 40), "0"), "evalsha=1,0,1", "NOSCRIPT=1"},
		{"a script in a transaction", "MULTI\r\n" + eval("return redis.call('get')") + "EXEC\r\n", "eval=1,0,1 exec=1,0,0 get=0,1,0 multi=1,0,0", "ERR=1"},
		{"reset", throttle + refused + "NOSUCH\r\nCONFIG RESETSTAT\r\n", "config|resetstat=1,0,0", ""},
	} {
		r := commandstest.New()
		commandstest.Say(t, r.Session(), tt.in)
		text := resptest.ParseAll(t, commandstest.Say(t, r.Session(), "INFO commandstats errorstats stats\r\n"))[0].Text
		var commands, errorCodes []string
		for line := range strings.SplitSeq(text, "\r\n") {
			fields := func(names ...string) string {
				_, values, _ := strings.Cut(line, ":")
				var found []string
				for field := range strings.SplitSeq(values, ",") {
					if name, value, _ := strings.Cut(field, "="); slices.Contains(names, name) {
						found = append(found, value)
					}
				}
				return strings.Join(found, ",")
			}
			name, _, _ := strings.Cut(line, ":")
			if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
				commands = append(commands, command+"="+fields("calls", "rejected_calls", "failed_calls"))
			} else if code, ok := strings.CutPrefix(name, "errorstat_"); ok {
				errorCodes = append(errorCodes, code+"="+fields("count"))
			}
		}
		if got := strings.Join(commands, " "); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		if got := strings.Join(errorCodes, " "); got != tt.errors {
			t.Errorf("%s: errors %q, want %q", tt.name, got, tt.errors)
		}
	}
}

// TestTimeAside: a command's time includes the background.
func TestTimeAside(t *testing.T) {
	r := commandstest.New(commandstest.Meddling)
	s := r.Session()
	r.Meddle = func() { r.Clock.Advance(int64(30 * time.Millisecond)) }
	commandstest.Say(t, s, resptest.Encode("EVAL", "redis.call('test.meddle')", "0")+"MULTI\r\nTEST.MEDDLE\r\nDBSIZE\r\nEXEC\r\n")
	got := commandstest.Say(t, s, "INFO commandstats\r\n")
	for _, want := range []string{"cmdstat_eval:calls=1,usec=30000,", "cmdstat_exec:calls=1,usec=30000,"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %q", want, got)
		}
	}
}

// TestCommandsAreTimedToTheirEnd, also in the background, but without a failed login's pause.
func TestCommandsAreTimedToTheirEnd(t *testing.T) {
	r := commandstest.New()
	r.Clock.StepBy(int64(time.Millisecond))
	s := r.Session()
	commandstest.Say(t, s, "CL.THROTTLE k 1 1 1\r\nEVAL 'return 1' 0\r\nDBSIZE\r\nPING\r\nCL.THROTTLE k 1 1 1\r\nCL.THROTTLE k 1 1 1\r\n")
	st := r.Engine.Records.Stats()
	for kind, want := range map[string]struct {
		count       uint64
		least, most time.Duration
	}{
		// the batch of 2 took 1, as did its calls
		"cl.throttle": {3, 3 * time.Millisecond, 3 * time.Millisecond},
		"script":      {1, time.Millisecond, 10 * time.Millisecond},
		"other":       {2, 2 * time.Millisecond, 10 * time.Millisecond},
	} {
		d := st.Durations[kind]
		if sum := time.Duration(d.SumNs); d.Count != want.count || sum < want.least || sum > want.most {
			t.Errorf("%s: %d took %s, want %d in %s to %s", kind, d.Count, sum, want.count, want.least, want.most)
		}
	}
	if got := r.Engine.Records.ThrottleDurations(); got.Count != 3 || got.Quantile(1) > 1100*time.Microsecond {
		t.Errorf("latency: %d, at most %s", got.Count, got.Quantile(1))
	}
	stats := commandstest.Say(t, s, "INFO commandstats\r\n")
	if !strings.Contains(stats, "cmdstat_cl.throttle:calls=3,usec=2000,usec_per_call=666.67,") || !strings.Contains(stats, "cmdstat_eval:calls=1,") {
		t.Errorf("commandstats: %s", stats)
	}
}

func TestALoginsPauseIsNoWork(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	commandstest.Say(t, s, "AUTH nobody wrong\r\n")
	if d := r.Engine.Records.Stats().Durations["other"]; d.Count != 1 || d.SumNs != 0 { // the clock stands still
		t.Errorf("%d took %d ns", d.Count, d.SumNs)
	}
}
