package session_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"cellserver/internal/decide/observe"
	"cellserver/internal/funnel"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// newRemoteStore returns a remote store whose calls fail on a goroutine that must not wait.
func newRemoteStore(t *testing.T) *storetest.RemoteStore {
	on := storetest.NewRemote(shard.New())
	on.Forbid("session.(*Session).Feed", "session.(*Session).HungUp", "session.(*Session).Close")
	t.Cleanup(func() {
		if within := on.Within(); within != nil {
			t.Errorf("called where others wait: %v", within)
		}
	})
	return on
}

const (
	down    = "-" + storetest.LineDown + "\r\n"
	onRetry = "conflicts with other clients lasted longer than --store-timeout; no key was changed: try again\r\n"
)

func remoteFailure(line string) error { return store.Failure{Line: line} }

// TestLaterOverRemote: the result does not depend on where the input is cut.
func TestLaterOverRemote(t *testing.T) {
	remote := func(t *testing.T) store.Store { return newRemoteStore(t) }
	cutAnywhere(t, append(laterCases(),
		laterCase{"operations", "CL.THROTTLE k 9 1 60\r\nTTL k\r\nCL.BUCKET ADD b 5 3\r\nCL.THROTTLE k 9 1 60\r\nPING\r\nCL.BUCKET LEN b\r\nDEL k b\r\nDBSIZE\r\n"},
		laterCase{"several at once", "CL.MTHROTTLE 2 a 4 1 10 1 b 0 1 10 1\r\nPING\r\nCL.MTHROTTLE 2 a 4 1 10 1 b 0 1 10 1\r\nCL.THROTTLE a 4 1 10 0\r\n"},
		laterCase{"replies of operations are off", "CLIENT REPLY SKIP\r\nTTL k\r\nCLIENT REPLY OFF\r\nTTL k\r\nMULTI\r\nTTL k\r\nEXEC\r\nCLIENT REPLY ON\r\nTTL k\r\n"},
	), remote, remote, 100)
}

// TestExecOverRemote reads once and writes once for any number of commands, and writes again after
// a conflict.
func TestExecOverRemote(t *testing.T) {
	transaction := func(n int) string {
		return "MULTI\r\n" + strings.Repeat("CL.THROTTLE k 299 1 60\r\n", n) + "EXEC\r\n"
	}
	for _, tt := range []struct{ n, conflicts, commits int }{{1, 0, 1}, {100, 0, 1}, {300, 0, 1}, {1, 1, 2}, {100, 3, 4}} {
		on := newRemoteStore(t)
		on.Conflict(tt.conflicts)
		r := commandstest.New(withStore(on), withStoreTimeout(time.Minute))
		got := commandstest.Say(t, r.Session(), transaction(tt.n)+"CL.THROTTLE k 299 1 60 0\r\n")
		if want := resptest.Ints(0, 300, int64(300-tt.n), -1, int64(60*tt.n)); !strings.HasSuffix(got, want) {
			t.Errorf("%+v: got %q, want %q at its end", tt, got, want)
		}
		if calls := on.Calls(); calls["Begin"] != 1 || calls["Commit"] != tt.commits || calls["Throttle"] != 1 {
			t.Errorf("%+v: called %v", tt, calls)
		}
		if calls := r.Engine.Records.Stats().Calls["cl.throttle"]; tt.conflicts == 0 && calls != uint64(tt.n+1) {
			t.Errorf("%+v: counted %d calls", tt, calls)
		}
	}
}

func withStoreTimeout(d time.Duration) func(*commands.Config) {
	return func(c *commands.Config) { c.StoreTimeout = d }
}

