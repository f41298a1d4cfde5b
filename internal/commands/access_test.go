package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/commands"
	"cellserver/internal/commands/rig"
	"cellserver/internal/peer"
	"cellserver/internal/resptest"
)

// aclRig is a rig whose users stand in a file.
type aclRig struct {
	*rig.Rig
	t    *testing.T
	file string
}

func newACLRig(t *testing.T, lines ...string) *aclRig {
	t.Helper()
	r := &aclRig{t: t, file: filepath.Join(t.TempDir(), "users.acl")}
	r.Rig = rig.New(func(c *commands.Config) { c.ACLFile = r.file })
	r.rewrite(lines...)
	return r
}

func (r *aclRig) write(lines ...string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// rewrite changes the file and has it read.
func (r *aclRig) rewrite(lines ...string) {
	r.t.Helper()
	r.write(lines...)
	if err := r.Engine.ReloadUsers(); err != nil {
		r.t.Fatal(err)
	}
}

// login returns a session of a user, whose password is pw.
func (r *aclRig) login(user string) *rig.Client {
	r.t.Helper()
	s := r.Session()
	if got := rig.Say(r.t, s, "AUTH "+user+" pw\r\n"); got != "+OK\r\n" {
		r.t.Fatalf("AUTH %s: got %q", user, got)
	}
	return s
}

const (
	openDefault = "user default on nopass ~* &* +@all"
	denyKey     = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	native      = "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"
	wrongPass   = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	noAuth      = "-NOAUTH Authentication required.\r\n"
	scriptNoRun = "-ERR The user executing the script can't run this command or subcommand script: "
	scriptNoKey = "-ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: "
	execAborted = "-EXECABORT Transaction discarded because of previous errors.\r\n"
	aclChanged  = "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: "
)

func denyCommand(name string) string {
	return "-NOPERM this user has no permissions to run the '" + name + "' command\r\n"
}

// TestUsersMayWhatTheirRulesSay: at the top, behind MULTI and in scripts, also in those that need no interpreter.
func TestUsersMayWhatTheirRulesSay(t *testing.T) {
	r := newACLRig(t, openDefault,
		"user app on >pw ~a:* +@all -@dangerous",
		"user reader on >pw %R~a:* +@read +@scripting +ping",
		"user writer on >pw ~* +eval +evalsha +eval_ro -cl.throttle",
		"user caller on >pw ~a:* +cl.throttle")
	first := resptest.Ints(0, 5, 4, -1, 10)
	for _, tt := range []struct {
		user, in, want string // want is what the replies begin with
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
		{"reader", "CL.THROTTLE a:1 4 1 10\r\n", denyCommand("cl.throttle")},
		{"reader", "GET a:1\r\nTTL b\r\n", "$-1\r\n" + denyKey},
		{"reader", resptest.Encode("EVAL", native, "1", "a:1", "4", "1", "10"), denyKey},
		{"reader", resptest.Encode("EVAL_RO", "return redis.call('get', KEYS[1])", "1", "a:1"), "$-1\r\n"},
		{"reader", resptest.Encode("EVAL_RO", native, "1", "a:1", "4", "1", "10"), scriptNoRun},
		{"writer", resptest.Encode("EVAL", native, "1", "a:1", "4", "1", "10"), scriptNoRun},
		{"writer", resptest.Encode("EVALSHA", rig.SHAOf(native), "1", "a:1", "4", "1", "10"), scriptNoRun},
		{"writer", resptest.Encode("EVAL_RO", native, "1", "a:1", "4", "1", "10"), scriptNoRun},
		{"writer", "MULTI\r\n", denyCommand("multi")},
		{"caller", "CL.THROTTLE a:1 4 1 10\r\nPING\r\n", first + denyCommand("ping")},
		{"caller", resptest.Encode("EVAL", native, "1", "a:1", "4", "1", "10"), denyCommand("eval")},
		{"caller", "RESET\r\nACL WHOAMI\r\nDEL a:1\r\n", "+RESET\r\n$7\r\ndefault\r\n:1\r\n"},
		{"default", "HELLO 3 AUTH app pw\r\nACL WHOAMI\r\n", "%7\r\n"},
	} {
		s := r.Session()
		if tt.user != "default" {
			s = r.login(tt.user)
		}
		if got := rig.Say(t, s, tt.in); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s, %q: got %q, want %q", tt.user, tt.in, got, tt.want)
		}
		s.Close()
	}
	if st := r.Stats(); st.Keys != 0 {
		t.Errorf("what was denied has left %d keys", st.Keys)
	}
}

