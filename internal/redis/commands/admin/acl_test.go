package admin_test

import (
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

const (
	openDefault = "user default on nopass ~* &* +@all"
	wrongPass   = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
)

func denyCommand(name string) string {
	return "-NOPERM this user has no permissions to run the '" + name + "' command\r\n"
}

// TestChangedUsersAreDisconnected, and only they; the caller gets the reply first.
func TestChangedUsersAreDisconnected(t *testing.T) {
	const stays, changes, goes = "user stays on >pw ~* +@all", "user changes on >pw ~* +@all", "user goes on >pw ~* +@all"
	r := commandstest.NewUserHarness(t, openDefault, stays, changes, goes)
	sessions := map[string]*commandstest.Client{"default": r.Session()}
	for _, user := range []string{"stays", "changes", "goes"} {
		sessions[user] = r.Login(user)
	}
	asks := r.Login("goes")
	changed := "user changes on >pw ~a* +@all"
	r.Write(openDefault, stays, changed)
	if got, _, status := commandstest.Converse(t, asks, "ACL LOAD\r\nPING\r\n"); got != "+OK\r\n" || status != peer.Close {
		t.Errorf("ACL LOAD by who goes: got %q, status %d", got, status)
	}
	for user, s := range sessions {
		if killed, want := s.Conn.Killed.Load(), user == "changes" || user == "goes"; killed != want {
			t.Errorf("%s: killed is %t", user, killed)
		}
	}
	if got, want := commandstest.Say(t, sessions["goes"], "PING\r\nGET a\r\nHELLO\r\n"), denyCommand("ping")+denyCommand("get"); !strings.HasPrefix(got, want) {
		t.Errorf("a user that is gone got %q, want %q", got, want)
	}
	commandstest.Expect(t, sessions["default"], "AUTH goes pw\r\nACL USERS\r\n",
		wrongPass+"*3\r\n$7\r\nchanges\r\n$7\r\ndefault\r\n$5\r\nstays\r\n")
	r.Write("user default on nopass +nosuch")
	commandstest.ExpectLike(t, sessions["default"], "ACL LOAD\r\nACL WHOAMI\r\n", "-ERR …$7\r\ndefault\r\n")
	commandstest.ExpectLike(t, sessions["stays"], "ACL LIST\r\n", "…user changes on #…")
}

// TestACLLog: each denial has its user, place, object and count.
func TestACLLog(t *testing.T) {
	r := commandstest.NewUserHarness(t, openDefault, "user app on >pw ~a:* +@all -@dangerous")
	admin, s := r.Session(), r.Login("app")
	commandstest.Say(t, s, "GET b\r\nGET b\r\nGET b\r\nCLIENT LIST\r\nMULTI\r\nGET b\r\nDISCARD\r\n"+
		resptest.Encode("EVAL", "redis.pcall('get', 'b')", "0")+"AUTH nobody x\r\nauth nobody x\r\nHELLO 3 AUTH app x\r\n")
	r.Clock.Advance(3 * commandstest.Sec / 2)
	got := resptest.ParseAll(t, commandstest.Say(t, admin, "ACL LOG 100\r\n"))[0].Elements
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
			e.Field("timestamp-created").Number != commandstest.T0/1e6 || e.Field("timestamp-last-updated").Number != commandstest.T0/1e6 ||
			!strings.HasPrefix(e.Field("client-info").Text, "id=2 addr=192.0.2.1:5000 ") {
			t.Errorf("entry %d is %+v, want %+v", i, e, want)
		}
	}
	if len(got) != 7 {
		t.Errorf("%d entries, want 7", len(got))
	}
	if n := len(resptest.ParseAll(t, commandstest.Say(t, admin, "ACL LOG\r\n"))[0].Elements); n != 7 {
		t.Errorf("%d entries by default", n)
	}
	commandstest.Expect(t, admin, "ACL LOG 0\r\nACL LOG RESET\r\nACL LOG\r\n", "*0\r\n+OK\r\n*0\r\n")
}

