package session_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// within fails a test that would deadlock.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	if _, ok := patience.Receive(done); !ok {
		t.Fatal(what + ": it hangs")
	}
}

// fill creates n keys.
func fill(t *testing.T, s *commandstest.Client, n int) {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "CL.THROTTLE filled:%d 4 1 1000\r\n", i)
	}
	commandstest.Say(t, s, b.String())
}

// TestExecIsRefusedWhole: a transaction that would delay others for too long is refused and changes nothing.
func TestExecIsRefusedWhole(t *testing.T) {
	const first = "CL.THROTTLE a 4 1 10\r\n"
	for _, tt := range []struct{ name, in, command string }{
		{"many walks", strings.Repeat("DBSIZE\r\n", 2500), "dbsize"},
		{"a costly pattern", "KEYS " + strings.Repeat("*?", 2000) + "\r\n", "keys"},
		{"a costly pattern in SCAN", "SCAN 0 COUNT 5000 MATCH " + strings.Repeat("*?", 2000) + "\r\n", "scan"},
		{"many commands beside a walk", "DBSIZE\r\n" + strings.Repeat(first, 6000), "cl.throttle"},
		{"many exact windows beside a walk", "DBSIZE\r\n" + strings.Repeat("CL.SLIDINGWINDOW a 4 60\r\n", 600), "cl.slidingwindow"},
		{"many commands that can not be repeated", "CLIENT SETNAME x\r\n" + strings.Repeat(first, 6000), "cl.throttle"},
	} {
		r := commandstest.New()
		s := r.Session()
		fill(t, s, 1000)
		commandstest.Say(t, s, "WATCH w\r\nMULTI\r\n"+first+tt.in)
		got := commandstest.Say(t, s, "EXEC\r\n")
		if !strings.HasPrefix(got, "-EXECABORT Transaction discarded because of: it could hold up all other clients for ") ||
			!strings.Contains(got, "most of that is for '"+tt.command+"'") {
			t.Errorf("%s: got %.300q", tt.name, got)
		}
		if got := commandstest.Say(t, s, "CLIENT INFO\r\n"); !strings.Contains(got, " multi=-1 watch=0 ") {
			t.Errorf("%s: %s", tt.name, got)
		}
		commandstest.Expect(t, s, "EXISTS a\r\nMULTI\r\nDBSIZE\r\nEXEC\r\n", ":0\r\n+OK\r\n+QUEUED\r\n*1\r\n:1000\r\n")
	}
}

// TestLongExecMeetsOthers: other clients can change a key during a long transaction.
func TestLongExecMeetsOthers(t *testing.T) {
	aborted := "-" + reply.ExecAborted(reply.ErrKeysChanged).Error() + "\r\n"
	for _, tt := range []struct {
		name     string
		commands int
		times    int // that others write meanwhile
		aborted  bool
	}{
		{"nobody", longExec + 1, 0, false},
		{"once", longExec + 1, 1, false},
		{"twice, and then they wait", longExec + 1, 2, false},
		{"often", 3500, 10, false},
		{"always, and it is too long for them to wait", 6000, 1 << 20, true},
	} {
		r := commandstest.New(commandstest.Meddling)
		s, other := r.Session(), r.Session()
		runs := 0
		r.Meddle = func() {
			if runs++; runs <= tt.times {
				commandstest.Say(t, other, "CL.THROTTLE a 100000 1 10\r\n")
			}
		}
		commandstest.Say(t, s, "MULTI\r\nTEST.MEDDLE\r\n"+strings.Repeat("CL.THROTTLE a 100000 1 10\r\n", tt.commands-1))
		within(t, tt.name, func() {
			got := commandstest.Say(t, s, "EXEC\r\n")
			if tt.aborted != (got == aborted) || !tt.aborted && !strings.HasPrefix(got, "*"+strconv.Itoa(tt.commands)+"\r\n+OK\r\n") {
				t.Errorf("%s: got %.200q", tt.name, got)
			}
		})
		want := 10 * (tt.commands - 1 + tt.times)
		if tt.aborted {
			want = 10 * runs
		}
		if got := commandstest.Say(t, s, "TTL a\r\n"); got != fmt.Sprintf(":%d\r\n", want) {
			t.Errorf("%s: %d runs, and the key lives %q s, want %d", tt.name, runs, got, want)
		}
		if !tt.aborted && runs != min(tt.times, 1<<10)+1 || tt.aborted && (runs < 10 || runs > 1000) {
			t.Errorf("%s: %d runs", tt.name, runs)
		}
	}
}

// TestExecOfAClientThatIsGone ends at its next command unless keys are held or something cannot be undone.
func TestExecOfAClientThatIsGone(t *testing.T) {
	calls := strings.Repeat("CL.THROTTLE a 100000 1 10\r\n", longExec)
	for _, tt := range []struct {
		name, in string
		done     bool
	}{
		{"on a snapshot", "TEST.MEDDLE\r\n" + calls, false},
		{"with a script", "TEST.MEDDLE\r\n" + resptest.Encode("EVAL", native, "1", "a", "4", "1", "10"), false},
		{"with all keys", "TEST.MEDDLE\r\n" + calls + "DBSIZE\r\n", true},
		{"what can not be undone", "TEST.MEDDLE\r\nCLIENT SETNAME x\r\n" + calls, true},
	} {
		r := commandstest.New(commandstest.Meddling)
		s := r.Session()
		r.Meddle = func() { s.HungUp(peer.Reset) }
		commandstest.Say(t, s, "MULTI\r\n"+tt.in)
		if _, _, status := commandstest.Feed(t, s, "EXEC\r\n"); status != peer.Waiting {
			t.Fatalf("%s: status %d", tt.name, status)
		}
		<-s.Conn.Woken
		commandstest.Expect(t, r.Session(), "EXISTS a\r\n", map[bool]string{true: ":1\r\n", false: ":0\r\n"}[tt.done])
	}
}

