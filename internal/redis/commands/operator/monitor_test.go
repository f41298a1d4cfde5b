package operator_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// Bounds that clients see:
const (
	feedBytes         = 64 << 10 // of replies end a Feed
	maxInnerLineBytes = 1 << 20
	maxLineArgBytes   = 8 << 10
	maxLineArgs       = 1 << 10
)

// watched returns the lines that another session's MONITOR was sent, without their times.
func watched(t *testing.T, monitor *commandstest.Client) string {
	t.Helper()
	got, _, status := commandstest.Feed(t, monitor, "")
	if status != peer.NeedInput {
		t.Errorf("status %d", status)
	}
	return strings.ReplaceAll(strings.ReplaceAll(got, "+1700000000.000000 ", ""), "192.0.2.1:5000", "c")
}

// TestMonitor expects the lines of Redis 7.0.15, as the differential test of e2e confirms.
func TestMonitor(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"a command", "ping\r\n", `[0 c] "ping"`},
		{"a batch", "CL.THROTTLE k 1 1 1\r\nCL.THROTTLE k 1 1 1 0\r\nCL.THROTTLE x\r\n",
			"[0 c] \"CL.THROTTLE\" \"k\" \"1\" \"1\" \"1\"\n[0 c] \"CL.THROTTLE\" \"k\" \"1\" \"1\" \"1\" \"0\"\n[0 c] \"CL.THROTTLE\" \"x\""},
		{"several batches", "CL.THROTTLE k 1 1 1\r\ncl.bucket Take b 5\r\nRL.THROTTLE k 1 1 1\r\nCL.THROTTLE k 1 1 1\r\nCL.PEEK k 1 1 1\r\n",
			"[0 c] \"CL.THROTTLE\" \"k\" \"1\" \"1\" \"1\"\n[0 c] \"cl.bucket\" \"Take\" \"b\" \"5\"\n[0 c] \"RL.THROTTLE\" \"k\" \"1\" \"1\" \"1\"\n" +
				"[0 c] \"CL.THROTTLE\" \"k\" \"1\" \"1\" \"1\"\n[0 c] \"CL.PEEK\" \"k\" \"1\" \"1\" \"1\""},
		{"values", "INCR n\r\nincrby n 5\r\nINCR n x\r\nDECRBY n x\r\nGET n\r\nMSET a 1 b 2\r\nRENAME a b\r\nGETEX b EX 5\r\n",
			"[0 c] \"INCR\" \"n\"\n[0 c] \"incrby\" \"n\" \"5\"\n[0 c] \"DECRBY\" \"n\" \"x\"\n[0 c] \"GET\" \"n\"\n" +
				"[0 c] \"MSET\" \"a\" \"1\" \"b\" \"2\"\n[0 c] \"RENAME\" \"a\" \"b\"\n[0 c] \"GETEX\" \"b\" \"EX\" \"5\""},
		{"values compared", "SET k v IFEQ w\r\nDELEX k ifdeq x\r\nDELIFEQ k v\r\nDIGEST k\r\nMSETEX 1 k v NX\r\nMSETNX k v\r\nGETSET k w\r\nDELEX k IFEQ\r\n",
			"[0 c] \"SET\" \"k\" \"v\" \"IFEQ\" \"w\"\n[0 c] \"DELEX\" \"k\" \"ifdeq\" \"x\"\n[0 c] \"DELIFEQ\" \"k\" \"v\"\n[0 c] \"DIGEST\" \"k\"\n" +
				"[0 c] \"MSETEX\" \"1\" \"k\" \"v\" \"NX\"\n[0 c] \"MSETNX\" \"k\" \"v\"\n[0 c] \"GETSET\" \"k\" \"w\"\n[0 c] \"DELEX\" \"k\" \"IFEQ\""},
		{"values in a script", resptest.Encode("EVAL", "if redis.call('INCR',KEYS[1]) == 1 then redis.call('PEXPIRE',KEYS[1],ARGV[1]) end", "1", "k", "50"),
			"[0 c] \"EVAL\" \"if redis.call('INCR',KEYS[1]) == 1 then redis.call('PEXPIRE',KEYS[1],ARGV[1]) end\" \"1\" \"k\" \"50\"\n" +
				"[0 lua] \"INCR\" \"k\"\n[0 lua] \"PEXPIRE\" \"k\" \"50\""},
		{"INCREX, of integers and floats", "INCREX n UBOUND 1\r\nINCREX n UBOUND 1\r\nincrex n byfloat 1\r\nINCREX n ENX\r\nINCREX n BYFLOAT x\r\nMULTI\r\nINCREX n BYFLOAT 1\r\nEXEC\r\n" +
			resptest.Encode("EVAL", "return redis.call('INCREX',KEYS[1],'BYFLOAT','1')", "1", "k"),
			"[0 c] \"INCREX\" \"n\" \"UBOUND\" \"1\"\n[0 c] \"INCREX\" \"n\" \"UBOUND\" \"1\"\n[0 c] \"increx\" \"n\" \"byfloat\" \"1\"\n" +
				"[0 c] \"INCREX\" \"n\" \"ENX\"\n[0 c] \"INCREX\" \"n\" \"BYFLOAT\" \"x\"\n[0 c] \"MULTI\"\n[0 c] \"INCREX\" \"n\" \"BYFLOAT\" \"1\"\n[0 c] \"EXEC\"\n" +
				"[0 c] \"EVAL\" \"return redis.call('INCREX',KEYS[1],'BYFLOAT','1')\" \"1\" \"k\"\n[0 lua] \"INCREX\" \"k\" \"BYFLOAT\" \"1\""},
		{"what was not executed", "NOSUCH\r\nGET\r\nPSUBSCRIBE a\r\n", ""},
		{"what failed", "TTL k\r\nEVALSHA x 0\r\n", "[0 c] \"TTL\" \"k\"\n[0 c] \"EVALSHA\" \"x\" \"0\""},
		{"administration", "CONFIG GET x\r\nSLOWLOG LEN\r\nACL SETUSER x >y\r\n", ""},
		{"passwords", "AUTH a\r\nAUTH a b\r\nHELLO 2 SETNAME auth AUTH default auth\r\n",
			"[0 c] \"AUTH\" \"(redacted)\"\n[0 c] \"AUTH\" \"(redacted)\" \"(redacted)\"\n" +
				"[0 c] \"HELLO\" \"2\" \"SETNAME\" \"auth\" \"AUTH\" \"(redacted)\" \"(redacted)\""},
		{"databases", "SELECT 3\r\nGET k\r\nRESET\r\n", "[3 c] \"SELECT\" \"3\"\n[3 c] \"GET\" \"k\"\n[0 c] \"RESET\""},
		{"escapes", resptest.Encode("ECHO", "a\x00\a\b\t\r\n\"\\\x7f\xffé~"), `[0 c] "ECHO" "a\x00\a\b\t\r\n\"\\\x7f\xff\xc3\xa9~"`},
		{"muted", "CLIENT REPLY OFF\r\nPING\r\n", "[0 c] \"CLIENT\" \"REPLY\" \"OFF\"\n[0 c] \"PING\""},
		{"a transaction", "MULTI\r\nCL.THROTTLE k 1 1 1\r\nGET k\r\nexec\r\n",
			"[0 c] \"MULTI\"\n[0 c] \"CL.THROTTLE\" \"k\" \"1\" \"1\" \"1\"\n[0 c] \"GET\" \"k\"\n[0 c] \"exec\""},
		{"a transaction in another database", "MULTI\r\nSELECT 2\r\nGET k\r\nEXEC\r\n",
			"[0 c] \"MULTI\"\n[2 c] \"SELECT\" \"2\"\n[2 c] \"GET\" \"k\"\n[2 c] \"EXEC\""},
		{"a whole transaction", "MULTI\r\nDBSIZE\r\nEXEC\r\n", "[0 c] \"MULTI\"\n[0 c] \"DBSIZE\"\n[0 c] \"EXEC\""},
		{"no transaction", "EXEC\r\nMULTI\r\nNOSUCH\r\nEXEC\r\nMULTI\r\nPING\r\nDISCARD\r\n",
			"[0 c] \"EXEC\"\n[0 c] \"MULTI\"\n[0 c] \"EXEC\"\n[0 c] \"MULTI\"\n[0 c] \"DISCARD\""},
		{"a script", resptest.Encode("EVAL", "redis.call('get',KEYS[1]) return redis.call('del',KEYS[1])", "1", "k") + resptest.Encode("EVAL", "return 1", "0"),
			"[0 c] \"EVAL\" \"redis.call('get',KEYS[1]) return redis.call('del',KEYS[1])\" \"1\" \"k\"\n[0 lua] \"get\" \"k\"\n[0 lua] \"del\" \"k\"\n[0 c] \"EVAL\" \"return 1\" \"0\""},
		{"a script without interpreter", resptest.Encode("EVAL", "return redis.call('CL.THROTTLE',KEYS[1],ARGV[1],ARGV[2],ARGV[3])", "1", "k", "1", "2", "3"),
			"[0 c] \"EVAL\" \"return redis.call('CL.THROTTLE',KEYS[1],ARGV[1],ARGV[2],ARGV[3])\" \"1\" \"k\" \"1\" \"2\" \"3\"\n[0 lua] \"CL.THROTTLE\" \"k\" \"1\" \"2\" \"3\""},
		{"a script of a subcommand", resptest.Encode("EVAL", "return redis.call('CL.BUCKET','TAKE',KEYS[1],ARGV[1])", "1", "k", "5"),
			"[0 c] \"EVAL\" \"return redis.call('CL.BUCKET','TAKE',KEYS[1],ARGV[1])\" \"1\" \"k\" \"5\"\n[0 lua] \"CL.BUCKET\" \"TAKE\" \"k\" \"5\""},
		{"a script in a transaction", "MULTI\r\n" + resptest.Encode("EVAL", "return redis.call('get',KEYS[1])", "1", "k") + "EXEC\r\n",
			"[0 c] \"MULTI\"\n[0 c] \"EVAL\" \"return redis.call('get',KEYS[1])\" \"1\" \"k\"\n[0 lua] \"get\" \"k\"\n[0 c] \"EXEC\""},
		{"long", resptest.Encode("ECHO", strings.Repeat("x", maxLineArgBytes+7)), `[0 c] "ECHO" "` + strings.Repeat("x", maxLineArgBytes) + `... (7 more bytes)"`},
		{"many", resptest.Encode(append([]string{"DEL"}, make([]string, 2000)...)...),
			`[0 c] "DEL"` + strings.Repeat(` ""`, maxLineArgs-1) + ` "... (977 more arguments)"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := commandstest.New(commandstest.Standing)
			monitor, s := r.Session(), r.Session()
			if got := commandstest.Say(t, monitor, "MONITOR\r\n"); got != "+OK\r\n" {
				t.Fatalf("got %q", got)
			}
			commandstest.Converse(t, s, tt.in)
			want := tt.want
			if want != "" {
				want = strings.ReplaceAll(want, "\n", "\r\n") + "\r\n"
			}
			if got := watched(t, monitor); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// TestMonitorsOwnCommands: a MONITOR may use commands without keys; RESET and QUIT end it.
func TestMonitorsOwnCommands(t *testing.T) {
	r := commandstest.New(commandstest.Standing)
	s := r.Session()
	const refused = "-ERR Replica can't interact with the keyspace\r\n"
	line := func(text string) string { return "+1700000000.000000 [0 192.0.2.1:5000] " + text + "\r\n" }
	for _, tt := range []struct{ in, want string }{
		{"MONITOR\r\n", "+OK\r\n"},
		{"PING\r\n", commandstest.Pong + line(`"PING"`)},
		{"MONITOR\r\n", ""},
		{"GET a\r\nCL.THROTTLE a 1 1 1\r\nFLUSHALL\r\n" + resptest.Encode("EVAL", "return 1", "0"), strings.Repeat(refused, 4)},
		{"MULTI\r\nGET a\r\nEXEC\r\n", "+OK\r\n" + refused + "-EXECABORT Transaction discarded because of previous errors.\r\n" + line(`"MULTI"`) + line(`"EXEC"`)},
		{"CLIENT LIST ID 5\r\nCLIENT ID\r\nRESET\r\n", "$0\r\n\r\n:1\r\n" + line(`"CLIENT" "ID"`) + "+RESET\r\n"},
		{"PING\r\nGET a\r\nMULTI\r\nMONITOR\r\nEXEC\r\nPING\r\n", commandstest.Pong + "$-1\r\n+OK\r\n+QUEUED\r\n*1\r\n-ERR MONITOR isn't allowed for DENY BLOCKING client\r\n" + commandstest.Pong},
		{resptest.Encode("EVAL", "return redis.call('monitor')", "0"), "-ERR This Redis command is not allowed from script"},
	} {
		if got := commandstest.Say(t, s, tt.in); got != tt.want && (tt.want == "" || !strings.HasPrefix(got, tt.want)) {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
	}
	commandstest.Say(t, s, "MONITOR\r\n")
	if list := commandstest.Say(t, r.Session(), "CLIENT LIST ID 1\r\n"); !strings.Contains(list, " flags=O ") {
		t.Errorf("CLIENT LIST has %q", list)
	}
	if got, _, status := commandstest.Converse(t, s, "QUIT\r\n"); got != "+OK\r\n" || status != peer.Close {
		t.Errorf("QUIT: got %q, %d", got, status)
	}
	s.Close()
	if r.Engine.Records.Monitors.Any() {
		t.Error("somebody is still in MONITOR")
	}
}

// TestMonitorIsWoken once for new lines, and never without any.
func TestMonitorIsWoken(t *testing.T) {
	r := commandstest.New(commandstest.Standing)
	monitor, s := r.Session(), r.Session()
	commandstest.Say(t, monitor, "MONITOR\r\n")
	woken := monitor.Conn.Woken
	for range 2 {
		if len(woken) != 0 {
			t.Error("woken for nothing")
		}
		commandstest.Say(t, s, "PING\r\nPING\r\n")
		if len(woken) != 1 {
			t.Error("not woken")
		}
		<-woken
		commandstest.Say(t, s, "PING\r\n")
		if len(woken) != 0 {
			t.Error("woken again before it has taken what there is")
		}
		if got := strings.Count(watched(t, monitor), "PING"); got != 3 {
			t.Errorf("%d lines, want 3", got)
		}
	}
}

// TestMonitorTakesPieces of whole lines in each Feed.
func TestMonitorTakesPieces(t *testing.T) {
	r := commandstest.New(commandstest.Standing)
	monitor, s := r.Session(), r.Session()
	commandstest.Say(t, monitor, "MONITOR\r\n")
	commandstest.Say(t, s, strings.Repeat("ECHO abcdefghijklmnopqrstuvwxyz\r\n", 10_000))
	feeds, lines := 0, 0
	for more := true; more; feeds++ {
		_, out, status := monitor.Feed(nil, nil)
		if len(out) > feedBytes+1000 || !bytes.HasSuffix(out, []byte("\r\n")) {
			t.Fatalf("a piece of %d bytes that ends in %q", len(out), out[len(out)-2:])
		}
		lines += bytes.Count(out, []byte("\n"))
		more = status == peer.More
	}
	if lines != 10_000 || feeds < 5 {
		t.Errorf("%d lines in %d pieces", lines, feeds)
	}
}

// TestMonitorThatFallsBehind is closed and delays nobody.
func TestMonitorThatFallsBehind(t *testing.T) {
	racetest.SkipAlone(t)
	r := commandstest.New(commandstest.Standing)
	slow, quick, s := r.Session(), r.Session(), r.Session()
	commandstest.Say(t, slow, "MONITOR\r\n")
	commandstest.Say(t, quick, "MONITOR\r\n")
	lines := 0
	for i := range clients.MaxBacklogBytes / (64 * 40) * 2 {
		commandstest.Say(t, s, strings.Repeat("ECHO abcdefghijklmnopqrstuvwxyz\r\n", 32))
		got := watched(t, quick)
		lines += strings.Count(got, "\n")
		if killed := slow.Conn.Killed.Load(); killed && i == 0 {
			t.Fatal("closed at once")
		}
	}
	if !slow.Conn.Killed.Load() || quick.Conn.Killed.Load() {
		t.Error("not the slow one was closed")
	}
	if want := clients.MaxBacklogBytes / (64 * 40) * 2 * 32; lines != want {
		t.Errorf("the quick one saw %d lines, want %d", lines, want)
	}
	again := r.Session()
	commandstest.Say(t, again, "MONITOR\r\n")
	for range 2 * clients.MaxBacklogBytes / (32 * 8000) {
		commandstest.Say(t, s, strings.Repeat(resptest.Encode("ECHO", strings.Repeat("x", 8000)), 32))
	}
	if log := r.Log.String(); strings.Count(log, "MONITOR is too slow") != 1 || !again.Conn.Killed.Load() {
		t.Errorf("the log says %q", log)
	}
	if got := watched(t, slow); got != "" {
		t.Errorf("what it has not read is kept: %d bytes", len(got))
	}
}

// TestLongScriptDropsNoMonitor: a script's commands come at once, and may exceed a MONITOR's bound on pending
// lines.
func TestLongScriptDropsNoMonitor(t *testing.T) {
	racetest.SkipAlone(t)
	const calls = clients.MaxBacklogBytes / 40
	script := resptest.Encode("EVAL", fmt.Sprintf("for i = 1, %d do redis.call('exists', KEYS[1]) end", calls), "1", "k")
	for _, in := range []string{script, "MULTI\r\n" + script + script + "EXEC\r\n"} {
		r := commandstest.New(commandstest.Standing)
		monitor, s := r.Session(), r.Session()
		commandstest.Say(t, monitor, "MONITOR\r\n")
		commandstest.Converse(t, s, in+"PING\r\n")
		if monitor.Conn.Killed.Load() {
			t.Fatalf("%.20q: closed", in)
		}
		got, _, _ := commandstest.Feed(t, monitor, "")
		if n := strings.Count(got, `"exists"`); n < 1000 || len(got) > 3*maxInnerLineBytes || !strings.Contains(got, `[0 lua] "... (more commands)"`+"\r\n") ||
			!strings.HasSuffix(got, "\"PING\"\r\n") {
			t.Errorf("%.20q: %d calls in %d bytes, %q at the end", in, n, len(got), got[len(got)-200:])
		}
	}
}

// TestMonitorConcurrently shows every command once, also of repeated scripts.
func TestMonitorConcurrently(t *testing.T) {
	r := commandstest.New(commandstest.Standing)
	monitor := r.Session()
	commandstest.Say(t, monitor, "MONITOR\r\n")
	const clients, rounds = 4, 100
	var wg sync.WaitGroup
	for id := range clients {
		s := r.Session()
		wg.Go(func() {
			for i := range rounds {
				commandstest.Converse(t, s, resptest.Encode("CL.THROTTLE", fmt.Sprintf("k%d-%d", id, i), "1", "1", "1")+
					resptest.Encode("EVAL", "redis.call('get', KEYS[1]) return redis.call('del', KEYS[1], ARGV[1])", "2", "shared", fmt.Sprintf("s%d-%d", id, i), fmt.Sprintf("s%d-%d", id, i)))
			}
			s.Close()
		})
	}
	wg.Wait()
	got := watched(t, monitor)
	for id := range clients {
		for i := range rounds {
			for _, text := range []string{fmt.Sprintf(`"CL.THROTTLE" "k%d-%d"`, id, i), fmt.Sprintf(`[0 lua] "del" "shared" "s%d-%d"`, id, i)} {
				if n := strings.Count(got, text+`"`) + strings.Count(got, text+" ") + strings.Count(got, text+"\r"); n != 1 {
					t.Fatalf("%s is there %d times", text, n)
				}
			}
		}
	}
}
