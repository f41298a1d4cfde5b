package throttle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/gate"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
)

// holdForms are ways to make a call on the keys l:k and other:o.
func holdForms() map[string]func(call string) string {
	const script = "return redis.call(unpack(ARGV))"
	inScript := func(call string) string {
		return resptest.Encode(append([]string{"EVAL", script, "2", "l:k", "other:o"}, strings.Fields(call)...)...)
	}
	return map[string]func(call string) string{
		"alone":                func(call string) string { return call + "\r\n" },
		"in a transaction":     func(call string) string { return "MULTI\r\n" + call + "\r\nEXEC\r\n" },
		"beside all keys":      func(call string) string { return "MULTI\r\nKEYS none\r\n" + call + "\r\nEXEC\r\n" },
		"in a script":          inScript,
		"in a script, in EXEC": func(call string) string { return "MULTI\r\n" + inScript(call) + "EXEC\r\n" },
	}
}

// TestHoldsInTransactionsAndScripts: each call replies and does what it does alone.
func TestHoldsInTransactionsAndScripts(t *testing.T) {
	for form, write := range holdForms() {
		t.Run(form, func(t *testing.T) {
			b := newBudgets(t, "l FUNNEL 99 1 10000", "other FIXEDWINDOW 50 864000")
			say := func(call, want string) {
				t.Helper()
				if want[0] == '-' { // a script says where
					want = strings.TrimSuffix(want, "\r\n") + "…"
				}
				commandstest.ExpectLike(t, b.s, write(call), "…"+want)
			}
			say("CL.MRESERVE 2 l k 30 other o 40 TTL 10s ID a", "$1\r\na\r\n")
			b.left("l:k=70", "other:o=10")
			say("CL.MRESERVE 2 l k 30 other o 40 TTL 10s ID a", "$1\r\na\r\n")
			say("CL.MRESERVE 2 l k 30 other o 11 TTL 10s", "$-1\r\n")
			say("CL.MRESERVE 2 l k 30 other o 10 TTL 10s ID a", taken)
			say("CL.MCOMMIT a 1 l k 30", otherPairs)
			say("CL.MEXTEND a 20s 2 l k other o", settled)
			b.wait(19 * time.Second)
			b.left("l:k=70", "other:o=10")
			say("CL.MCOMMIT a 2 l k 10 other o 45", settled)
			say("CL.MCOMMIT a 2 l k 10 other o 45", none)
			b.left("l:k=90", "other:o=5")
			say("CL.MRESERVE 1 other o 5 TTL 10s CHARGE ID b", "$1\r\nb\r\n")
			b.wait(20 * time.Second)
			say("CL.MRESERVE 1 other o 5 TTL 10s CHARGE ID b", overdue)
			say("CL.MCOMMIT b 1 other o 1", late)
			b.left("other:o=4")
			got := fields(b.say("CL.LIMIT GET other"))
			if got["holds"] != 2 || got["holds_settled"] != 1 || got["holds_settled_late"] != 1 || got["allowed"] != 3 || got["limited"] != 1 {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestHoldsAreUndone: if one key cannot be held, none is, and other commands of a transaction are executed.
func TestHoldsAreUndone(t *testing.T) {
	for form, write := range holdForms() {
		b := newBudgets(t, "l FUNNEL 99 1 10000", "other FIXEDWINDOW 50 86400")
		b.expect("SET other:o text", "+OK\r\n")
		commandstest.ExpectLike(t, b.s, write("CL.MRESERVE 2 l k 30 other o 40 TTL 10s"), "…-…WRONGTYPE …")
		b.expect("EXISTS l:k", none)
		b.expect("DEL other:o", settled)
		b.hold("2 l k 30 other o 40 TTL 10s ID a")
		b.expect("SET other:o text", "+OK\r\n")
		commandstest.ExpectLike(t, b.s, write("CL.MCOMMIT a 2 l k 10 other o 40"), "…-…WRONGTYPE …")
		commandstest.ExpectLike(t, b.s, write("CL.MEXTEND a 1h 2 l k other o"), "…-…WRONGTYPE …")
		b.left("l:k=70")
		b.wait(10 * time.Second)
		b.left("l:k=100")
		if t.Failed() {
			t.Fatal(form)
		}
	}
	b := newBudgets(t, "l FUNNEL 99 1 10000", "other FIXEDWINDOW 50 86400")
	commandstest.ExpectLike(t, b.s, "SET other:o text\r\nMULTI\r\nCL.MRESERVE 1 l a 30 TTL 10s\r\nCL.MRESERVE 2 l k 30 other o 40 TTL 10s\r\nCL.MRESERVE 1 l a 20 TTL 10s\r\nEXEC\r\n", "…")
	b.left("l:a=50", "l:k=100")
}

// TestScriptsDeclareTheKeysOfHolds.
func TestScriptsDeclareTheKeysOfHolds(t *testing.T) {
	b := newBudgets(t, "l FUNNEL 99 1 10000")
	for _, call := range []string{"'cl.mreserve', 2, 'l', 'k', 1, 'l', 'k2', 1, 'TTL', 1000", "'cl.mcommit', 'x', 2, 'l', 'k', 1, 'l', 'k2', 1", "'cl.mextend', 'x', 1000, 2, 'l', 'k', 'l', 'k2'"} {
		commandstest.ExpectLike(t, b.s, resptest.Encode("EVAL", "return redis.call("+call+")", "1", "l:k"), "-ERR script used the key 'l:k2'…")
	}
	b.expect("EXISTS l:k", none)
}

// TestHoldsOfUsers need the right to read and write name:key, and none to CL.RESET it.
func TestHoldsOfUsers(t *testing.T) {
	r := commandstest.NewUserHarness(t, "user default on nopass ~* &* +@all", "user app on >pw ~l:* +@all -@refill -cl.reset",
		"user reader on >pw %R~l:* +@all", "user none on >pw ~* +@all -cl.mreserve -cl.mcommit -cl.mextend")
	commandstest.Say(t, r.Session(), "CL.LIMIT SET l FIXEDWINDOW 50 86400\r\nCL.LIMIT SET other FIXEDWINDOW 50 86400\r\n")
	const key = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	app := r.Login("app")
	commandstest.ExpectLike(t, app, "CL.MRESERVE 2 l a 10 l b 5 TTL 10s ID mine\r\n", "*4\r\n:0\r\n…mine\r\n")
	commandstest.Expect(t, app, "CL.MEXTEND mine 20s 2 l a l b\r\nCL.MCOMMIT mine 2 l a 1 l b 2\r\n", settled+settled)
	commandstest.Expect(t, app, "CL.MRESERVE 2 l a 10 other b 5 TTL 10s\r\nCL.MEXTEND mine 20s 2 l a other b\r\nCL.MCOMMIT mine 2 other a 1 l b 2\r\n", key+key+key)
	commandstest.Expect(t, r.Login("reader"), "CL.MRESERVE 1 l a 10 TTL 10s\r\nCL.MEXTEND mine 20s 1 l a\r\nCL.MCOMMIT mine 1 l a 1\r\n", key+key+key)
	for _, call := range []string{"CL.MRESERVE 1 l a 10 TTL 10s", "CL.MEXTEND mine 20s 1 l a", "CL.MCOMMIT mine 1 l a 1"} {
		name := strings.ToLower(strings.Fields(call)[0])
		commandstest.Expect(t, r.Login("none"), call+"\r\n", "-NOPERM this user has no permissions to run the '"+name+"' command\r\n")
	}
}

// TestHoldsAreShown by MONITOR and SLOWLOG as they were sent, and in the figures of commands.
func TestHoldsAreShown(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 50 86400")
	monitor := b.r.Session()
	commandstest.Say(t, monitor, "MONITOR\r\n")
	b.expect("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 100", "+OK\r\n")
	calls := []string{"CL.MRESERVE 1 l a 10 TTL 10s ID mine", "CL.MEXTEND mine 20s 1 l a", "CL.MCOMMIT mine 1 l a 1"}
	for _, call := range calls {
		b.say(call)
	}
	slow := fmt.Sprint(b.say("SLOWLOG GET"))
	lines, _, _ := commandstest.Feed(t, monitor, "")
	for _, call := range calls {
		words := strings.Fields(call)
		if !strings.Contains(slow, words[0]) {
			t.Errorf("SLOWLOG has no %s: %s", call, slow)
		}
		if want := `"` + strings.Join(words, `" "`) + `"`; !strings.Contains(lines, want) {
			t.Errorf("MONITOR has no %s: %s", want, lines)
		}
		if n := b.r.Engine.Records.Stats().Calls[strings.ToLower(words[0])]; n != 1 {
			t.Errorf("%s: %d calls", call, n)
		}
	}
}

// TestHoldsThatMayNotChange: where nothing may be changed, a replica or a disk that fails, nothing is held or
// settled, and what changes nothing is answered.
func TestHoldsThatMayNotChange(t *testing.T) {
	for code, err := range map[string]error{"MISCONF": store.ErrFrozen, "READONLY": gate.Refusal("READONLY You can't write against a read only replica.")} {
		on := shard.New()
		r := commandstest.New(func(c *commands.Config) { c.Store = on })
		b := &budgets{t, r, r.Session()}
		b.expect("CL.LIMIT SET l FIXEDWINDOW 50 86400", "+OK\r\n")
		b.hold("2 l a 10 l b 5 TTL 10s ID mine")
		on.Track(func() {})
		on.Freeze(0, err)
		for _, call := range []string{"CL.MRESERVE 2 l a 10 l b 5 TTL 10s", "CL.MRESERVE 2 l c 10 l b 5 TTL 10s", "CL.MEXTEND mine 20s 2 l a l b", "CL.MCOMMIT mine 2 l a 1 l b 1"} {
			commandstest.ExpectLike(t, b.s, call+"\r\n", "-"+code+" …\r\n")
		}
		b.left("l:a=40", "l:b=45")
		b.hold("2 l a 10 l b 5 TTL 10s ID mine")
		b.denied("2 l a 41 l b 5 TTL 10s")
		b.expect("CL.MCOMMIT other 2 l a 1 l b 1", none)
	}
}

// TestHoldsMakeFewKeys: no more new ones than the client's address may create, also by the debits of a settle.
func TestHoldsMakeFewKeys(t *testing.T) {
	const refused = "-ERR more than 2 new keys per second from this address, the limit of --max-new-keys-per-second; existing keys still answer\r\n"
	b := newBudgets(t, "l FIXEDWINDOW 50 86400")
	b.r.Engine.NewKeys.Limit(2)
	b.hold("2 l a 10 l b 5 TTL 10m ID mine")
	b.expect("CL.MRESERVE 2 l a 10 l c 5 TTL 10m", refused)
	b.expect("CL.MCOMMIT nosuch 2 l c 1 l d 1", none)
	b.expect("DEL l:b", settled)
	b.expect("CL.MCOMMIT mine 2 l a 1 l b 1", refused)
	b.left("l:a=40")
	b.wait(time.Second)
	b.expect("CL.MCOMMIT mine 2 l a 1 l b 1", settled)
	b.left("l:a=49", "l:b=49")
}

// TestHoldsOverRemote: a conflict repeats the whole step, on a cluster all keys have to be in one slot, and
// while the store is down no policy decides.
func TestHoldsOverRemote(t *testing.T) {
	on, file := storetest.NewRemote(shard.New()), filepath.Join(t.TempDir(), "limits.yml")
	if err := os.WriteFile(file, []byte("limits: {l: {rules: [{algorithm: fixed_window, max_count: 50, period: 86400}]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := commandstest.New(func(c *commands.Config) { c.Store = on }, withLimits(nil, file))
	b := &budgets{t, r, r.Session()}
	b.expect("CL.LIMIT RELOAD", "+OK\r\n")
	on.Conflict(3)
	b.hold("2 l a 10 l {a}b 5 TTL 10m ID mine")
	b.left("l:a=40", "l:{a}b=45")
	on.Conflict(3)
	b.expect("CL.MEXTEND mine 20m 2 l a l {a}b", settled)
	b.expect("DEL l:{a}b", settled)
	on.Conflict(3)
	b.expect("CL.MCOMMIT mine 2 l a 1 l {a}b 2", settled)
	b.left("l:a=49", "l:{a}b=48")
	got := fields(b.say("CL.LIMIT GET l"))
	if got["holds"] != 2 || got["holds_settled"] != 1 || got["allowed"] != 3 {
		t.Errorf("%v", got)
	}
	on.Policy(func(q *store.Request) { q.Result = funnel.Result{} })
	on.Fail(store.Failure{Line: storetest.LineDown})
	calls := []string{"CL.MRESERVE 2 l a 10 l {b}b 5 TTL 10m", "CL.MEXTEND mine 20m 2 l a l {b}b", "CL.MCOMMIT mine 2 l a 1 l {b}b 2"}
	for _, call := range calls {
		b.expect(call, "-"+storetest.LineDown+"\r\n")
		commandstest.ExpectLike(t, b.s, "MULTI\r\n"+call+"\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n-"+storetest.LineDown+"\r\n")
	}
	on.Fail(nil)
	on.Cluster()
	for _, call := range calls {
		b.expect(call, "-"+storetest.LineCrossSlot+"\r\n")
	}
	b.hold("2 l {a}1 10 l {a}2 5 TTL 10m")
}

// TestHoldsAllocateLittle.
func TestHoldsAllocateLittle(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates")
	}
	const three = "3 l a %s l b %s l c %s"
	all := func(units string) string { return fmt.Sprintf(three, units, units, units) }
	check := resptest.Encode(strings.Fields("CL.MCHECK " + strings.ReplaceAll(three, " %s", ""))...)
	given := resptest.Encode(strings.Fields("CL.MRESERVE "+all("1")+" TTL 30s ID mine")...) + resptest.Encode(strings.Fields("CL.MCOMMIT mine "+all("1"))...)
	for _, tt := range []struct {
		name string
		most float64
		in   string
	}{
		{"two checks", 60, check + check},
		{"a hold and its settle", 60, given},
	} {
		b := newBudgets(t, "l FIXEDWINDOW 1000000000 86400")
		in, out := []byte(tt.in), make([]byte, 0, 1<<16)
		n := testing.AllocsPerRun(100, func() { b.s.Feed(in, out[:0]) })
		t.Logf("%s: %g allocations", tt.name, n)
		if n > tt.most {
			t.Errorf("%s: %g allocations, want at most %g", tt.name, n, tt.most)
		}
	}
}
