package commands_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// onRemote returns a remote store that notes calls on a goroutine that must not wait.
func onRemote() (*storetest.RemoteStore, func(*commands.Config)) {
	on := storetest.NewRemote(shard.New())
	on.Forbid("session.(*Session).Feed", "session.(*Session).HungUp", "session.(*Session).Close")
	return on, func(c *commands.Config) { c.Store = on }
}

func wantNothingWithin(t *testing.T, on *storetest.RemoteStore) {
	t.Helper()
	if within := on.Within(); within != nil {
		t.Errorf("called where others wait: %v", within)
	}
}

// remoteCall returns a call that has an effect over any store.
func remoteCall(c *catalog.Command) []string {
	calls := map[string]string{
		"cl.throttle": "cl.throttle held 4 1 10", "rl.throttle": "rl.throttle held 4 1 10", "cl.pthrottle": "cl.pthrottle held 4 1 10000",
		"cl.tokenbucket": "cl.tokenbucket held 5 1 10", "cl.refund": "cl.refund held 4 1 10", "cl.peek": "cl.peek held 4 1 10 1",
		"cl.fixedwindow": "cl.fixedwindow other 5 10", "cl.slidingwindow": "cl.slidingwindow other 5 10", "cl.approxwindow": "cl.approxwindow other 5 10",
		"cl.bucket|take": "cl.bucket take other 5", "cl.bucket|add": "cl.bucket add other 5 3", "cl.bucket|reset": "cl.bucket reset other 5",
		"cl.reserve": "cl.reserve held 4 1 10 1 1000", "cl.mthrottle": "cl.mthrottle 2 held 4 1 10 1 {held}2 4 1 10 1",
		"cl.bthrottle": "cl.bthrottle held 4 1 10 1 1", "cl.concurrency|acquire": "cl.concurrency acquire other 5 1000 me",
		"cl.check": "cl.check nosuch k", "cl.mcheck": "cl.mcheck 1 nosuch k", "cl.quota": "cl.quota other 5 HOUR", "cl.debit": "cl.debit held 4 1 10 1", "set": "set other 1700000060000000000", "get": "get held", "expire": "expire held -1",
		"scan": "scan 0 count 100000", "keys": "keys *", "eval": "eval return(1) 0", "type": "type held", "select": "select 0", "cl.top": "cl.top",
		"object|encoding": "object encoding held", "info": "info limits",
	}
	if text := calls[c.FullName()]; text != "" {
		return strings.Fields(text)
	}
	return callWith(c, "held")
}

// varies reports whether a command's replies differ between servers.
func varies(c *catalog.Command) bool {
	return slices.Contains([]string{"cl.reserve", "time", "acl|genpass", "client|list", "client|info", "hello", "role", "module|list",
		"command|docs", "command|info", "command", "command|count", "command|list", "lastsave", "cl.limit|help", "memory|help", "cl.concurrency|acquire"}, c.FullName()) ||
		c.Name == "help"
}

// differsOverRemote reports whether a remote store refuses the call.
func differsOverRemote(c *catalog.Command) bool {
	return slices.ContainsFunc(catalog.RemoteRows(), func(r catalog.Remote) bool { return r.Name == c.FullName() && r.Refusal != "" }) ||
		c.Name == "eval" || c.Name == "eval_ro" // whose script is more than one call
}

// sameKinds reports whether two replies are equal except for texts and numbers.
func sameKinds(a, b []resptest.Reply) bool {
	return slices.EqualFunc(a, b, func(a, b resptest.Reply) bool { return a.Kind == b.Kind })
}

// TestEveryCommandOverRemote: each command replies as over memory, alone, in EXEC and in RESP3, or with its
// documented error; and only batches reach the store while others wait.
func TestEveryCommandOverRemote(t *testing.T) {
	for _, pattern := range []struct{ name, before, behind string }{
		{"alone", "", ""},
		{"RESP3", "HELLO 3\r\n", ""},
		{"EXEC", "MULTI\r\nCL.THROTTLE held 4 1 10\r\n", "CL.THROTTLE held 4 1 10\r\nEXEC\r\n"},
		{"monitored", "", "MONITOR\r\n"},
	} {
		if racetest.OmitsLong() && pattern.name != "EXEC" && pattern.name != "RESP3" {
			continue
		}
		eachCall(func(c *catalog.Command, _ []string) {
			in := "CL.THROTTLE held 4 1 10\r\n" + pattern.before + resptest.Encode(remoteCall(c)...) + pattern.behind
			on, remote := onRemote()
			patient := func(c *commands.Config) { c.StoreTimeout = time.Minute }
			got, left, status := commandstest.Converse(t, commandstest.New(remote, patient).Session(), in)
			want, wantLeft, wantStatus := commandstest.Converse(t, commandstest.New(func(c *commands.Config) { c.Databases = 1 }).Session(), in)
			wantNothingWithin(t, on)
			gotAll, wantAll := resptest.ParseAll(t, got), resptest.ParseAll(t, want)
			whole := c.Flags&catalog.FlagWhole != 0 && pattern.name == "EXEC"
			switch {
			case differsOverRemote(c) || whole:
				if !strings.Contains(got, "over a remote store (--store)") {
					t.Errorf("%s, %s: got %q", c.FullName(), pattern.name, got)
				}
			case strings.Contains(want, "it could hold up all other clients"): // which a transaction over a store does not
			case varies(c) && sameKinds(gotAll, wantAll):
			case got != want || left != wantLeft || status != wantStatus:
				t.Errorf("%s, %s: got\n%q, left %q, status %d, want\n%q, left %q, status %d", c.FullName(), pattern.name, got, left, status, want, wantLeft, wantStatus)
			}
		})
	}
}

