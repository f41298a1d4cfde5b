package session_test

import (
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

const (
	openDefault = "user default on nopass ~* &* +@all"
	denyKey     = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	native      = "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"
	noAuth      = "-NOAUTH Authentication required.\r\n"
	scriptNoRun = "-ERR The user executing the script can't run this command or subcommand script: "
	scriptNoKey = "-ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: "
	execAborted = "-EXECABORT Transaction discarded because of previous errors.\r\n"
	aclChanged  = "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: "
)

func denyCommand(name string) string {
	return "-NOPERM this user has no permissions to run the '" + name + "' command\r\n"
}

// TestUsersMayWhatTheirRulesSay: at the top, behind MULTI and in scripts, also in those that need no
// interpreter.
func TestUsersMayWhatTheirRulesSay(t *testing.T) {
	r := commandstest.NewUserHarness(t, openDefault,
		"user app on >pw ~a:* +@all -@dangerous",
		"user reader on >pw %R~a:* +@read +@scripting +ping",
		"user writer on >pw ~* +eval +evalsha +eval_ro -cl.throttle",
		"user caller on >pw ~a:* +cl.throttle")
	first := resptest.Ints(0, 5, 4, -1, 10)
	for _, tt := range []struct {
		user, in, want string // prefixes of the replies
	}{
		{"app", "GET b\r\n", denyKey},
		{"app", "GET a:1\r\n", "$-1\r\n"},
		{"app", "DEL a:1 a:2 b\r\n", denyKey},
		{"app", "FLUSHALL\r\n", denyCommand("flushall")},
		{"app", "CLIENT LIST\r\n", denyCommand("client|list")},
		{"app", "CLIENT ID x\r\n", "-ERR wrong number of arguments for 'client|id' command\r\n"},
		{"app", "CL.THROTTLE b 4 1 10\r\n", denyKey},
		{"app", "CL.THROTTLE a:1 4 1 10\r\nCL.THROTTLE b 4 1 10\r\nDEL a:1\r\n", first + denyKey + ":1\r\n"},
		{"app", "MULTI\r\nGET b\r\nEXEC\r\n", "+OK\r\n" + denyKey + execAborted},
		{"app", "MULTI\r\nGET a:1\r\nFLUSHDB\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n" + denyCommand("flushdb") + execAborted},
		{"app", "WATCH b\r\n", denyKey},
		{"app", resptest.Encode("EVAL", native, "1", "a:1", "4", "1", "10") + "DEL a:1\r\n", first + ":1\r\n"},
		{"app", resptest.Encode("EVAL", native, "1", "b", "4", "1", "10"), denyKey},
		{"app", resptest.Encode("EVAL", native, "2", "a:1", "b", "4", "1", "10"), denyKey},
		{"app", resptest.Encode("EVAL", "return redis.call('cl.throttle', 'b', 4, 1, 10)", "1", "a:1"), scriptNoKey},
		{"app", resptest.Encode("EVAL", "return redis.call('get', 'a:2')", "1", "a:1"), "-ERR script used the key 'a:2'"},
		{"app", resptest.Encode("EVAL", "return redis.call('flushall')", "0"), scriptNoRun},
		{"app", resptest.Encode("EVAL", "return redis.call('dbsize')", "0"), "-ERR a command about all keys is not allowed"},
		{"app", resptest.Encode("EVAL", "return redis.call('acl', 'whoami')", "0"), "-ERR This Redis command is not allowed from script"},
		{"app", resptest.Encode("EVAL", "local may = redis.acl_check_cmd return {may('get', 'a:1'), may('get', 'b'), may('flushall'), may('CLIENT', 'id'), may('ping')}", "0") + "ACL LOG\r\n", "*5\r\n:1\r\n$-1\r\n$-1\r\n:1\r\n:1\r\n"},
		{"app", resptest.Encode("EVAL", "return redis.acl_check_cmd('nosuch')", "0"), "-ERR Invalid command passed to redis.acl_check_cmd() script: "},
		{"app", resptest.Encode("EVAL", "return redis.acl_check_cmd()", "0"), "-ERR Please specify at least one argument for this redis lib call script: "},
		{"default", resptest.Encode("EVAL", "return redis.acl_check_cmd('flushall')", "0"), ":1\r\n"},
		{"reader", "CL.THROTTLE a:1 4 1 10\r\n", denyCommand("cl.throttle")},
		{"reader", "GET a:1\r\nTTL b\r\n", "$-1\r\n" + denyKey},
		{"reader", resptest.Encode("EVAL", native, "1", "a:1", "4", "1", "10"), denyKey},
		{"reader", resptest.Encode("EVAL_RO", "return redis.call('get', KEYS[1])", "1", "a:1"), "$-1\r\n"},
		{"reader", resptest.Encode("EVAL_RO", native, "1", "a:1", "4", "1", "10"), scriptNoRun},
		{"writer", resptest.Encode("EVAL", native, "1", "a:1", "4", "1", "10"), scriptNoRun},
		{"writer", resptest.Encode("EVALSHA", commandstest.SHAOf(native), "1", "a:1", "4", "1", "10"), scriptNoRun},
		{"writer", resptest.Encode("EVAL_RO", native, "1", "a:1", "4", "1", "10"), scriptNoRun},
		{"writer", "MULTI\r\n", denyCommand("multi")},
		{"caller", "CL.THROTTLE a:1 4 1 10\r\nPING\r\n", first + denyCommand("ping")},
		{"caller", resptest.Encode("EVAL", native, "1", "a:1", "4", "1", "10"), denyCommand("eval")},
		{"caller", "RESET\r\nACL WHOAMI\r\nDEL a:1\r\n", "+RESET\r\n$7\r\ndefault\r\n:1\r\n"},
		{"default", "HELLO 3 AUTH app pw\r\nACL WHOAMI\r\n", "%7\r\n"},
	} {
		s := r.Session()
		if tt.user != "default" {
			s = r.Login(tt.user)
		}
		if got := commandstest.Say(t, s, tt.in); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s, %q: got %q, want %q", tt.user, tt.in, got, tt.want)
		}
		s.Close()
	}
	if st := r.Stats(); st.Keys != 0 {
		t.Errorf("what was denied has left %d keys", st.Keys)
	}
}