// TestRemoteFailures of transactions and of several limits at once.
func TestRemoteFailures(t *testing.T) {
	const exec = "MULTI\r\nCL.THROTTLE a 4 1 10\r\nDEL b\r\nEXEC\r\n"
	const queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n"
	const together = "CL.MTHROTTLE 2 a 4 1 10 1 b 4 1 10 1\r\n"
	crossSlot := "-" + storetest.LineCrossSlot + "\r\n"
	// ended only by the timeout; a first attempt as long would give the store's error
	const conflicts = "conflicts"
	const unknown = "STOREDOWN the machine was cut off, and it is not known whether this was charged"
	for _, tt := range []struct {
		name   string
		change func(on *storetest.RemoteStore)
		failed string // of EXEC; of CL.MTHROTTLE, if other
		other  string
	}{
		{"down", func(on *storetest.RemoteStore) { on.Fail(remoteFailure(storetest.LineDown)) }, down, ""},
		{"slots", (*storetest.RemoteStore).Cluster, crossSlot, ""},
		{"Commit", func(on *storetest.RemoteStore) { on.FailIn("Commit", remoteFailure(unknown)) }, "-" + unknown + "\r\n", ""},
		{conflicts, func(on *storetest.RemoteStore) { on.Conflict(-1) }, "-EXECABORT Transaction discarded because of: " + onRetry, "-ERR " + onRetry},
	} {
		on := newRemoteStore(t)
		tt.change(on)
		timeout := time.Minute
		if tt.name == conflicts {
			timeout = time.Second
		}
		s := commandstest.New(withStore(on), withStoreTimeout(timeout)).Session()
		commandstest.Expect(t, s, exec, queued+tt.failed)
		want := tt.failed
		if tt.other != "" {
			want = tt.other
		}
		commandstest.Expect(t, s, together, want)
		commandstest.Expect(t, s, "DISCARD\r\nMULTI\r\nPING\r\nEXEC\r\n", "-ERR DISCARD without MULTI\r\n+OK\r\n+QUEUED\r\n*1\r\n"+commandstest.Pong)
		on.Fail(nil)
		commandstest.Expect(t, s, "EXISTS a b\r\n", ":0\r\n")
	}
}

// TestTagsOverRemote: keys with the same tag can be changed together on a cluster.
func TestTagsOverRemote(t *testing.T) {
	on := newRemoteStore(t)
	on.Cluster()
	s := commandstest.New(withStore(on)).Session()
	got := commandstest.Say(t, s, "MULTI\r\nCL.THROTTLE {u}a 4 1 10\r\nCL.THROTTLE {u}b 4 1 10\r\nEXEC\r\nCL.MTHROTTLE 2 {u}a 4 1 10 1 {u}b 4 1 10 1\r\nSCAN 0\r\nKEYS *\r\nDBSIZE\r\n")
	one, two := resptest.Ints(0, 5, 4, -1, 10), resptest.Ints(0, 5, 3, -1, 20)
	line := "-" + storetest.LineScan + "\r\n"
	if want := "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" + one + one + "*3\r\n:0\r\n" + two + two + line + line + ":2\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMixedBatchOverRemote: a failed batch reports an error for each request in its place.
func TestBatchesFailOverRemote(t *testing.T) {
	on := newRemoteStore(t)
	on.FailIn("Throttle", remoteFailure("STOREDOWN it is\r\ndown"))
	s := commandstest.New(withStore(on)).Session()
	failed := "-STOREDOWN it is\\r\\ndown\r\n"
	got := commandstest.Say(t, s, strings.Repeat("CL.THROTTLE k 4 1 10\r\n", observe.MaxBatch+1)+"TTL k\r\nCL.FIXEDWINDOW f 1 1\r\nHELLO 3\r\nCL.THROTTLE k 4 1 10\r\n")
	if want := strings.Repeat(failed, observe.MaxBatch+1) + ":-2\r\n" + failed; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, failed) {
		t.Errorf("got %q", got)
	}
	if got := commandstest.Say(t, s, "INFO errorstats\r\n"); !strings.Contains(got, "errorstat_STOREDOWN:count=131\r\n") {
		t.Errorf("counted %q", got)
	}
}

