package session_test

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"cellserver/internal/decide/observe"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/session"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

func withStore(on store.Store) func(*commands.Config) {
	return func(c *commands.Config) { c.Store = on }
}

// conversation is all that a client, a MONITOR or an operator sees of an input.
type conversation struct {
	replies, left string
	status        peer.Status
	monitored     string
	stats         string // of the commands and errors
	store         store.Stats
	logged        string
}

// ownINFO matches what a background INFO may count of itself, and the length of its reply.
var ownINFO = regexp.MustCompile(`\$\d+\r\n|(cmdstat_info|total_commands_processed).*\r\n`)

// converse sends an input in two parts: the second after the first one's replies or, with hurry, possibly
// while the session waits for the store.
func converse(t *testing.T, on store.Store, in string, cut int, hurry bool) (c conversation) {
	t.Helper()
	r := commandstest.New(withStore(on), commandstest.WithLimitFor(in))
	monitor, s := r.Session(), r.Session()
	commandstest.Say(t, monitor, "MONITOR\r\n")
	feed := commandstest.Converse
	if hurry {
		feed = commandstest.Feed
	}
	var replies string
	c.replies, c.left, c.status = feed(t, s, in[:cut])
	if c.left += in[cut:]; c.status == peer.NeedInput || c.status == peer.Waiting {
		replies, c.left, c.status = commandstest.Converse(t, s, c.left)
		c.replies += replies
	}
	c.monitored, _, _ = commandstest.Converse(t, monitor, "")
	operator := r.Session()
	c.stats = ownINFO.ReplaceAllString(commandstest.Say(t, operator, "INFO commandstats\r\nINFO errorstats\r\nSLOWLOG LEN\r\n"), "")
	st := r.Stats()
	c.store = store.Stats{Keys: st.Keys, Allowed: st.Allowed, Limited: st.Limited, Requested: st.Requested, Granted: st.Granted}
	_, c.logged, _ = strings.Cut(r.Log.String(), "level=") // without the time
	return c
}

// laterCase is an input whose batches are answered later.
type laterCase struct{ name, in string }

