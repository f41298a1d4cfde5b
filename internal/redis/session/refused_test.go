package session_test

import (
	"strings"
	"testing"
	"time"

	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/catalog"
)

// TestBareStore: a store that can only decide refuses other commands with an error, and executes the rest.
func TestBareStore(t *testing.T) {
	const throttle = "CL.THROTTLE k 4 1 10\r\n"
	first := resptest.Ints(0, 5, 4, -1, 10)
	const (
		noTransactions = "-ERR the store of this server has no transactions; send the commands one by one\r\n"
		noWatch        = "-ERR the store of this server cannot watch keys\r\n"
	)
	for _, tt := range []struct{ in, want string }{
		{throttle + "TTL k\r\nDEL k\r\nTTL k\r\nEXISTS k\r\nTYPE k\r\n", first + ":10\r\n:1\r\n:-2\r\n:0\r\n+none\r\n"},
		{"EXPIRE k 0\r\n" + throttle + "EXPIRE k 0\r\n" + throttle, ":0\r\n" + first + ":1\r\n" + first},
		{resptest.Encode("EVAL", native, "1", "k", "4", "1", "10"), first},
		{resptest.Encode("SCRIPT", "LOAD", native) + resptest.Encode("EVALSHA", commandstest.SHAOf(native), "1", "k", "4", "1", "10"),
			"$40\r\n" + commandstest.SHAOf(native) + "\r\n" + first},
		{"EVAL \"return 1\" 0\r\n", noTransactions},
		{"EVAL_RO \"return 1\" 0\r\n", noTransactions},
		{"EVALSHA " + strings.Repeat("a", 40) + " 0\r\n", "-NOSCRIPT No matching script. Please use EVAL.\r\n"},
		{"MULTI\r\nPING\r\nEXEC\r\nDISCARD\r\n", noTransactions + commandstest.Pong + "-ERR EXEC without MULTI\r\n-ERR DISCARD without MULTI\r\n"},
		{"WATCH k\r\nUNWATCH\r\n", noWatch + "+OK\r\n"},
		{"CLIENT REPLY SKIP\r\nMULTI\r\nPING\r\n", commandstest.Pong},
	} {
		s := commandstest.New(withStore(storetest.Bare(shard.New()))).Session()
		commandstest.Expect(t, s, tt.in, tt.want)
	}
	r := commandstest.New(withStore(storetest.Bare(shard.New())))
	r.Config.Catalog.Each(func(c *catalog.Command) {
		if c.Flags&catalog.FlagWhole == 0 {
			return
		}
		const want = "-ERR the store of this server has no commands about all keys\r\n"
		commandstest.Expect(t, r.Session(), commandstest.CallOf(c, max(c.Arity, -c.Arity)), want)
	})
}

// notWithKeys returns a call of each command that EXEC refuses while it holds keys, and its usual reply.
func notWithKeys() map[string][2]string {
	return map[string][2]string{
		"memory|purge":      {"MEMORY PURGE\r\n", "+OK\r\n"},
		"acl|load":          {"ACL LOAD\r\n", "-ERR This instance is not configured to use an ACL file. Start the server with --aclfile.\r\n"},
		"bgrewriteaof":      {"BGREWRITEAOF\r\n", "+Background append only file rewriting scheduled\r\n"},
		"bgsave":            {"BGSAVE\r\n", "+Background saving scheduled\r\n"},
		"cl.limit|del":      {"CL.LIMIT DEL a\r\n", ":0\r\n"},
		"cl.limit|override": {"CL.LIMIT OVERRIDE a k DEL\r\n", ":0\r\n"},
		"cl.limit|reload":   {"CL.LIMIT RELOAD\r\n", "-ERR the server has no file of limits; start it with --limits-file. Files of --envoy-config reload by themselves, and by SIGHUP\r\n"},
		"cl.limit|set":      {"CL.LIMIT SET a 1 1 1\r\n", "+OK\r\n"},
		"config|set":        {"CONFIG SET slowlog-max-len 9\r\n", "+OK\r\n"},
		"script|load":       {"SCRIPT LOAD \"return 1\"\r\n", "$40\r\n" + commandstest.SHAOf("return 1") + "\r\n"},
		"script|flush":      {"SCRIPT FLUSH\r\n", "+OK\r\n"},
	}
}