// TestRefundsAreARight: a user without CL.RESET cannot return units, at the top, behind MULTI, in EXEC or in
// scripts.
func TestRefundsAreARight(t *testing.T) {
	const refund = ": a negative quantity needs the right to CL.RESET the key"
	returning := "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4])"
	noReset := strings.TrimSuffix(denyCommand("cl.reset"), "\r\n") + refund + "\r\n"
	noKey := strings.TrimSuffix(denyKey, "\r\n") + refund + "\r\n"
	returned := resptest.Ints(0, 5, 5, -1, 0)
	r := commandstest.NewUserHarness(t, openDefault,
		"user caller on >pw ~* +cl.throttle +multi +exec +eval",
		"user fast on >pw ~* +@all -@refill",
		"user partly on >pw ~* +cl.throttle +eval (~a* +cl.reset)",
		"user taker on >pw ~* +cl.bucket|take +cl.slidingwindow",
		"user writer on >pw ~* +@write -@refill",
		"user reader on >pw ~* +@read +eval_ro")
	for _, tt := range []struct {
		user, in, want string
		object         string // in ACL LOG, or ""
	}{
		{"caller", "CL.THROTTLE a 4 1 10 -1\r\n", noReset, "cl.reset"},
		{"caller", "CL.THROTTLE a 4 1 10 -007\r\n", noReset, "cl.reset"},
		{"caller", "CL.THROTTLE a 4 1 10 -0\r\n", returned, ""},
		{"caller", "CL.THROTTLE a 4 1 10 -x\r\n", "-Cell error: Store error: Couldn't parse as integer: -x\r\n", ""},
		{"caller", "MULTI\r\nCL.THROTTLE a 4 1 10 -1\r\nEXEC\r\n", "+OK\r\n" + noReset + execAborted, "cl.reset"},
		{"caller", resptest.Encode("EVAL", returning, "1", "a", "4", "1", "10", "-1"), strings.TrimSuffix(scriptNoRun, " script: ") + refund, "cl.reset"},
		{"fast", "CL.THROTTLE a 4 1 10 -1\r\n", noReset, "cl.reset"},
		{"fast", "UNLINK a\r\n", ":0\r\n", ""},
		{"fast", "PEXPIRE a -1\r\n", ":0\r\n", ""},
		{"fast", "FLUSHDB\r\n", denyCommand("flushdb"), "flushdb"},
		{"fast", resptest.Encode("EVAL", returning, "1", "a", "4", "1", "10", "-1"), strings.TrimSuffix(scriptNoRun, " script: ") + refund, "cl.reset"},
		{"partly", "CL.THROTTLE a 4 1 10 -1\r\n", returned, ""},
		{"partly", "CL.THROTTLE b 4 1 10 -1\r\n", noKey, "b"},
		{"partly", resptest.Encode("EVAL", returning, "1", "a", "4", "1", "10", "-1"), returned, ""},
		{"partly", resptest.Encode("EVAL", returning, "1", "b", "4", "1", "10", "-1"), strings.TrimSuffix(scriptNoKey, " script: ") + refund, "b"},
		{"default", "CL.THROTTLE b 4 1 10 -1\r\n", returned, ""},
		{"taker", "CL.BUCKET TAKE c 5 -1\r\n", noReset, "cl.reset"},
		{"taker", "CL.BUCKET ADD c 5 1\r\n", denyCommand("cl.bucket|add"), "cl.bucket|add"},
		{"taker", "CL.SLIDINGWINDOW d 5 60 -1 APPROX\r\n", noReset, "cl.reset"},
		{"writer", "CL.REFUND a 4 1 10\r\n", denyCommand("cl.refund"), "cl.refund"},
		{"writer", "CL.BUCKET RESET c 5\r\n", denyCommand("cl.bucket|reset"), "cl.bucket|reset"},
		{"writer", "CL.RESET a\r\n", denyCommand("cl.reset"), "cl.reset"},
		{"writer", "CL.PTHROTTLE a 4 1 10 -1\r\n", noReset, "cl.reset"},
		{"writer", "RL.THROTTLE a 4 1 10 -1\r\n", noReset, "cl.reset"},
		{"writer", "CL.TOKENBUCKET a 4 1 10 -1\r\n", noReset, "cl.reset"},
		{"writer", "CL.FIXEDWINDOW e 4 10 -1\r\n", noReset, "cl.reset"},
		{"reader", "CL.PEEK a 4 1 10\r\n", returned, ""},
		{"reader", "CL.PEEK a 4 1 10 -1\r\n", returned, ""},
		{"reader", "CL.BUCKET LEN c\r\n", ":0\r\n", ""},
		{"reader", resptest.Encode("EVAL_RO", "return redis.call('cl.peek', KEYS[1], 4, 1, 10)", "1", "a"), returned, ""},
		{"reader", "CL.THROTTLE a 4 1 10 0\r\n", denyCommand("cl.throttle"), "cl.throttle"},
	} {
		s := r.Session()
		if tt.user != "default" {
			s = r.Login(tt.user)
		}
		if got := commandstest.Say(t, s, tt.in); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s, %q: got %q, want %q", tt.user, tt.in, got, tt.want)
		}
		s.Close()
		object := ""
		for _, e := range resptest.ParseAll(t, commandstest.Say(t, r.Session(), "ACL LOG\r\nACL LOG RESET\r\n"))[0].Elements {
			object += e.Field("object").Text
		}
		if object != tt.object {
			t.Errorf("%s, %q: ACL LOG has %q, want %q", tt.user, tt.in, object, tt.object)
		}
	}
}

