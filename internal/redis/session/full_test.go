package session

import (
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/resptest"
)

const oom = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"

// TestNewKeysAreRefused: only calls for new keys fail in a batch.
func TestNewKeysAreRefused(t *testing.T) {
	r := newHarness(t)
	c := r.session()
	s := r.Config.Store.(*shard.Store)
	s.SetMaxBytes(1, store.NoEviction) // the first segment is full
	if got := c.say(t, "CL.THROTTLE new 1 1 60\r\nCL.THROTTLE new 1 1 60 0\r\nCL.THROTTLE new 1 1 60 9\r\nPING\r\n"); got != oom+"*5\r\n:0\r\n:2\r\n:2\r\n:-1\r\n:0\r\n"+"*5\r\n:1\r\n:2\r\n:2\r\n:-1\r\n:0\r\n"+pong {
		t.Errorf("got %q", got)
	}
	for _, call := range []string{
		"CL.FIXEDWINDOW new 1 60", "CL.SLIDINGWINDOW new 1 60", "CL.SLIDINGWINDOW new 1 60 APPROX", "CL.TOKENBUCKET new 1 1 60", "CL.BUCKET TAKE new 1 -1",
	} {
		look := call + " 0" // before the quantity
		if name, approx := strings.CutSuffix(call, " APPROX"); approx {
			look = name + " 0 APPROX"
		} else if name, refund := strings.CutSuffix(call, " -1"); refund {
			look = name + " 0"
		}
		if got := c.say(t, call+"\r\n"+look+"\r\n"); !strings.HasPrefix(got, oom+"*5\r\n:0\r\n:1\r\n") {
			t.Errorf("%s: got %q", call, got)
		}
	}
	r = newHarness(t)
	c = r.session()
	for i := range 200 { // some of the 16 shards have space
		c.say(t, fmt.Sprintf("CL.THROTTLE taken%d 1 1 60\r\n", i))
	}
	r.Config.Store.(*shard.Store).SetMaxBytes(1, store.NoEviction)
	if got := c.say(t, "CL.THROTTLE taken0 1 1 60\r\nCL.THROTTLE taken0 1 1 60\r\n"); got !=
		"*5\r\n:0\r\n:2\r\n:0\r\n:-1\r\n:120\r\n*5\r\n:1\r\n:2\r\n:0\r\n:60\r\n:120\r\n" {
		t.Errorf("a key that is there: got %q", got)
	}
	if n := r.Config.Records.Stats().Errors["OOM"]; n != 0 {
		t.Errorf("%d errors are counted", n)
	}
}

// TestNewKeysAreRefusedInTransactions: EXEC executes the rest, and a script gets the error.
func TestNewKeysAreRefusedInTransactions(t *testing.T) {
	r := newHarness(t)
	s := r.Config.Store.(*shard.Store)
	s.SetMaxBytes(1, store.NoEviction)
	c := r.session()
	for _, tt := range []struct{ in, want string }{
		{"MULTI\r\nCL.THROTTLE new 1 1 60\r\nPING\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" + oom + pong},
		{"MULTI\r\nDBSIZE\r\nCL.THROTTLE new 1 1 60\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:0\r\n" + oom},
		{resptest.Encode("EVAL", "return redis.call('CL.THROTTLE', KEYS[1], 1, 1, 60)", "1", "new"), "-OOM "},
		{resptest.Encode("EVAL", "local r = redis.pcall('CL.THROTTLE', KEYS[1], 1, 1, 60) return r.err", "1", "new"), "$55\r\n" + oom[1:]},
	} {
		got := c.say(t, tt.in)
		if isPrefix := tt.want == "-OOM "; got != tt.want && (!isPrefix || !strings.HasPrefix(got, oom[:len(oom)-2])) {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
	}
	if n := r.Config.Records.Stats().Errors["OOM"]; n != 4 {
		t.Errorf("%d errors OOM are counted, want 4", n)
	}
	var st store.Stats
	if s.UpdateStats(&st); st.Keys != 0 || st.Refused != 4 {
		t.Errorf("%d keys, %d refused", st.Keys, st.Refused)
	}
}