// TestRulesChangeUnderATransaction: what was queued is asked for again, and the rest is executed.
func TestRulesChangeUnderATransaction(t *testing.T) {
	r := newACLRig(t, openDefault)
	s := r.Session()
	rig.Say(t, s, "MULTI\r\nCL.THROTTLE b 4 1 10\r\nFLUSHDB\r\nCL.THROTTLE a 4 1 10\r\n")
	r.rewrite("user default on nopass ~a* &* +@all -flushdb")
	if s.Conn.Killed.Load() {
		t.Error("the default user's connections are ended")
	}
	want := "*3\r\n" + aclChanged + "no permission to touch the specified keys\r\n" +
		aclChanged + "no permission to execute the command or subcommand\r\n" + resptest.Ints(0, 5, 4, -1, 10)
	if got := rig.Say(t, s, "EXEC\r\n"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, e := range resptest.ParseAll(t, rig.Say(t, s, "ACL LOG\r\n"))[0].Elements {
		if e.Field("context").Text != "multi" {
			t.Errorf("logged %+v", e)
		}
	}
	if st := r.Stats(); st.Keys != 1 {
		t.Errorf("%d keys, want a alone", st.Keys)
	}
}

// TestChangedUsersAreDisconnected, and they alone; who asks for it has the reply first.
func TestChangedUsersAreDisconnected(t *testing.T) {
	const stays, changes, goes = "user stays on >pw ~* +@all", "user changes on >pw ~* +@all", "user goes on >pw ~* +@all"
	r := newACLRig(t, openDefault, stays, changes, goes)
	sessions := map[string]*rig.Client{"default": r.Session()}
	for _, user := range []string{"stays", "changes", "goes"} {
		sessions[user] = r.login(user)
	}
	asks := r.login("goes")
	changed := "user changes on >pw ~a* +@all"
	r.write(openDefault, stays, changed)
	if got, _, status := rig.Converse(t, asks, "ACL LOAD\r\nPING\r\n"); got != "+OK\r\n" || status != peer.Close {
		t.Errorf("ACL LOAD by who goes: got %q, status %d", got, status)
	}
	for user, s := range sessions {
		if killed, want := s.Conn.Killed.Load(), user == "changes" || user == "goes"; killed != want {
			t.Errorf("%s: killed is %t", user, killed)
		}
	}
	if got, want := rig.Say(t, sessions["goes"], "PING\r\nGET a\r\nHELLO\r\n"), denyCommand("ping")+denyCommand("get"); !strings.HasPrefix(got, want) {
		t.Errorf("a user that is gone got %q, want %q", got, want)
	}
	if got := rig.Say(t, sessions["default"], "AUTH goes pw\r\nACL USERS\r\n"); got != wrongPass+"*3\r\n$7\r\nchanges\r\n$7\r\ndefault\r\n$5\r\nstays\r\n" {
		t.Errorf("got %q", got)
	}
	r.write("user default on nopass +nosuch")
	if got := rig.Say(t, sessions["default"], "ACL LOAD\r\nACL WHOAMI\r\n"); !strings.HasPrefix(got, "-ERR ") || !strings.HasSuffix(got, "$7\r\ndefault\r\n") {
		t.Errorf("a broken file: got %q", got)
	}
	if got := rig.Say(t, sessions["stays"], "ACL LIST\r\n"); !strings.Contains(got, "user changes on #") {
		t.Errorf("a broken file changed the users: %q", got)
	}
}

// TestACLLog: what was denied to whom, where and how often.
func TestACLLog(t *testing.T) {
	r := newACLRig(t, openDefault, "user app on >pw ~a:* +@all -@dangerous")
	admin, s := r.Session(), r.login("app")
	rig.Say(t, s, "GET b\r\nGET b\r\nGET b\r\nCLIENT LIST\r\nMULTI\r\nGET b\r\nDISCARD\r\n"+
		resptest.Encode("EVAL", "redis.pcall('get', 'b')", "0")+"AUTH nobody x\r\nauth nobody x\r\nHELLO 3 AUTH app x\r\n")
	r.Clock.Advance(3 * rig.Sec / 2)
	got := resptest.ParseAll(t, rig.Say(t, admin, "ACL LOG 100\r\n"))[0].Elements
	for i, want := range []struct {
		count                             int64
		reason, context, object, username string
	}{
		{1, "auth", "toplevel", "HELLO", "app"},
		{1, "auth", "toplevel", "auth", "nobody"},
		{1, "auth", "toplevel", "AUTH", "nobody"},
		{1, "key", "lua", "b", "app"},
		{1, "key", "multi", "b", "app"},
		{1, "command", "toplevel", "client|list", "app"},
		{3, "key", "toplevel", "b", "app"},
	} {
		if i >= len(got) {
			t.Fatalf("%d entries", len(got))
		}
		e := got[i]
		if e.Field("count").Number != want.count || e.Field("reason").Text != want.reason || e.Field("context").Text != want.context ||
			e.Field("object").Text != want.object || e.Field("username").Text != want.username || e.Field("age-seconds").Text != "1.5" ||
			!strings.HasPrefix(e.Field("client-info").Text, "id=2 addr=192.0.2.1:5000 ") {
			t.Errorf("entry %d is %+v, want %+v", i, e, want)
		}
	}
	if len(got) != 7 {
		t.Errorf("%d entries, want 7", len(got))
	}
	if n := len(resptest.ParseAll(t, rig.Say(t, admin, "ACL LOG\r\n"))[0].Elements); n != 7 {
		t.Errorf("%d entries by default", n)
	}
	if got := rig.Say(t, admin, "ACL LOG 0\r\nACL LOG RESET\r\nACL LOG\r\n"); got != "*0\r\n+OK\r\n*0\r\n" {
		t.Errorf("got %q", got)
	}
}

// TestDryRunOfUsers asks for others, and leaves nothing in the log.
func TestDryRunOfUsers(t *testing.T) {
	s := newACLRig(t, openDefault, "user app on >pw ~a:* +@all -@dangerous", "user off off +get").Session()
	for _, tt := range []struct{ in, want string }{
		{"app get a:1", "+OK\r\n"},
		{"app get b", "$50\r\nThis user has no permissions to access the 'b' key\r\n"},
		{"app flushall", "$58\r\nThis user has no permissions to run the 'flushall' command\r\n"},
		{"app config get x", "$60\r\nThis user has no permissions to run the 'config|get' command\r\n"},
		{"app auth x", "+OK\r\n"},
		{"app eval x 1 b", "$50\r\nThis user has no permissions to access the 'b' key\r\n"},
		{"off get a", "$50\r\nThis user has no permissions to access the 'a' key\r\n"},
		{"app subscribe x", "-ERR Command 'subscribe' not found\r\n"},
	} {
		if got := rig.Say(t, s, "ACL DRYRUN "+tt.in+"\r\n"); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.in, got, tt.want)
		}
	}
	if got := rig.Say(t, s, "ACL LOG\r\n"); got != "*0\r\n" {
		t.Errorf("logged %q", got)
	}
}