// TestEveryCommandWhileTheStoreFails: each command that uses the store reports it, alone and in EXEC, and the
// connection goes on.
func TestEveryCommandWhileTheStoreFails(t *testing.T) {
	const down = "-" + storetest.LineDown + "\r\n"
	eachCall(func(c *catalog.Command, _ []string) {
		on, remote := onRemote()
		r := commandstest.New(remote)
		on.Fail(store.Failure{Line: storetest.LineDown})
		s := r.Session()
		call := resptest.Encode(remoteCall(c)...)
		got, _, status := commandstest.Converse(t, s, call)
		own := slices.Contains([]string{ // answered without the store: limits, scripts and figures
			"cl.check", "cl.mcheck", "cl.mreserve", "cl.limit|explain", "cl.top", "evalsha", "evalsha_ro", "info",
		}, c.FullName())
		uses := (!c.Keys.None() || c.Flags&catalog.FlagWhole != 0) && !own && !differsOverRemote(c)
		if uses != (got == down) {
			t.Errorf("%s: got %q", c.FullName(), got)
		}
		if status != peer.NeedInput || c.FullName() == "monitor" || c.FullName() == "client|reply" {
			return
		}
		commandstest.Say(t, s, "RESET\r\n")
		got = commandstest.Say(t, s, "MULTI\r\nCL.THROTTLE held 4 1 10\r\nEXEC\r\nDISCARD\r\n")
		if want := "+OK\r\n+QUEUED\r\n" + down + "-ERR DISCARD without MULTI\r\n"; got != want {
			t.Errorf("%s: then got %q", c.FullName(), got)
		}
		on.Fail(nil)
		commandstest.ExpectLike(t, s, "DEL held\r\nCL.THROTTLE held 4 1 10\r\n",
			"…"+resptest.Ints(0, 5, 4, -1, 10))
		wantNothingWithin(t, on)
	})
}

// TestRefusedOverRemote: commands that the store lacks are in no list and name the reason; all others are
// listed.
func TestRefusedOverRemote(t *testing.T) {
	_, remote := onRemote()
	s := commandstest.New(remote).Session()
	refused := map[string]bool{}
	for _, row := range catalog.RemoteRows() {
		c := catalog.New().LookupFull([]byte(row.Name))
		if c == nil || (row.Refusal == "") == (row.Differs == "") {
			t.Fatalf("%+v", row)
		}
		if row.Refusal == "" {
			continue
		}
		refused[row.Name] = true
		if got, want := commandstest.Say(t, s, resptest.Encode(callWith(c, "k")...)), "-ERR "+row.Refusal+"\r\n"; got != want {
			t.Errorf("%s: got %q, want %q", row.Name, got, want)
		}
		if got := commandstest.Say(t, s, "MULTI\r\n"+resptest.Encode(callWith(c, "k")...)+"EXEC\r\n"); got != "+OK\r\n-ERR "+row.Refusal+"\r\n-EXECABORT Transaction discarded because of previous errors.\r\n" {
			t.Errorf("%s in MULTI: got %q", row.Name, got)
		}
	}
	listed := map[string]bool{}
	for _, name := range resptest.ParseAll(t, commandstest.Say(t, s, "COMMAND LIST\r\n"))[0].Elements {
		listed[name.Text] = true
	}
	catalog.New().Each(func(c *catalog.Command) {
		// those require a disk
		if name := c.FullName(); listed[name] == refused[name] && name != "save" && name != "bgsave" && name != "bgrewriteaof" {
			t.Errorf("%s: listed is %t", name, listed[name])
		}
	})
	if got := commandstest.Say(t, s, "CL.LIMIT HELP\r\nCOMMAND DOCS cl.limit\r\nCOMMAND INFO cl.limit cl.limit|set\r\n"); strings.Contains(got, "Defines a named limit") || strings.Contains(strings.ToLower(got), "cl.limit|set") {
		t.Errorf("got %q", got)
	}
	if got := commandstest.Say(t, s, "SELECT 1\r\nMULTI\r\nSELECT 1\r\nCL.THROTTLE k 4 1 10\r\nEXEC\r\nUNWATCH\r\n"); got != "-ERR DB index is out of range\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n"+
		"-ERR DB index is out of range\r\n"+resptest.Ints(0, 5, 4, -1, 10)+"+OK\r\n" {
		t.Errorf("got %q", got)
	}
}