// TestDryRunOfUsers checks other users, and logs nothing.
func TestDryRunOfUsers(t *testing.T) {
	s := commandstest.NewUserHarness(t, openDefault, "user app on >pw ~a:* +@all -@dangerous", "user off off +get",
		"user caller off ~* +cl.throttle", "user partly off ~* +cl.throttle (~a +cl.reset)", "user taker off ~* +cl.bucket|take").Session()
	for _, tt := range []struct{ in, want string }{
		{"app get a:1", "+OK\r\n"},
		{"app get b", "$50\r\nThis user has no permissions to access the 'b' key\r\n"},
		{"app flushall", "$58\r\nThis user has no permissions to run the 'flushall' command\r\n"},
		{"app config get x", "$60\r\nThis user has no permissions to run the 'config|get' command\r\n"},
		{"app auth x", "+OK\r\n"},
		{"app eval x 1 b", "$50\r\nThis user has no permissions to access the 'b' key\r\n"},
		{"off get a", "$50\r\nThis user has no permissions to access the 'a' key\r\n"},
		{"caller cl.throttle a 1 1 1", "+OK\r\n"},
		{"caller cl.throttle a 1 1 1 -1", "$115\r\nThis user has no permissions to run the 'cl.reset' command: a negative quantity needs the right to CL.RESET the key\r\n"},
		{"partly cl.throttle a 1 1 1 -1", "+OK\r\n"},
		{"partly cl.throttle b 1 1 1 -1", "$107\r\nThis user has no permissions to access the 'b' key: a negative quantity needs the right to CL.RESET the key\r\n"},
		{"taker cl.bucket take a 5", "+OK\r\n"},
		{"taker cl.bucket add a 5 1", "$63\r\nThis user has no permissions to run the 'cl.bucket|add' command\r\n"},
		{"taker cl.bucket take a 5 -1", "$115\r\nThis user has no permissions to run the 'cl.reset' command: a negative quantity needs the right to CL.RESET the key\r\n"},
		{"default config", "-ERR wrong number of arguments for 'config' command\r\n"},
		{"default config nosuch", "-ERR Command 'config' not found\r\n"},
		{"app psubscribe x", "-ERR Command 'psubscribe' not found\r\n"},
	} {
		commandstest.Expect(t, s, "ACL DRYRUN "+tt.in+"\r\n", tt.want)
	}
	commandstest.Expect(t, s, "ACL LOG\r\n", "*0\r\n")
}

// TestReload is SIGHUP's: the whole file or nothing, and a log line about rules without effect here.
func TestReload(t *testing.T) {
	r := commandstest.NewUserHarness(t, openDefault, "user app on >pw ~* +@all")
	if got := r.Log.String(); strings.Contains(got, "no effect") || !strings.Contains(got, "users read") {
		t.Errorf("logged %q", got)
	}
	app, other := r.Login("app"), r.Session()
	r.Write("user default on nopass +nosuch")
	if err := r.Engine.ReloadUsers(); err == nil || app.Conn.Killed.Load() {
		t.Errorf("a broken file: %v, killed %t", err, app.Conn.Killed.Load())
	}
	r.Rewrite(openDefault, "user app on >pw ~* +@all -geoadd -ping")
	if !app.Conn.Killed.Load() || other.Conn.Killed.Load() {
		t.Errorf("killed: %t, and of a user that is as it was %t", app.Conn.Killed.Load(), other.Conn.Killed.Load())
	}
	if got := r.Log.String(); !strings.Contains(got, "no effect") || !strings.Contains(got, "geoadd") {
		t.Errorf("logged %q", got)
	}
}

// TestGenPass: four bits a digit, rounded up.
func TestGenPass(t *testing.T) {
	s := commandstest.New().Session()
	for _, tt := range []struct {
		args   string
		digits int
	}{{"", 64}, {" 1", 1}, {" 4", 1}, {" 5", 2}, {" 4096", 1024}} {
		if got := resptest.ParseAll(t, commandstest.Say(t, s, "ACL GENPASS"+tt.args+"\r\n"))[0]; len(got.Text) != tt.digits || got.Kind != '$' {
			t.Errorf("GENPASS%s: got %+v", tt.args, got)
		}
	}
	for in, want := range map[string]string{
		"x": "-ERR value is not an integer or out of range\r\n", "1 2": "-ERR unknown subcommand or wrong number of arguments for 'GENPASS'. Try ACL HELP.\r\n",
	} {
		commandstest.Expect(t, s, "ACL GENPASS "+in+"\r\n", want)
	}
	const bounds = "-ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096\r\n"
	for _, bits := range []string{"0", "-1", "4097", "9223372036854775807"} {
		commandstest.Expect(t, s, "ACL GENPASS "+bits+"\r\n", bounds)
	}
}