// TestCertificateNamesAreUsers, where there is such a user and it is on.
func TestCertificateNamesAreUsers(t *testing.T) {
	r := newACLRig(t, "user default off", "user app on >pw ~a* +@all", "user off off >pw ~* +@all")
	for _, tt := range []struct{ name, want string }{
		{"app", "$3\r\napp\r\n"},
		{"off", noAuth},
		{"nobody", noAuth},
		{"", noAuth},
	} {
		s := r.SessionOf(peer.Peer{Addr: "192.0.2.1:5000", TLS: true, CertName: tt.name})
		if got := rig.Say(t, s, "ACL WHOAMI\r\nRESET\r\nACL WHOAMI\r\n"); got != tt.want+"+RESET\r\n"+tt.want {
			t.Errorf("a certificate of %q: got %q, want %q twice", tt.name, got, tt.want)
		}
	}
}

// TestPasswordTakenAway: who waits for it need not, as in Redis; one that is given concerns those that come.
func TestPasswordTakenAway(t *testing.T) {
	r := rig.New(rig.WithPassword("secret"))
	s := r.Session()
	if got := rig.Say(t, s, "PING\r\n"); got != noAuth {
		t.Errorf("got %q", got)
	}
	r.Config.Users.SetDefaultPassword("")
	if got := rig.Say(t, s, "PING\r\nACL WHOAMI\r\n"); got != rig.Pong+"$7\r\ndefault\r\n" || !s.Authenticated() {
		t.Errorf("got %q", got)
	}
	r.Config.Users.SetDefaultPassword("other")
	if got := rig.Say(t, s, "PING\r\n") + rig.Say(t, r.Session(), "PING\r\n"); got != rig.Pong+noAuth {
		t.Errorf("got %q", got)
	}
}