// TestScriptsOverRemote: native scripts work as over memory, with their errors; others are refused.
func TestScriptsOverRemote(t *testing.T) {
	const other = "return {redis.call('cl.throttle', KEYS[1], 4, 1, 10), 1}"
	eval := func(key string, args ...string) string {
		return resptest.Encode(append([]string{"EVAL", native, "1", key}, args...)...)
	}
	sha := resptest.Encode("EVALSHA", commandstest.SHAOf(native), "1", "k", "299", "1", "60")
	for _, tt := range []struct{ name, in, want string }{
		{"one call", eval("k", "299", "1", "60"), ""},
		{"by its name", resptest.Encode("SCRIPT", "LOAD", native) + sha + sha, ""},
		{"in EXEC", "SCRIPT LOAD x\r\n" + resptest.Encode("SCRIPT", "LOAD", native) + "MULTI\r\n" + sha + eval("k", "299", "1", "60") + "CL.THROTTLE k 299 1 60\r\nEXEC\r\n", ""},
		{"an argument that is wrong", eval("k", "x", "1", "60"), ""},
		{"too few arguments", eval("k"), ""},
		{"a key that is not declared", resptest.Encode("EVAL", "return redis.call('cl.throttle', 'o', 1, 1, 1)", "1", "k"), ""},
		{"read-only", resptest.Encode("EVAL_RO", native, "1", "k", "299", "1", "60"), ""},
		{"a script that does not compile", resptest.Encode("EVAL", "return (", "0"), ""},
		{"another script", resptest.Encode("EVAL", other, "1", "k"), "-ERR over a remote store (--store) a script is executed only if it is one call of CL.THROTTLE or of a command like it; " +
			"send its commands one by one, or between MULTI and EXEC\r\n"},
		{"without keys", resptest.Encode("EVAL", "return 1", "0"), "-ERR over a remote store (--store) a script is executed only if it is one call of CL.THROTTLE or of a command like it; " +
			"send its commands one by one, or between MULTI and EXEC\r\n"},
	} {
		want := tt.want
		if want == "" {
			want = commandstest.Say(t, commandstest.New().Session(), tt.in)
		}
		s := commandstest.New(withStore(newRemoteStore(t))).Session()
		commandstest.Expect(t, s, tt.in, want)
	}
}

// TestHangUpsOverRemote: earlier commands of a client that leaves are executed, and nothing waits for it.
func TestHangUpsOverRemote(t *testing.T) {
	for _, in := range []string{"CL.THROTTLE k 4 1 10\r\n", "DEL k\r\n", "CL.MTHROTTLE 1 k 4 1 10 1\r\n", "MULTI\r\nDEL k\r\nEXEC\r\n", "CL.BTHROTTLE k 4 1 10 1 1\r\n", "DBSIZE\r\n"} {
		for name, leave := range map[string]func(s *commandstest.Client){
			"half closed": func(s *commandstest.Client) { s.HungUp(peer.HalfClosed) },
			"reset":       func(s *commandstest.Client) { s.HungUp(peer.Reset) },
			"closed":      func(s *commandstest.Client) { s.Close() },
		} {
			on := newRemoteStore(t)
			on.Hold()
			r := commandstest.New(withStore(on))
			s := r.Session()
			_, left, status := commandstest.Feed(t, s, in)
			if left != "" || status != peer.Waiting {
				t.Fatalf("%q, %s: left %q, status %d", in, name, left, status)
			}
			leave(s)
			on.Release()
			if name != "closed" {
				if replies, _, status := commandstest.Converse(t, s, "PING\r\n"); status != peer.NeedInput || !strings.HasSuffix(replies, commandstest.Pong) {
					t.Errorf("%q, %s: got %q, status %d", in, name, replies, status)
				}
				s.Close()
			}
			commandstest.Expect(t, r.Session(), "PING\r\n", commandstest.Pong)
		}
	}
}

// TestPolicyInExec: without the store, its policy decides on transactions of requests only.
func TestPolicyInExec(t *testing.T) {
	on := newRemoteStore(t)
	policy := func(q *store.Request) { q.Result = funnel.Result{Limit: 7} }
	on.Policy(policy)
	s := commandstest.New(withStore(on)).Session()
	const requests = "MULTI\r\nCL.THROTTLE a 4 1 10\r\nCL.FIXEDWINDOW b 5 10\r\nEXEC\r\n"
	const queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n"
	byPolicy := resptest.Ints(0, 7, 0, 0, 0)
	for _, tt := range []struct {
		name   string
		change func()
		in     string
		want   string
	}{
		{"nothing has failed", func() {}, requests, queued + "*2\r\n" + resptest.Ints(0, 5, 4, -1, 10) + resptest.Ints(0, 5, 4, -1, 10)},
		{"Begin", func() { on.Fail(remoteFailure(storetest.LineDown)) }, requests, queued + "*2\r\n" + byPolicy + byPolicy},
		{"Begin, with another command", func() {}, "MULTI\r\nCL.THROTTLE a 4 1 10\r\nDEL a\r\nEXEC\r\n", queued + down},
		{"Commit", func() { on.Fail(nil); on.FailIn("Commit", remoteFailure("STOREDOWN it may have been charged")) }, requests, queued + "*2\r\n" + byPolicy + byPolicy},
		{"no policy", func() { on.Policy(nil); on.Fail(remoteFailure(storetest.LineDown)) }, requests, queued + down},
		{"slots", func() { on.Policy(policy); on.Cluster() }, requests, queued + "-" + storetest.LineCrossSlot + "\r\n"},
	} {
		tt.change()
		commandstest.Expect(t, s, tt.in, tt.want)
	}
}

