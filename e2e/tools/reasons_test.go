package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/e2e/harness"
)

// TestLongKeysAreCounted: a key that is too long for the target is refused with the target's reason, and the
// rest goes on.
func TestLongKeysAreCounted(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long", 30)
	redis, from, into := harness.StartRedis(t), harness.StartServer(t), harness.StartServer(t, "--max-key-bytes", "100")
	asRedisCell(t, redis, 0, 2, long)
	short := asRedisCell(t, redis, 0, 3, "user:")
	makeFunnels(t, from, 0, 2, long)
	makeFunnels(t, from, 0, 3, "other:")
	const reason = "refused     2: ERR key is longer than 100 bytes, the limit of --max-key-bytes\n"
	file := filepath.Join(t.TempDir(), "keys.dump")
	if code, _, errOut := harness.Call(t, nil, "dump", "--from", url(from), file); code != 0 {
		t.Fatal(errOut)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"import", "--match", "long*", url(redis)}, "keys        2\nimported    0\n" + reason},
		{[]string{"import", url(redis)}, "keys        5\nimported    3\n" + reason},
		{[]string{"import", "--match", "long*", url(from)}, "keys        2\nimported    0\n" + reason},
		{[]string{"load", file}, "keys        5\nloaded      3\n" + reason},
	} {
		code, out, errOut := harness.Call(t, []string{"CELLSERVER_INTO=" + url(into)}, tt.args...)
		if code != 1 || out != tt.want || errOut != "cellserver: "+tt.args[0]+": 2 keys were refused\n" {
			t.Errorf("%q: got %d, %q, %q", tt.args, code, out, errOut)
		}
	}
	if n := harness.Reply(t, into.Dial(t), "DBSIZE"); n != ":6" || len(short) != 3 {
		t.Errorf("there are %s keys", n)
	}
}

// TestKeysThatTheSourceRefuses: a server started with a lower --max-key-bytes than it has keys says so, and
// not that they are something else.
func TestKeysThatTheSourceRefuses(t *testing.T) {
	t.Parallel()
	dir, long := t.TempDir(), strings.Repeat("long", 30)
	p := harness.StartKeeping(t, dir)
	makeFunnels(t, p, 0, 1, long)
	makeFunnels(t, p, 0, 2, "user:")
	p.Stop(t, os.Interrupt)
	from, into := harness.StartKeeping(t, dir, "--max-key-bytes", "100"), harness.StartServer(t)
	const reason = "ERR key is longer than 100 bytes, the limit of --max-key-bytes"
	code, out, _ := harness.Call(t, nil, "import", "--into", url(into), url(from))
	if code != 1 || out != "keys        3\nimported    2\nrefused     1: the source: "+reason+"\n" {
		t.Errorf("import: %d, %q", code, out)
	}
	file := filepath.Join(t.TempDir(), "keys.dump")
	if code, _, errOut := harness.Call(t, nil, "dump", "--from", url(from), file); code != 1 || !strings.Contains(errOut, `key "longlong`) || !strings.HasSuffix(errOut, reason+"\n") {
		t.Errorf("dump: %d, %q", code, errOut)
	}
}

// TestOtherFalseReasons: a user who may not touch a key, a database that the source lacks, and a dump of a
// few bytes are named as what they are.
func TestOtherFalseReasons(t *testing.T) {
	t.Parallel()
	users := harness.WriteFile(t, "user default on nopass ~* &* +@all\nuser mover on >pw ~mine:* +@all\nuser few on >pw ~* +info +multi +time +exec +select\n")
	from, into := harness.StartServer(t, "--aclfile", users), harness.StartServer(t)
	makeFunnels(t, from, 0, 1, "others:")
	begun := harness.WriteFile(t, "CELLDU")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"import", "--into", url(into), "redis://mover:pw@" + from.Addr}, "no permissions to access one of the keys used as arguments"},
		{[]string{"import", "--into", url(into), url(from) + "/99"}, "ERR DB index is out of range; it has no such database; name another one"},
		{[]string{"load", "--into", url(into), begun}, "the dump is damaged or truncated: it ends at byte 6"},
		{[]string{"import", "--into", url(into), "redis://few:pw@" + from.Addr}, "'scan' command; the user needs +scan +dump +pexpiretime "},
		{[]string{"dump", "--from", "redis://few:pw@" + from.Addr, "keys.dump"}, "'scan' command; the user needs +scan +dump +pexpiretime "},
		{[]string{"import", "--into", "redis://few:pw@" + from.Addr, url(from)}, "; the user needs +restore +cl.reset +dump "},
	} {
		if code, _, errOut := harness.Call(t, nil, tt.args...); code != 1 || !strings.Contains(errOut, tt.want) || strings.Contains(errOut, "DUMP") {
			t.Errorf("%q: got %d, %q", tt.args, code, errOut)
		}
	}
}
