package session_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// Bounds as clients feel them:
const (
	maxWatched     = 10_000
	queuedArgBytes = 24 // cost of an argument behind MULTI beyond its bytes
	longExec       = 1000
)

const (
	loop      = "redis.call('cl.throttle', KEYS[1], 4, 1, 10) while true do end"
	timedOut  = "-ERR script ran longer than 5 ms and was ended; see --lua-time-limit\r\n"
	heldOut   = "-ERR script ran longer than 4.9 ms and was ended; others wait for its transaction, which can not take longer: send the script on its own\r\n"
	scriptSum = "-ERR the scripts of the transaction have taken longer than --lua-time-limit together; this one was not executed\r\n"
)

// TestTransactionBounds of queued commands, watched keys and replies.
func TestTransactionBounds(t *testing.T) {
	const maxBytes = 1000
	small := func(c *commands.Config) { c.Limits.MaxCommandBytes, c.MaxReplyBytes = maxBytes, maxBytes }
	tooLong := "-ERR transaction is longer than 1000 bytes, the limit of --max-command-bytes\r\n"
	watchedTooLong := "-ERR the watched keys are longer than 1000 bytes, the limit of --max-command-bytes; EXEC or UNWATCH first\r\n"
	repliesTooLong := "-ERR the replies of the transaction are longer than 1000 bytes, the limit of --max-output-bytes; this command was not executed\r\n"
	x := func(n int) string { return strings.Repeat("x", n) }
	echo := "$40\r\n" + x(40) + "\r\n"
	for _, tt := range []struct{ name, in, want string }{
		{"as long as may be", "MULTI\r\n" + resptest.Encode("ECHO", x(maxBytes-4-2*queuedArgBytes)) + "DISCARD\r\n", "+OK\r\n+QUEUED\r\n+OK\r\n"},
		{"longer", "MULTI\r\n" + resptest.Encode("ECHO", x(maxBytes-3-2*queuedArgBytes)) + "PING\r\nEXEC\r\nPING\r\n",
			"+OK\r\n" + tooLong + "+QUEUED\r\n" + execAborted + commandstest.Pong},
		{"many", "MULTI\r\n" + strings.Repeat("PING\r\n", 36) + "EXEC\r\n",
			"+OK\r\n" + strings.Repeat("+QUEUED\r\n", maxBytes/28) + tooLong + execAborted},
		{"the next one is new", "MULTI\r\n" + strings.Repeat("PING\r\n", 36) + "DISCARD\r\nMULTI\r\nPING\r\nEXEC\r\n",
			"+OK\r\n" + strings.Repeat("+QUEUED\r\n", maxBytes/28) + tooLong + "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n" + commandstest.Pong},
		{"watched names", strings.Repeat(resptest.Encode("WATCH", x(250), x(250)), 2) + "WATCH y\r\nUNWATCH\r\nWATCH y\r\n",
			"+OK\r\n+OK\r\n" + watchedTooLong + "+OK\r\n+OK\r\n"},
		{"replies", "MULTI\r\n" + strings.Repeat("COMMAND COUNT\r\n", 1) + "COMMAND LIST\r\nCL.THROTTLE k 4 1 10\r\nPING\r\nEXEC\r\nEXISTS k\r\n",
			"+OK\r\n" + strings.Repeat("+QUEUED\r\n", 4) + "*4\r\n:"},
		{"replies that fit", "MULTI\r\n" + strings.Repeat(resptest.Encode("ECHO", x(40)), 10) + "EXEC\r\n",
			"+OK\r\n" + strings.Repeat("+QUEUED\r\n", 10) + "*10\r\n" + strings.Repeat(echo, 10)},
		{"a sleep under locks", "MULTI\r\nDEBUG SLEEP 3600\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n-ERR Command not allowed inside a transaction\r\n"},
	} {
		got := commandstest.Say(t, commandstest.New(small).Session(), tt.in)
		if tt.name == "replies" {
			if !strings.HasPrefix(got, tt.want) || !strings.HasSuffix(got, repliesTooLong+repliesTooLong+":0\r\n") {
				t.Errorf("%s: got %q", tt.name, got)
			}
		} else if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	keys := []string{"WATCH"}
	for i := range maxWatched {
		keys = append(keys, strconv.Itoa(i))
	}
	want := "+OK\r\n-ERR more than 10000 keys are watched; EXEC or UNWATCH first\r\n+OK\r\n*0\r\n+OK\r\n"
	commandstest.Expect(t, commandstest.New().Session(), resptest.Encode(keys...)+"WATCH x\r\nMULTI\r\nEXEC\r\nWATCH x\r\n", want)
}

// TestLongExecGoesAside: long transactions run in the background.
func TestLongExecGoesAside(t *testing.T) {
	many := make([]string, longExec+1)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	for _, tt := range []struct {
		name, in string
		aside    bool
	}{
		{"short", "PING\r\n", false},
		{"not yet long", strings.Repeat("PING\r\n", longExec), false},
		{"long", strings.Repeat("PING\r\n", longExec+1), true},
		{"few keys", "DEL a b c\r\n", false},
		{"many keys", resptest.Encode(append([]string{"DEL"}, many...)...), true},
		{"all keys", "DBSIZE\r\n", true},
		{"a script", "EVAL \"return 1\" 0\r\n", true},
		{"much to tell", "COMMAND DOCS\r\n", true},
		{"all clients", "CLIENT LIST\r\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := commandstest.New().Session()
			commandstest.Say(t, s, "MULTI\r\n"+tt.in)
			replies, left, status := commandstest.Feed(t, s, "EXEC\r\nPING\r\n")
			if (status == peer.Waiting) != tt.aside || tt.aside && left != "PING\r\n" {
				t.Errorf("status %d, replied %.20q, left %q", status, replies, left)
			}
			if status == peer.Waiting {
				<-s.Conn.Woken
				replies, _, _ = commandstest.Converse(t, s, left)
			}
			if all := resptest.ParseAll(t, replies); len(all) != 2 || all[0].Kind != '*' || all[1].Text != "PONG" {
				t.Errorf("replied %.80q", replies)
			}
		})
	}
}

