package keys_test

import (
	"strings"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/reply"
	"cellserver/internal/test/resptest"
)

// changesOf returns calls that move, replace or remove the key k; v is a value, and n absent.
func changesOf(state string) (all [][]string) {
	text := limiter.ValueOf([]byte("text"), limiter.NeverNs)
	for _, call := range []string{
		"SET k text", "SET k 5", "SET k 1700000100000000000", "SET k 5 NX", "SET k 5 GET", "SET k 5 KEEPTTL", "SETNX k 5", "SETEX k 5 text",
		"PSETEX k 5 text", "MSET v 6 k 6", "GETDEL k", "GETSET k 5", "SET k 5 IFNE x", "SET k text IFEQ 5", "SET k text IFDNE 0000000000000000 GET",
		"DELEX k", "DELEX k IFNE x", "DELEX k IFEQ 5", "DELIFEQ k 5", "MSETEX 2 v 6 k 6 EX 100", "MSETEX 1 k 6 XX", "MSETEX 1 k text KEEPTTL", "RENAME k n", "RENAMENX k n", "RENAME k v", "RENAME v k", "RENAMENX v k", "RENAME k k", "DEL v k",
		"UNLINK k", "EXPIRE k 100", "EXPIRE k -1", "PEXPIRE k 0 XX", "EXPIREAT k 1", "PEXPIREAT k 1",
	} {
		all = append(all, strings.Fields(call))
	}
	return append(all, []string{"RESTORE", "k", "0", payloadOf(&text), "REPLACE"}, []string{"RESTORE", "k", "0", state, "REPLACE"})
}

// TestLimitersAreSafe: without the right to CL.RESET it, a user cannot move, replace or remove the
// key of a limiter of any kind, at the top, in EXEC or in a script. A denial comes before WRONGTYPE.
func TestLimitersAreSafe(t *testing.T) {
	r := commandstest.NewUserHarness(t, "user default on nopass ~* &* +@all", "user app on >pw ~* &* +@all -@refill")
	admin, app := r.Session(), r.Login("app")
	const denied = "NOPERM this user has no permissions to run the 'cl.reset' command" + reply.RefillDenied
	const inScript = "ERR The user executing the script can't run this command or subcommand" + reply.RefillDenied
	for _, s := range states(t) {
		if s.Kind == limiter.Value {
			continue
		}
		payload := payloadOf(&s)
		commandstest.Say(t, admin, resptest.Encode("RESTORE", "k", "0", payload, "REPLACE")+"SET v 5\r\n")
		before := commandstest.Say(t, admin, "DUMP k\r\nPTTL k\r\n")
		changes := append(changesOf(payload), []string{"RESTORE", "n", "0", payload})
		for _, change := range changes {
			call := resptest.Encode(change...)
			commandstest.Expect(t, app, call, "-"+denied+"\r\n")
			commandstest.Expect(t, app, "MULTI\r\n"+call+"EXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n-"+denied+"\r\n")
			script := "return redis.pcall(unpack(ARGV)).err"
			commandstest.Expect(t, app, resptest.Encode(append([]string{"EVAL", script, "3", "k", "v", "n"}, change...)...), bulk(inScript))
			commandstest.Expect(t, admin, "DUMP k\r\nPTTL k\r\nGET v\r\nEXISTS n\r\n", before+bulk("5")+":0\r\n")
		}
		for call, want := range map[string]string{
			"INCR k": wrongType, "STRLEN k": wrongType, "GETEX k EX 5": wrongType, "INCRBYFLOAT k 1": wrongType,
			"INCREX k UBOUND 1 SATURATE": wrongType, "INCREX k EXAT 1": wrongType, "INCREX k BYFLOAT 1 EXAT 1": wrongType, "PERSIST nosuch": ":0\r\n", "EXISTS k": ":1\r\n",
		} {
			commandstest.Expect(t, app, call+"\r\n", want)
		}
		commandstest.ExpectLike(t, app, "MGET k v\r\n", "*2\r\n$…\r\n$1\r\n5\r\n")
	}
	entries := resptest.ParseAll(t, commandstest.Say(t, admin, "ACL LOG 3\r\n"))[0].Elements
	contexts := ""
	for _, e := range entries {
		contexts += e.Field("context").Text + " "
		if e.Field("object").Text != "cl.reset" || e.Field("reason").Text != "command" || e.Field("username").Text != "app" {
			t.Errorf("logged %+v", e)
		}
	}
	if contexts != "lua multi toplevel " {
		t.Errorf("logged in %s", contexts)
	}
}

const wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"

// TestValuesNeedNoRight: whoever may call the commands may change values with them.
func TestValuesNeedNoRight(t *testing.T) {
	r := commandstest.NewUserHarness(t, "user default on nopass ~* &* +@all", "user app on >pw ~* &* +@all -@refill")
	app := r.Login("app")
	text := limiter.ValueOf([]byte("text"), limiter.NeverNs)
	for _, change := range changesOf(payloadOf(&text)) {
		commandstest.Say(t, app, "SET k 5\r\nSET v 5\r\nDEL n\r\n")
		for _, in := range []string{
			resptest.Encode(change...), "MULTI\r\n" + resptest.Encode(change...) + "EXEC\r\n",
			resptest.Encode(append([]string{"EVAL", "return redis.call(unpack(ARGV))", "3", "k", "v", "n"}, change...)...),
		} {
			if got := commandstest.Say(t, app, in); strings.Contains(got, "NOPERM") || strings.Contains(got, "ERR The user") {
				t.Errorf("%q: got %q", in, got)
			}
		}
	}
	commandstest.Expect(t, r.Session(), "ACL LOG\r\n", "*0\r\n")
}

// TestRightIsOfTheKey: a user may replace those limiters that it may CL.RESET.
func TestRightIsOfTheKey(t *testing.T) {
	r := commandstest.NewUserHarness(t, "user default on nopass ~* &* +@all", "user app on >pw ~* +@all -@refill (~a* +cl.reset)")
	app := r.Login("app")
	const denied = "-NOPERM this user has no permissions to access one of the keys used as arguments" + string(reply.RefillDenied) + "\r\n"
	commandstest.Say(t, app, "CL.THROTTLE a 4 1 10\r\nCL.THROTTLE a2 4 1 10\r\nCL.THROTTLE b 4 1 10\r\nSET v 5\r\n")
	commandstest.Expect(t, app, "DEL a b\r\nRENAME b a\r\nRENAME a b\r\nMSET a 1700000050000000000 b 5\r\n", strings.Repeat(denied, 4))
	commandstest.Expect(t, app, "RENAME a2 a\r\nRENAME a a3\r\nSET a3 text\r\nDEL a3 v\r\nEXISTS a a2 a3 b\r\n", "+OK\r\n+OK\r\n+OK\r\n:2\r\n:1\r\n")
}

// TestComparingReads: who may only write a key cannot learn its value by a condition.
func TestComparingReads(t *testing.T) {
	r := commandstest.NewUserHarness(t, "user default on nopass ~* &* +@all", "user writer on >pw %W~* +@all", "user reader on >pw %R~* +@all")
	const denied = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	commandstest.Say(t, r.Session(), "SET k v\r\n")
	writer, reader := r.Login("writer"), r.Login("reader")
	for _, call := range []string{"SET k v IFEQ v", "SET k v IFDNE 0000000000000000", "DELEX k IFEQ v", "DELIFEQ k v", "DIGEST k", "GETSET k v"} {
		commandstest.Expect(t, writer, call+"\r\n", denied)
	}
	commandstest.Expect(t, writer, "SET k v\r\nMSETEX 1 k v XX\r\nMSETNX k v\r\nDELEX k\r\n", "+OK\r\n:1\r\n:0\r\n:1\r\n")
	commandstest.Expect(t, reader, "DIGEST k\r\nDELEX k\r\nMSETEX 1 k v\r\n", "$-1\r\n"+denied+denied)
}