func laterCases() []laterCase {
	const throttle, refused = "CL.THROTTLE k 299 1 60\r\n", "CL.THROTTLE k 9 x 1\r\n"
	eval := resptest.Encode("EVAL", native, "1", "k", "299", "1", "60")
	many := strings.Repeat(throttle, 2*observe.MaxBatch+3)
	return []laterCase{
		{"alone", throttle},
		{"PING around it", "PING\r\n" + throttle + "PING\r\n" + throttle + throttle + "PING\r\n"},
		{"errors of each kind", throttle + refused + throttle + "NOSUCH x\r\n" + throttle + "GET\r\n" + refused + throttle +
			"CLIENT NOSUCH\r\n" + throttle + "CL.THROTTLE\r\n" + "PSUBSCRIBE x\r\n"},
		{"keys that differ", throttle + "CL.THROTTLE other 1 1 60\r\nSELECT 1\r\n" + throttle + "SELECT 99\r\n" + throttle + "TTL k\r\nDEL k\r\n" + throttle},
		{"a transaction", throttle + "MULTI\r\n" + throttle + refused + "PING\r\nEXEC\r\n" + throttle},
		{"a transaction that waits", throttle + "MULTI\r\n" + throttle + "DBSIZE\r\nEXEC\r\n" + throttle + "DISCARD\r\n"},
		{"a transaction that is refused", "MULTI\r\n" + throttle + "NOSUCH\r\nEXEC\r\n" + throttle + "MULTI\r\n" + throttle + "EXEC x\r\n" + throttle},
		{"a watch", "WATCH k\r\n" + throttle + "MULTI\r\n" + throttle + "EXEC\r\nWATCH k\r\nMULTI\r\n" + throttle + "EXEC\r\n"},
		{"a native script", throttle + eval + throttle + eval + eval + "PING\r\n" + "HELLO 3\r\n" + eval + throttle},
		{"a script", throttle + resptest.Encode("EVAL", "return redis.call('cl.throttle', KEYS[1], 9, 1, 1)", "1", "k") + throttle},
		{"a script that fails", throttle + resptest.Encode("EVAL", "return redis.call('cl.throttle', KEYS[1], 9, 'x', 1)", "1", "k") + throttle},
		{"replies are off", throttle + "CLIENT REPLY OFF\r\n" + throttle + eval + refused + "PING\r\n" + throttle + "CLIENT REPLY ON\r\n" + throttle},
		{"replies are skipped", throttle + "CLIENT REPLY SKIP\r\n" + throttle + throttle + "CLIENT REPLY SKIP\r\n" + eval + throttle +
			"CLIENT REPLY SKIP\r\n" + refused + throttle + "CLIENT REPLY SKIP\r\n\r\n" + throttle + "CLIENT REPLY SKIP\r\nNOSUCH\r\n" + throttle},
		{"several commands", throttle + "CL.FIXEDWINDOW f 2 60\r\n" + throttle + "CL.BUCKET TAKE f 5\r\nCL.BUCKET TAKE b 5 0\r\nRL.THROTTLE k 299 1 60\r\nPING\r\n" +
			"CL.REFUND k 299 1 60\r\nCL.FIXEDWINDOW f 2 60\r\nCL.FIXEDWINDOW f 2 x\r\nCL.FIXEDWINDOW f 2 60\r\n" + eval + throttle},
		{"a named limit", "CL.LIMIT SET l 2 1 60\r\n" + strings.Repeat("CL.CHECK l k\r\n", 4) + throttle +
			"CL.CHECK l longer\r\nCL.CHECK l k\r\nCL.CHECK nosuch k\r\nCL.CHECK l another\r\n" +
			resptest.Encode("EVAL", "return redis.call('cl.check', 'l', 'k')", "1", "l:k") + "CL.LIMIT GET l\r\n"},
		{"nothing between", throttle + "\r\n*0\r\n" + throttle + "*-1\r\n" + throttle},
		{"MONITOR", throttle + "MONITOR\r\n" + throttle + "PING\r\nRESET\r\n" + throttle},
		{"QUIT", throttle + throttle + "QUIT\r\n" + throttle},
		{"RESET", throttle + "CLIENT REPLY OFF\r\n" + throttle + "RESET\r\n" + throttle},
		{"a client that ends itself", throttle + "CLIENT KILL ID 2 SKIPME no\r\n" + throttle},
		{"a protocol error", throttle + throttle + "*x\r\n" + throttle},
		{"a protocol error within", throttle + "*2\r\n$4\r\nPING\r\n!\r\n"},
		{"a protocol error, muted", throttle + "CLIENT REPLY OFF\r\n" + throttle + "*x\r\n"},
		{"a web page", throttle + "POST / HTTP/1.1\r\n" + throttle},
		{"a web page's header", throttle + "GET / HTTP/1.1\r\nHost: localhost\r\n" + throttle},
		{"a full batch", strings.Repeat(throttle, observe.MaxBatch) + "PING\r\n"},
		{"many batches", many + "PING\r\n" + many + refused + many + eval + many},
	}
}

// TestLater: replies, executions, counts and MONITOR lines do not depend on when the store answers, nor on
// where the input is cut.
func TestLater(t *testing.T) {
	memory := func(*testing.T) store.Store { return shard.New() }
	later := func(*testing.T) store.Store { return session.NewFullLaterStore() }
	cutAnywhere(t, laterCases(), memory, later, 400)
}

// cutAnywhere expects equal conversations of two stores, wherever the input is cut.
func cutAnywhere(t *testing.T, cases []laterCase, whole, cut func(t *testing.T) store.Store, cuts int) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			want := converse(t, whole(t), tt.in, 0, false)
			step := max(1, len(tt.in)/cuts)
			if racetest.OmitsLong() {
				step = 7*step + 1
			}
			for at := 0; at <= len(tt.in); at += step {
				hurry := at/step%2 == 0 // there are enough cuts for both in every command
				if got := converse(t, cut(t), tt.in, at, hurry); !reflect.DeepEqual(got, want) {
					t.Fatalf("cut at %d, in a hurry %v: got\n%+v\nwant\n%+v", at, hurry, got, want)
				}
			}
		})
	}
}