// TestNotWithKeys: commands that would delay others are refused beside commands on keys, with the whole
// transaction, before anything is executed.
func TestNotWithKeys(t *testing.T) {
	const throttle, watch = "CL.THROTTLE k 4 1 10\r\n", "WATCH k\r\n"
	calls := notWithKeys()
	catalog.New().Each(func(c *catalog.Command) {
		if _, known := calls[c.FullName()]; known != (c.Flags&catalog.FlagNotWithKeys != 0) {
			t.Errorf("%s: it has a call here: %t", c.FullName(), known)
		}
	})
	for name, call := range calls {
		for _, tt := range []struct {
			first         string // outside the transaction
			before, after string // within
			refused       bool
			others        int // replies
		}{
			{},
			{first: watch},
			{before: "PING\r\n", after: "CLIENT ID\r\n", others: 2},
			{before: "EVAL \"return 1\" 0\r\n", others: 1},
			{first: watch, before: "PING\r\n", others: 1},
			{before: throttle, refused: true},
			{after: throttle, refused: true},
			{after: "DBSIZE\r\n", refused: true},
			{before: "FLUSHALL\r\n", refused: true},
			{before: "TTL k\r\n", refused: true},
			{before: "PING\r\n", after: resptest.Encode("EVAL", "return 1", "1", "k"), refused: true},
			{first: watch, before: call[0] + throttle, refused: true},
			{before: "SELECT 1\r\n", after: throttle, refused: true},
		} {
			r := commandstest.New(commandstest.Keeping(t, disktest.New(), time.Second))
			s := r.Session()
			commandstest.Say(t, s, tt.first)
			in := strings.TrimSuffix(tt.before+call[0]+tt.after, "\r\n")
			if strings.Contains(in, "*") { // EVAL is many lines
				commandstest.Say(t, s, "MULTI\r\n"+tt.before+call[0]+tt.after)
			} else if got, want := commandstest.Say(t, s, "MULTI\r\n"+in+"\r\n"), "+OK\r\n"+strings.Repeat("+QUEUED\r\n", 1+strings.Count(in, "\r\n")); got != want {
				t.Errorf("%q: queued as %q", in, got)
			}
			got := commandstest.Say(t, s, "EXEC\r\n")
			if tt.refused {
				want := "-EXECABORT Transaction discarded because of: '" + name + "' can not be executed in a transaction together with commands on keys; send it on its own\r\n"
				if got != want {
					t.Errorf("%q: got %q, want %q", in, got, want)
				}
			} else if all := resptest.ParseAll(t, got); len(all) != 1 || len(all[0].Elements) != 1+tt.others || !strings.Contains(got, call[1]) {
				t.Errorf("%q: got %q, want %q within", in, got, call[1])
			}
			if st := r.Stats(); st.Keys != 0 || st.Allowed != 0 {
				t.Errorf("%q: something was executed: %+v", in, st)
			}
			// Nothing is left of the transaction.
			commandstest.Say(t, r.Session(), throttle)
			commandstest.Expect(t, s, "MULTI\r\n"+throttle+"EXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n"+resptest.Ints(0, 5, 3, -1, 20))
		}
	}
}

// TestNotWithKeysInScripts: scripts, which may hold keys, refuse them too.
func TestNotWithKeysInScripts(t *testing.T) {
	for name := range notWithKeys() {
		call := "return redis.call('" + strings.ReplaceAll(name, "|", "', '") + "'"
		r := commandstest.New(commandstest.Keeping(t, disktest.New(), time.Second))
		got := commandstest.Say(t, r.Session(), resptest.Encode("EVAL", call+", 'x', 'y')", "0")+
			resptest.Encode("EVAL", call+", 'x')", "0")+resptest.Encode("EVAL", call+")", "0")+
			resptest.Encode("EVAL", call+", 'x', '1', '1', '1')", "0"))
		if !strings.Contains(got, "-ERR This Redis command is not allowed from script") || strings.Contains(got, "+OK") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestSelectRefusedInExec: if the user may no longer SELECT, later commands are not executed, as the
// transaction holds keys of another database.
func TestSelectRefusedInExec(t *testing.T) {
	const notSelected = "-ERR this command was not executed, because the SELECT in front of it was not\r\n"
	refused := aclChanged + "no permission to execute the command or subcommand\r\n"
	first := resptest.Ints(0, 5, 4, -1, 10)
	for _, tt := range []struct{ in, want string }{
		{"SELECT 1\r\nCL.THROTTLE k 4 1 10\r\nPING\r\n", "*3\r\n" + refused + notSelected + commandstest.Pong},
		{"CL.THROTTLE k 4 1 10\r\nSELECT 1\r\nFLUSHDB\r\nDBSIZE\r\n", "*4\r\n" + first + refused + notSelected + notSelected},
		{"SELECT 1\r\nSELECT 0\r\nCL.THROTTLE k 4 1 10\r\n", "*3\r\n" + refused + refused + first},
		{"SELECT 1\r\nEVAL \"return 1\" 1 k\r\nEVAL \"return 1\" 0\r\n", "*3\r\n" + refused + notSelected + notSelected},
	} {
		r := commandstest.NewUserHarness(t, openDefault)
		s := r.Session()
		commandstest.Say(t, s, "MULTI\r\n"+tt.in)
		r.Rewrite("user default on nopass ~* &* +@all -select")
		commandstest.Expect(t, s, "EXEC\r\n", tt.want)
		commandstest.Expect(t, s, "EXISTS k\r\n", ":"+map[bool]string{true: "1", false: "0"}[strings.Contains(tt.want, first)]+"\r\n")
	}
}