// TestKeysOfScripts: a script may use the maximum of keys, and finds each.
func TestKeysOfScripts(t *testing.T) {
	tooMany := reply.TooManyKeys(transact.MaxKeys).Error()
	script := func(keys int, different int) string {
		args := []string{"EVAL", "return redis.call('exists', KEYS[1], KEYS[#KEYS])", strconv.Itoa(keys)}
		for i := range keys {
			args = append(args, strconv.Itoa(i%different))
		}
		return resptest.Encode(args...)
	}
	for _, tt := range []struct{ name, in, want string }{
		{"as many as may be", script(transact.MaxKeys, transact.MaxKeys), ":0\r\n"},
		{"one more", script(transact.MaxKeys+1, transact.MaxKeys+1), "-" + tooMany + "\r\n"},
		{"twice as many, each twice", script(2*transact.MaxKeys, transact.MaxKeys), ":0\r\n"},
		{"in EXEC", "MULTI\r\n" + script(transact.MaxKeys+1, transact.MaxKeys+1) + "EXEC\r\n",
			"+OK\r\n+QUEUED\r\n-EXECABORT Transaction discarded because of: " + strings.TrimPrefix(tooMany, "ERR ") + "\r\n"},
		{"one of them undeclared", resptest.Encode(append([]string{"EVAL", "return redis.call('exists', 'x')", "17"},
			strings.Fields("a b c d e f g h i j k l m n o p q")...)...), "-ERR script used the key 'x', "},
	} {
		s := commandstest.New().Session()
		if got := commandstest.Say(t, s, tt.in); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: got %.200q", tt.name, got)
		}
	}
}

// deletions notes the number of keys of each deletion.
type deletions struct {
	*shard.Store
	sizes *[]int
	after func()
}

func (d deletions) Delete(nowNs int64, keys []store.Key) (int, error) {
	*d.sizes = append(*d.sizes, len(keys))
	if d.after != nil {
		defer d.after()
	}
	return d.Store.Delete(nowNs, keys)
}

// TestManyKeysAreDeletedInSteps, between which others come in, until the client is gone.
func TestManyKeysAreDeletedInSteps(t *testing.T) {
	const step, all = 1000, 2500
	names := []string{"DEL"}
	for i := range all {
		names = append(names, "filled:"+strconv.Itoa(i))
	}
	for _, gone := range []bool{false, true} {
		d := deletions{Store: shard.New(), sizes: new([]int)}
		var s *commandstest.Client
		if gone {
			d.after = func() { s.HungUp(peer.Reset) }
		}
		s = commandstest.New(withStore(d)).Session()
		fill(t, s, all)
		within(t, "DEL", func() {
			if got := commandstest.Say(t, s, resptest.Encode(append(names, "filled:0")...)); !gone && got != fmt.Sprintf(":%d\r\n", all) {
				t.Errorf("got %q", got)
			}
		})
		want := []int{step, step, all + 1 - 2*step}
		if gone {
			want = want[:1]
		}
		if fmt.Sprint(*d.sizes) != fmt.Sprint(want) {
			t.Errorf("deleted %v, want %v", *d.sizes, want)
		}
	}
}

// TestLongCommandOfAUserWithRules is admitted in the background and answered in order.
func TestLongCommandOfAUserWithRules(t *testing.T) {
	long := func(name, key string) string {
		args := []string{name}
		for i := range 1500 {
			args = append(args, key+strconv.Itoa(i))
		}
		return resptest.Encode(args...)
	}
	for _, tt := range []struct{ name, in, want string }{
		{"allowed", "PING\r\n" + long("EXISTS", "app:") + "PING\r\n", commandstest.Pong + ":0\r\n" + commandstest.Pong},
		{"denied", long("EXISTS", "other:") + "PING\r\n", denyKey + commandstest.Pong},
		{"unknown", long("NOSUCH", "app:"), "-ERR unknown command 'NOSUCH'"},
		{"behind a batch", "CL.THROTTLE app:1 4 1 10\r\n" + long("EXISTS", "app:"), resptest.Ints(0, 5, 4, -1, 10) + ":1\r\n"},
		{"queued", "MULTI\r\n" + long("EXISTS", "app:") + "EXEC\r\nPING\r\n", "+OK\r\n+QUEUED\r\n*1\r\n:0\r\n" + commandstest.Pong},
		{"denied and queued", "MULTI\r\n" + long("EXISTS", "other:") + "EXEC\r\n", "+OK\r\n" + denyKey + execAborted},
		{"without its reply", "CLIENT REPLY SKIP\r\n" + long("EXISTS", "other:") + "PING\r\n", commandstest.Pong},
		{"without replies", "CLIENT REPLY OFF\r\n" + long("EXISTS", "app:") + "PING\r\nCLIENT REPLY ON\r\n", "+OK\r\n"},
	} {
		r := commandstest.NewUserHarness(t, "user default on nopass ~app:* &* +@all")
		if got := commandstest.Say(t, r.Session(), tt.in); !strings.HasPrefix(got, tt.want) || strings.Count(got, "\r\n") != max(1, strings.Count(tt.want, "\r\n")) {
			t.Errorf("%s: got %q", tt.name, got)
		}
	}
}