// TestRefundsAreForbiddenUnderATransaction: EXEC checks again that CL.RESET is allowed.
func TestRefundsAreForbiddenUnderATransaction(t *testing.T) {
	r := commandstest.NewUserHarness(t, openDefault)
	s := r.Session()
	commandstest.Say(t, s, "CL.THROTTLE a 4 1 10\r\nMULTI\r\nCL.THROTTLE a 4 1 10 -1\r\nCL.THROTTLE a 4 1 10\r\n")
	r.Rewrite("user default on nopass ~* &* +@all -cl.reset")
	want := "*2\r\n" + aclChanged + "no permission to execute the command or subcommand\r\n" + resptest.Ints(0, 5, 3, -1, 20)
	commandstest.Expect(t, s, "EXEC\r\n", want)
}

// TestRulesChangeUnderATransaction: EXEC checks queued commands again, and executes the permitted ones.
func TestRulesChangeUnderATransaction(t *testing.T) {
	r := commandstest.NewUserHarness(t, openDefault)
	s := r.Session()
	commandstest.Say(t, s, "MULTI\r\nCL.THROTTLE b 4 1 10\r\nFLUSHDB\r\nCL.THROTTLE a 4 1 10\r\n")
	r.Rewrite("user default on nopass ~a* &* +@all -flushdb")
	if s.Conn.Killed.Load() {
		t.Error("the default user's connections are ended")
	}
	want := "*3\r\n" + aclChanged + "no permission to touch the specified keys\r\n" +
		aclChanged + "no permission to execute the command or subcommand\r\n" + resptest.Ints(0, 5, 4, -1, 10)
	commandstest.Expect(t, s, "EXEC\r\n", want)
	for _, e := range resptest.ParseAll(t, commandstest.Say(t, s, "ACL LOG\r\n"))[0].Elements {
		if e.Field("context").Text != "multi" {
			t.Errorf("logged %+v", e)
		}
	}
	if st := r.Stats(); st.Keys != 1 {
		t.Errorf("%d keys, want a alone", st.Keys)
	}
}

