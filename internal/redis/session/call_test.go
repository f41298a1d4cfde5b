package session

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// TestNow: a handler, an EXEC and a script see one time each; background work and later replies see their
// own.
func TestNow(t *testing.T) {
	var nowNs atomic.Int64
	r := newHarness(t, func(c *execute.Config) { c.Now = func() int64 { return t0 + nowNs.Add(sec) } })
	seen := map[string][]int64{}
	see := func(at string, c execute.Call) { seen[at] = append(seen[at], c.Now(), c.Now()) }
	r.handle("ping", execute.Plain(func(c execute.Call, _ [][]byte) error {
		see("called", c)
		seen["wall"] = append(seen["wall"], c.WallTime().UnixNano())
		return nil
	}))
	r.handle("dbsize", execute.Whole(func(c execute.Call, _ store.Walker, _ [][]byte) error {
		see("called", c)
		return c.Background(func(_ context.Context, nowNs int64) { seen["work"] = append(seen["work"], nowNs) },
			func(c execute.Call) error { see("replies", c); return nil })
	}))
	s := r.session()
	for _, tt := range []struct {
		in    string
		still bool // the clock stands still
	}{
		{"PING\r\n", false},
		{"DBSIZE\r\n", false},
		{"MULTI\r\nPING\r\nDBSIZE\r\nPING\r\nEXEC\r\n", true},
		{"EVAL \"redis.call('ping') redis.call('ping')\" 0\r\n", true},
	} {
		clear(seen)
		s.say(t, tt.in)
		var all []int64
		for i := 0; i < len(seen["called"]); i += 2 {
			if seen["called"][i] != seen["called"][i+1] {
				t.Errorf("%q: a handler sees %v", tt.in, seen["called"])
			}
		}
		all = append(append(append(all, seen["called"]...), seen["work"]...), seen["replies"]...)
		slices.Sort(all)
		if different := len(slices.Compact(all)); (different == 1) != (tt.still || len(seen["work"]) == 0) {
			t.Errorf("%q: saw %v", tt.in, seen)
		}
		for _, wall := range seen["wall"] {
			if still := wall != t0; still != tt.still || still && wall != seen["called"][0] {
				t.Errorf("%q: the wall's clock is %d, and Now %v", tt.in, wall, seen["called"])
			}
		}
	}
}