// TestValuesOverRemote: SET and RESTORE make funnels there, and no values.
func TestValuesOverRemote(t *testing.T) {
	_, remote := onRemote()
	memory, s := commandstest.New().Session(), commandstest.New(remote).Session()
	commandstest.Say(t, memory, "SET text hello\r\nSET number 5\r\nSET tat 1700000060000000000\r\n")
	restore := func(key, options string) string {
		dumped := resptest.ParseAll(t, commandstest.Say(t, memory, "DUMP "+key+"\r\n"))[0].Text
		return resptest.Encode(append([]string{"RESTORE", "k", "0", dumped}, strings.Fields(options)...)...)
	}
	for _, in := range []string{"SET k hello\r\n", "SET k 5\r\n", "SET k hello GET\r\n", restore("text", ""), restore("number", ""), restore("text", "FUNNEL")} {
		commandstest.ExpectLike(t, s, in+"EXISTS k\r\n", "-ERR "+catalog.RefuseValue+"…\r\n:0\r\n")
	}
	commandstest.Expect(t, s, restore("tat", "")+"GET k\r\nSET k 1700000070000000000 GET\r\nSET k 1700000071000000000 EX 9\r\nSET k 1700000070000000000 KEEPTTL GET\r\n"+restore("tat", "REPLACE FUNNEL")+"CL.THROTTLE k 6 1 10 0\r\n",
		"+OK\r\n$19\r\n1700000060000000000\r\n$19\r\n1700000060000000000\r\n+OK\r\n$19\r\n1700000071000000000\r\n+OK\r\n"+resptest.Ints(0, 7, 1, -1, 60))
	for _, tt := range [][2]string{
		{"SET k 1700000080000000000 IFEQ 1700000060000000001", "$-1"}, {"SET k 1700000080000000000 IFEQ 1700000060000000000", "+OK"},
		{"SET k 1700000060000000000 IFNE 1700000080000000000", "$-1"},
		{"SET k 1700000060000000000 IFDNE 0000000000000000 GET", "$19\r\n1700000080000000000"},
		{"SET new 1700000060000000000 IFEQ 5", "$-1"}, {"SET new 1700000060000000000 IFNE 5", "+OK"},
		{"SET k 1700000080000000000 IFDEQ x", "-ERR must be exactly 16 hexadecimal characters"},
		{"SET k text IFNE 5", "-ERR " + catalog.RefuseValue + "…"},
	} {
		commandstest.ExpectLike(t, s, tt[0]+"\r\n", tt[1]+"\r\n")
	}
	for _, refused := range []string{"DELEX k", "DELEX k IFEQ 5", "DELIFEQ k 5", "DIGEST k", "GETSET k 5", "MSETNX k 5", "MSETEX 1 k 5"} {
		commandstest.ExpectLike(t, s, refused+"\r\n", "-ERR "+catalog.RefuseValue+"…\r\n")
	}
}

// TestUsersOverRemote: a user's rules apply to a native script, as over memory.
func TestUsersOverRemote(t *testing.T) {
	script := resptest.Encode("EVAL", "return redis.call('cl.throttle', KEYS[1], 4, 1, 10)", "1", "k")
	replies := map[string]string{}
	for name, over := range map[string]func(*commands.Config){"memory": func(*commands.Config) {}, "remote": func(c *commands.Config) { c.Store = storetest.NewRemote(shard.New()) }} {
		r := commandstest.NewUserHarnessOf(t, over, "user default on nopass ~* &* +@all", "user may on >pw ~* +@all -del",
			"user mayNot on >pw ~* +@all -cl.throttle", "user other on >pw ~o* +@all")
		for _, user := range []string{"may", "mayNot", "other"} {
			replies[name] += commandstest.Say(t, r.Login(user), script+"MULTI\r\n"+script+"TTL k\r\nCL.MTHROTTLE 1 k 4 1 10 1\r\nEXEC\r\n")
		}
	}
	if replies["memory"] != replies["remote"] || !strings.Contains(replies["remote"], resptest.Ints(0, 5, 4, -1, 10)) {
		t.Errorf("got %q, want %q", replies["remote"], replies["memory"])
	}
}