// TestExecOnAllKeys: commands about all keys, and scripts, see the effects of earlier ones.
func TestExecOnAllKeys(t *testing.T) {
	first := resptest.Ints(0, 5, 4, -1, 10)
	for _, tt := range []struct{ name, in, want string }{
		{"DBSIZE", "CL.THROTTLE b 4 1 10\r\nDBSIZE\r\nDEL a b\r\nDBSIZE\r\n", first + ":2\r\n:2\r\n:0\r\n"},
		{"FLUSHDB", "FLUSHDB\r\nEXISTS a\r\nCL.THROTTLE a 4 1 10\r\n", "+OK\r\n:0\r\n" + first},
		{"FLUSHALL", "SELECT 1\r\nCL.THROTTLE a 4 1 10\r\nFLUSHALL\r\nDBSIZE\r\nSELECT 0\r\nDBSIZE\r\n",
			"+OK\r\n" + first + "+OK\r\n:0\r\n+OK\r\n:0\r\n"},
		{"SCAN", "SCAN 0\r\nDEL a\r\nSCAN 0 COUNT 100000\r\n", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\n0\r\n*0\r\n"},
		{"KEYS", "CL.THROTTLE b 4 1 10\r\nKEYS b*\r\n", first + "*1\r\n$1\r\nb\r\n"},
		{"INFO", "CL.THROTTLE b 4 1 10\r\nINFO keyspace\r\n", first + "$44\r\n# Keyspace\r\ndb0:keys=2,expires=2,avg_ttl=0\r\n\r\n"},
		{"MEMORY USAGE", "MEMORY USAGE nosuch\r\nDBSIZE\r\n", "$-1\r\n:1\r\n"},
		{"SELECT", "SELECT 1\r\nCL.THROTTLE a 4 1 10\r\nDBSIZE\r\nSELECT 99\r\nSELECT 2\r\nDBSIZE\r\n",
			"+OK\r\n" + first + ":1\r\n-ERR DB index is out of range\r\n+OK\r\n:0\r\n"},
		{"a script", resptest.Encode("EVAL", "redis.call('cl.throttle', KEYS[1], 4, 1, 10) return redis.call('exists', KEYS[1], KEYS[2])", "2", "a", "b") +
			"DBSIZE\r\nTTL a\r\n", ":1\r\n:1\r\n:20\r\n"},
		{"a script in another database", "SELECT 1\r\n" + resptest.Encode("EVAL", native, "1", "a", "4", "1", "10") + "DBSIZE\r\n", "+OK\r\n" + first + ":1\r\n"},
		{"a script that is ended", "CL.THROTTLE b 4 1 10\r\n" + resptest.Encode("EVAL", loop, "2", "a", "c") + "TTL a\r\nDBSIZE\r\n", first + heldOut + ":10\r\n:2\r\n"},
		{"a script alone that is ended", "CL.THROTTLE b 4 1 10\r\n" + resptest.Encode("EVAL", loop, "2", "a", "c") + "TTL a\r\nTTL b\r\n",
			first + timedOut + ":10\r\n:10\r\n"},
		{"a script alone", resptest.Encode("EVAL", native, "1", "b", "4", "1", "10") + "TTL b\r\n", first + ":10\r\n"},
		{"too many scripts", resptest.Encode("EVAL", loop, "1", "b") + resptest.Encode("EVAL", "return 1", "0") + "CL.THROTTLE b 4 1 10\r\n", timedOut + scriptSum + first},
		{"too many scripts, and all keys", resptest.Encode("EVAL", loop, "1", "b") + resptest.Encode("EVAL", "return 1", "0") + "DBSIZE\r\n", heldOut + scriptSum + ":1\r\n"},
	} {
		r := commandstest.New(commandstest.WithLimitFor(tt.in))
		s := r.Session()
		commandstest.Say(t, s, "CL.THROTTLE a 4 1 10\r\nMULTI\r\n"+tt.in)
		if strings.HasPrefix(tt.name, "too many") {
			r.Clock.StepBy(int64(5 * time.Millisecond)) // at each reading; EXEC's time stands still
		}
		want := "*" + strconv.Itoa(len(resptest.ParseAll(t, tt.want))) + "\r\n" + tt.want
		commandstest.Expect(t, s, "EXEC\r\n", want)
	}
}

// TestEndedScriptTouchesNothing, not even others' watches.
func TestEndedScriptTouchesNothing(t *testing.T) {
	for _, in := range []string{
		resptest.Encode("EVAL", loop, "2", "a", "b"),
		"MULTI\r\n" + resptest.Encode("EVAL", loop, "2", "a", "b") + "EXEC\r\n",
		// writes take effect at once
		"MULTI\r\n" + resptest.Encode("EVAL", "while true do end", "2", "a", "b") + "DBSIZE\r\nEXEC\r\n",
	} {
		r := commandstest.New(commandstest.WithTimeLimit(5 * time.Millisecond))
		s, watcher := r.Session(), r.Session()
		commandstest.Say(t, watcher, "WATCH a b\r\nMULTI\r\nPING\r\n")
		if got := commandstest.Say(t, s, in); !strings.Contains(got, timedOut) && !strings.Contains(got, heldOut) {
			t.Errorf("%q: got %q", in, got)
		}
		commandstest.Expect(t, watcher, "EXEC\r\nDBSIZE\r\n", "*1\r\n"+commandstest.Pong+":0\r\n")
	}
}

// TestExecIsRepeatedOnlyIfItMay: one with scripts runs on a snapshot, and again after a conflict unless a
// command changes more than keys.
func TestExecIsRepeatedOnlyIfItMay(t *testing.T) {
	const script = "redis.call('test.meddle') return redis.call('cl.throttle', KEYS[1], 99, 1, 10)[3]"
	for _, tt := range []struct {
		also  string // in the transaction
		calls string // of EVAL
		want  string // final value of a
	}{
		{"", "calls=3", "97"},
		{"ECHO x\r\n", "calls=3", "97"},
		{"CLIENT SETNAME x\r\n", "calls=1", "99"}, // under locks: others come after it
		{"DBSIZE\r\n", "calls=1", "99"},
	} {
		r := commandstest.New(commandstest.Meddling)
		s, other := r.Session(), r.Session()
		left := 2
		var behind sync.WaitGroup
		r.Meddle = func() {
			if left > 0 {
				left--
				if tt.calls == "calls=1" { // else it would wait for the locks
					behind.Go(func() { commandstest.Say(t, other, "CL.THROTTLE a 99 1 10\r\n") })
				} else {
					commandstest.Say(t, other, "CL.THROTTLE a 99 1 10\r\n")
				}
			}
		}
		got := commandstest.Say(t, s, "MULTI\r\n"+resptest.Encode("EVAL", script, "1", "a")+tt.also+"EXEC\r\n")
		behind.Wait()
		if !strings.Contains(got, ":"+tt.want+"\r\n") {
			t.Errorf("%q: got %q", tt.also, got)
		}
		if got := commandstest.Say(t, s, "INFO commandstats\r\n"); !strings.Contains(got, "cmdstat_eval:"+tt.calls) {
			t.Errorf("%q: %s", tt.also, got)
		}
		commandstest.Expect(t, s, "TTL a\r\n", map[string]string{"97": ":30\r\n", "99": ":20\r\n"}[tt.want])
	}
}

// TestSessionEndsWhileItsTransactionIsPlanned: planning in the background reads nothing that the session's
// end changes, as the race detector confirms.
func TestSessionEndsWhileItsTransactionIsPlanned(t *testing.T) {
	r := commandstest.New()
	c := r.Session()
	const calls, keys = 100, 1000
	exists := resptest.Encode(append([]string{"EXISTS"}, make([]string, keys)...)...)
	want := "+OK\r\n+OK\r\n" + strings.Repeat("+QUEUED\r\n", calls)
	if got := commandstest.Say(t, c, "WATCH k\r\nMULTI\r\n"+strings.Repeat(exists, calls)); got != want {
		t.Fatalf("got %.200q", got)
	}
	release := r.Engine.HoldBackground()
	if replies, _, status := commandstest.Feed(t, c, "EXEC\r\n"); replies != "" || status != peer.Waiting {
		t.Fatalf("status %d, got %.200q", status, replies)
	}
	release()
	c.Close()
	r.Engine.HoldBackground()() // after its turn
}