// TestResetLeavesNothing of a client but its library.
func TestResetLeavesNothing(t *testing.T) {
	r := newHarness(t, withConnection)
	s := r.session()
	s.say(t, "WATCH k\r\nSELECT 3\r\nMULTI\r\nPING\r\n")
	s.x.Client.Change(func(i *clients.Info) { i.Name, i.LibName, i.LibVersion, i.NoTouch = "a", "lib", "1", true })
	s.say(t, "RESET\r\n")
	if got, want := s.x.Client.Info(), (clients.Info{LibName: "lib", LibVersion: "1", User: "default", Queued: -1}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if s.x.DB != 0 || s.multi != nil || s.watched != nil {
		t.Error("the session has not forgotten")
	}
}

// TestLongRepliesOfExec: a command is executed while the earlier replies are within the bound.
func TestLongRepliesOfExec(t *testing.T) {
	for _, tt := range []struct {
		bound int
		want  string
	}{
		{2 * len(pong), pong + pong + pong},
		{2*len(pong) - 1, pong + pong + "-ERR the replies of the transaction are longer than 13 bytes, the limit of --max-output-bytes; this command was not executed\r\n"},
	} {
		s := newHarness(t, func(c *execute.Config) { c.MaxReplyBytes = tt.bound }).session()
		s.expect(t, "MULTI\r\nPING\r\nPING\r\nPING\r\nEXEC\r\n", "+OK\r\n"+strings.Repeat("+QUEUED\r\n", 3)+"*3\r\n"+tt.want)
	}
}

// handle replaces a command's handler.
func (r *harness) handle(name string, h execute.Handler) {
	r.Handlers[r.Config.Catalog.Lookup([]byte(name)).ID] = h
}

// TestManyLinesOfMonitor are sent in parts without a wake-up between, and an unfinished command still waits.
func TestManyLinesOfMonitor(t *testing.T) {
	const lines = 3000
	for _, tt := range []struct {
		in    string
		first peer.Status // after the first part
		all   bool        // nothing is left
	}{{"", peer.More, false}, {"TEST.LATER\r\n", peer.Waiting, false}, {"RESET\r\n", peer.More, true}} {
		r := newHarness(t, withConnection, withLater)
		monitor, other := r.session(), r.session()
		monitor.say(t, "MONITOR\r\n")
		other.say(t, strings.Repeat("PING\r\n", lines))
		if !monitor.Listens() || other.Listens() {
			t.Error("a session does not say whether it is in MONITOR")
		}
		buf := []byte(tt.in)
		n, out, status := monitor.Feed(buf, nil)
		buf = buf[n:]
		sent := strings.Count(string(out), `"PING"`)
		if status != tt.first {
			t.Errorf("%q: status %d, want %d", tt.in, status, tt.first)
		}
		if (sent == lines) != tt.all || !tt.all && (len(out) < feedBytes || len(out) > feedBytes+1000) {
			t.Errorf("%q: %d lines in %d bytes", tt.in, sent, len(out))
		}
		if monitor.HungUp(peer.HalfClosed); status == peer.Waiting {
			status = peer.More
		}
		for status == peer.More {
			_, out, status = monitor.Feed(buf, nil)
			sent += strings.Count(string(out), `"PING"`)
		}
		if sent != lines || status != peer.NeedInput {
			t.Errorf("%q: %d lines, then status %d", tt.in, sent, status)
		}
	}
}

// TestSlowCallsEndWhenTheyAreLogged: an entry's time is the end of its call.
func TestSlowCallsEndWhenTheyAreLogged(t *testing.T) {
	var nowNs atomic.Int64
	r := newHarness(t, func(c *execute.Config) { c.Now = func() int64 { return t0 + nowNs.Add(sec) } })
	r.Config.Records.Slowness.SetSlowlog(1)
	r.Config.Records.Slowlog.SetMaxLen(9)
	s := r.session()
	for _, in := range []string{"PING\r\n", "CL.THROTTLE k 1 1 1\r\n", "DBSIZE\r\n"} {
		s.say(t, in)
		entry := r.Config.Records.Slowlog.Latest(1)[0]
		if got, want := entry.UnixSec, (t0+nowNs.Load())/sec; got != want || entry.DurationUs < 1e6 {
			t.Errorf("%q: at %d, want %d; it took %d us", in, got, want, entry.DurationUs)
		}
	}
}

// TestNativeScriptOfALongKey: native scripts check the length of keys.
func TestNativeScriptOfALongKey(t *testing.T) {
	r := newHarness(t, func(c *execute.Config) { c.Store = storetest.Bare(shard.New()) })
	for bytes, want := range map[int]string{
		r.Config.MaxKeyBytes:     resptest.Ints(0, 5, 4, -1, 10),
		r.Config.MaxKeyBytes + 1: "-ERR key is longer than 4096 bytes, the limit of --max-key-bytes\r\n",
	} {
		in := resptest.Encode("EVAL", "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])", "1", strings.Repeat("k", bytes), "4", "1", "10")
		r.session().expect(t, in, want)
	}
}

// TestNativeScriptOfANamedLimit: its whole key must be declared; the interpreter reports the error.
func TestNativeScriptOfANamedLimit(t *testing.T) {
	r := newHarness(t, func(c *execute.Config) { c.Store = storetest.Bare(shard.New()) })
	r.define(t, "login")
	for key, want := range map[string]string{
		"login:bob": resptest.Ints(0, 5, 4, -1, 12),
		"bob":       "-" + reply.Text(reply.ErrNoTransactions) + "\r\n",
		"login:":    "-" + reply.Text(reply.ErrNoTransactions) + "\r\n",
	} {
		r.session().expect(t, resptest.Encode("EVAL", "return redis.call('cl.check', ARGV[1], ARGV[2])", "1", key, "login", "bob"), want)
	}
}

// TestFeedStops when its replies are long enough for one Feed.
func TestFeedStops(t *testing.T) {
	r := newHarness(t)
	for _, tt := range []struct {
		bytes int // of a reply
		want  int // replies by one Feed
	}{{feedBytes - 1, 2}, {feedBytes, 1}, {feedBytes/2 - 1, 3}, {feedBytes / 2, 2}} {
		r.handle("ping", execute.Plain(func(c execute.Call, _ [][]byte) error {
			c.Reply().Status(strings.Repeat("x", tt.bytes-len("+\r\n")))
			return nil
		}))
		before := []byte("not counted")
		_, out, status := r.session().Feed([]byte(strings.Repeat("PING\r\n", 9)), before)
		if got := (len(out) - len(before)) / tt.bytes; got != tt.want || status != peer.More {
			t.Errorf("replies of %d bytes: %d by one Feed, want %d; status %d", tt.bytes, got, tt.want, status)
		}
	}
}

// TestLastCommand is the last one that the client sent itself, executed or not; the number of queued commands
// is shown during a transaction.
func TestLastCommand(t *testing.T) {
	s := newHarness(t).session()
	for _, tt := range []struct {
		in, want string
		queued   int
	}{
		{"PING\r\n", "ping", -1},
		{"GET\r\n", "get", -1},
		{"NOSUCH\r\n", "NULL", -1},
		{"CL.THROTTLE k 1 1 1\r\n", "cl.throttle", -1},
		{"INCRBY k x\r\n", "incrby", -1},
		{"CL.THROTTLE k x 1 1\r\n", "cl.throttle", -1},
		{"INCREX k BYFLOAT x\r\n", "increx", -1},
		{"MULTI\r\nINCRBY k x\r\nEXEC\r\n", "exec", -1},
		{"EVAL \"redis.pcall('incrby', 'k', 'x') return 1\" 0\r\n", "eval", -1},
		{"EVAL \"redis.pcall('get') redis.call('ping') return 1\" 0\r\n", "eval", -1},
		{"MULTI\r\nPING\r\nGET k\r\n", "get", 2},
		{"DISCARD\r\n", "discard", -1},
		{"MULTI\r\nPING\r\nEXEC\r\n", "exec", -1},
		{"MULTI\r\nGET\r\nEXEC\r\n", "exec", -1},
	} {
		s.say(t, tt.in)
		if got := s.x.Client.Line(t0); !strings.Contains(got, " cmd="+tt.want+" ") || int(s.x.Client.Info().Queued) != tt.queued {
			t.Errorf("%q: %s", tt.in, got)
		}
	}
}