// TestScanOverRemote takes one round trip, and a walk finds every key.
func TestScanOverRemote(t *testing.T) {
	on := newRemoteStore(t)
	s := commandstest.New(withStore(on)).Session()
	for i := range 300 {
		commandstest.Say(t, s, "CL.THROTTLE key"+strconv.Itoa(i)+" 4 1 10\r\n")
	}
	for count, calls := range map[string]int{"10": 1, "1000": 1, "5000": 1} {
		before := on.Calls()["Scan"]
		commandstest.Say(t, s, "SCAN 0 COUNT "+count+" MATCH key1*\r\n")
		if n := on.Calls()["Scan"] - before; n != calls {
			t.Errorf("COUNT %s took %d round trips, want %d", count, n, calls)
		}
	}
	found := map[string]bool{}
	for cursor, round := "0", 0; round == 0 || cursor != "0"; round++ {
		reply := resptest.ParseAll(t, commandstest.Say(t, s, "SCAN "+cursor+" COUNT 50 TYPE string\r\n"))[0]
		cursor = reply.Elements[0].Text
		for _, key := range reply.Elements[1].Elements {
			found[key.Text] = true
		}
	}
	if keys := resptest.ParseAll(t, commandstest.Say(t, s, "KEYS *\r\n"))[0].Elements; len(found) != 300 || len(keys) != 300 {
		t.Errorf("found %d keys by SCAN and %d by KEYS", len(found), len(keys))
	}
}

// TestRecordsOverRemote: SLOWLOG and MONITOR show the same calls in the same order as over memory.
func TestRecordsOverRemote(t *testing.T) {
	const in = "CL.THROTTLE k 4 1 10\r\nTTL k\r\nDEL k x\r\nCL.MTHROTTLE 1 k 4 1 10 1\r\nMULTI\r\nCL.THROTTLE k 4 1 10\r\nTTL k\r\nEXEC\r\n" +
		"CL.RESERVE k 4 1 10 x 1\r\nSCAN 0\r\nDBSIZE\r\n"
	seen := map[string]string{}
	for name, on := range map[string]store.Store{"memory": shard.New(), "remote": newRemoteStore(t)} {
		r := commandstest.New(withStore(on))
		monitor, s, operator := r.Session(), r.Session(), r.Session()
		commandstest.Say(t, operator, "CONFIG SET slowlog-log-slower-than 1 slowlog-max-len 100\r\n")
		commandstest.Say(t, monitor, "MONITOR\r\n")
		r.Clock.StepBy(2000)
		commandstest.Say(t, s, in)
		r.Clock.StepBy(0)
		lines, _, _ := commandstest.Converse(t, monitor, "")
		for line := range strings.Lines(lines) {
			_, call, _ := strings.Cut(line, "] ")
			seen[name] += call
		}
		for _, entry := range resptest.ParseAll(t, commandstest.Say(t, operator, "SLOWLOG GET 20\r\n"))[0].Elements {
			for _, arg := range entry.Elements[3].Elements {
				seen[name] += arg.Text + " "
			}
			seen[name] += "\n"
		}
	}
	if seen["remote"] != seen["memory"] || !strings.Contains(seen["remote"], "DEL k x") {
		t.Errorf("got\n%s\nwant\n%s", seen["remote"], seen["memory"])
	}
}