// TestCertificateNamesAreUsers, if such a user exists and is on.
func TestCertificateNamesAreUsers(t *testing.T) {
	r := commandstest.NewUserHarness(t, "user default off", "user app on >pw ~a* +@all", "user off off >pw ~* +@all")
	for _, tt := range []struct{ name, want string }{
		{"app", "$3\r\napp\r\n"},
		{"off", noAuth},
		{"nobody", noAuth},
		{"", noAuth},
	} {
		s := r.SessionOf(peer.Peer{Addr: "192.0.2.1:5000", TLS: true, CertName: tt.name})
		commandstest.Expect(t, s, "ACL WHOAMI\r\nRESET\r\nACL WHOAMI\r\n", tt.want+"+RESET\r\n"+tt.want)
	}
}

// TestACLLogTellsWhere a command was denied.
func TestACLLogTellsWhere(t *testing.T) {
	r := commandstest.NewUserHarness(t, openDefault, "user app on >pw ~a* +@all -flushdb")
	for _, tt := range []struct{ in, context, reason, object string }{
		{"FLUSHDB\r\n", "toplevel", "command", "flushdb"},
		{"GET b\r\n", "toplevel", "key", "b"},
		{"MULTI\r\nGET c\r\nDISCARD\r\n", "multi", "key", "c"},
		{"EVAL \"redis.call('flushdb')\" 0\r\n", "lua", "command", "flushdb"},
		{"AUTH app wrong\r\n", "toplevel", "auth", "AUTH"},
	} {
		s := r.Login("app")
		commandstest.Say(t, s, tt.in)
		s.Close()
		log := resptest.ParseAll(t, commandstest.Say(t, r.Session(), "ACL LOG 1\r\nACL LOG RESET\r\n"))[0].Elements
		if len(log) != 1 {
			t.Errorf("%q: %d entries", tt.in, len(log))
			continue
		}
		for field, want := range map[string]string{"context": tt.context, "reason": tt.reason, "object": tt.object, "username": "app"} {
			if got := log[0].Field(field).Text; got != want {
				t.Errorf("%q: %s is %s, want %s", tt.in, field, got, want)
			}
		}
	}
}