// TestLoginPauses: each failure from a host makes the next one's pause twice as long, up to a bound; a success, a
// minute, or too many hosts make them forgotten. Nothing is executed meanwhile.
func TestLoginPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.New(rig.WithPassword("secret"), func(c *commands.Config) { c.Now = func() int64 { return time.Now().UnixNano() } }) // the bubble's
		at := func(addr string, unix bool) *rig.Client {
			return r.SessionOf(peer.Peer{Addr: addr, Unix: unix})
		}
		a, sameHost, v6, socket := at("192.0.2.1:1", false), at("192.0.2.1:2", false), at("[2001:db8::1]:1", false), at("/run/a:1", true)
		const wrong, right, hello = "AUTH wrong\r\n", "AUTH secret\r\n", "HELLO 3 AUTH default wrong\r\n"
		for i, step := range []struct {
			s       *rig.Client
			after   time.Duration
			in      string
			pauseMs int64
		}{
			{a, 0, wrong, 50}, {sameHost, 0, wrong, 100}, {a, 0, hello, 200}, {v6, 0, wrong, 50}, {a, 0, wrong, 400},
			{socket, 0, wrong, 50}, {a, 0, wrong, 800}, {a, 0, wrong, 1600}, {a, 0, wrong, 1600},
			{a, 58 * time.Second, wrong, 1600},
			{v6, 0, wrong, 50}, {socket, 0, wrong, 50},
			{a, 0, right, 0}, {sameHost, 0, wrong, 50}, {a, 0, wrong, 100},
			{a, time.Hour, wrong, 50},
		} {
			time.Sleep(step.after) // the bubble's time
			began := time.Now()
			rig.Converse(t, step.s, step.in)
			if got := time.Since(began).Milliseconds(); got != step.pauseMs {
				t.Errorf("step %d: a pause of %d ms, want %d", i, got, step.pauseMs)
			}
		}
		s := at("192.0.2.9:1", false)
		replies, left, status := rig.Feed(t, s, "AUTH wrong\r\nAUTH secret\r\nPING\r\n")
		if replies != "" || left != "AUTH secret\r\nPING\r\n" || status != peer.Waiting || s.Authenticated() {
			t.Errorf("while it waits: %q, left %q, status %d", replies, left, status)
		}
		if got := rig.Say(t, s, left); got != wrongPass+"+OK\r\n"+rig.Pong {
			t.Errorf("afterwards: %q", got)
		}
		s.Close()
		s = at("192.0.2.9:1", false)
		rig.Feed(t, s, "AUTH wrong\r\n")
		s.Close() // before the pause is over
		time.Sleep(time.Second)
	})
}