// brokenStore cannot decide on keys whose names begin with "bad".
type brokenStore struct{ store.Store }

func (b brokenStore) Throttle(nowNs int64, batch []store.Request) store.Pending {
	for i := range batch {
		if strings.HasPrefix(string(batch[i].Key.Name), "bad") {
			batch[i].Err = errors.New("it is\r\n+broken")
		} else if b.Store.Throttle(nowNs, batch[i:i+1]) != nil {
			panic("it answers later")
		}
	}
	return nil
}

func (b brokenStore) Entry(int64, store.Key) (store.Entry, bool, error) {
	return store.Entry{}, false, errors.New("no\nTAT")
}

func (b brokenStore) State(int64, store.Key) (limiter.State, bool, error) {
	return limiter.State{}, false, errors.New("no\nTAT")
}

func (b brokenStore) Delete(int64, []store.Key) (int, error) { return 0, errors.New("no\nDEL") }

// TestStoreFails: each request that fails has its own one-line error in its place, and is counted.
func TestStoreFails(t *testing.T) {
	const throttle, bad = "CL.THROTTLE k 9 1 60\r\n", "CL.THROTTLE bad 9 1 60\r\n"
	const failed = "-ERR the store failed: it is\\r\\n+broken\r\n"
	call := func(n int64) string { return resptest.Ints(0, 10, 10-n, -1, 60*n) }
	eval := func(key string) string { return resptest.Encode("EVAL", native, "1", key, "9", "1", "60") }
	for _, tt := range []struct{ name, in, want, stats string }{ // calls of a command and those that failed
		{"alone", bad, failed, "cl.throttle:1/1"},
		{"within a batch", throttle + bad + throttle + bad + bad + throttle, call(1) + failed + call(2) + failed + failed + call(3),
			"cl.throttle:6/3"},
		{"a full batch", strings.Repeat(bad, observe.MaxBatch+1) + throttle, strings.Repeat(failed, observe.MaxBatch+1) + call(1),
			"cl.throttle:130/129"},
		{"replies are skipped", "CLIENT REPLY SKIP\r\n" + bad + bad + throttle, failed + call(1),
			"cl.throttle:3/2"},
		{"a native script", eval("k") + eval("bad") + eval("k"), call(1) + failed + call(2),
			"cl.throttle:3/1"},
		{"a native script itself", eval("bad") + throttle, failed + call(1),
			"eval:1/1"},
		{"other commands", "TTL k\r\nDEL k\r\n", "-ERR the store failed: no\\nTAT\r\n-ERR the store failed: no\\nDEL\r\n",
			"del:1/1"},
	} {
		for _, on := range []store.Store{brokenStore{shard.New()}, storetest.Later(brokenStore{shard.New()})} {
			r := commandstest.New(withStore(on))
			s := r.Session()
			commandstest.Expect(t, s, tt.in, tt.want)
			var stats strings.Builder
			for _, c := range r.Engine.Records.Commands() {
				_, _ = fmt.Fprintf(&stats, "%s:%d/%d\n", c.Command.FullName(), c.Calls, c.Failed)
			}
			if !strings.Contains(stats.String(), tt.stats) {
				t.Errorf("%s, %T: counted %s, want %s", tt.name, on, stats.String(), tt.stats)
			}
			scripts := r.Engine.Records.Stats().Scripts
			good, broken := strings.Count(tt.in, eval("k")), strings.Count(tt.in, eval("bad"))
			if scripts["completed"] != uint64(good) || scripts["failed"] != uint64(broken) {
				t.Errorf("%s, %T: scripts %v", tt.name, on, scripts)
			}
		}
	}
}
