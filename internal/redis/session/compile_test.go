package session

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

const nativeSource = "return redis.call('cl.throttle', KEYS[1], 4, 1, 10)"

// TestCompilesInATurn: compilation waits for a slot instead of the driver, and replies stay in order. Known
// native scripts run at once.
func TestCompilesInATurn(t *testing.T) {
	first := resptest.Ints(0, 5, 4, -1, 10)
	load := "$40\r\n" + "e0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n"
	for _, tt := range []struct {
		name, in string
		waits    bool
		want     string
	}{
		{"EVAL", resptest.Encode("EVAL", nativeSource, "1", "k"), true, first},
		{"EVAL again", resptest.Encode("EVAL", nativeSource, "1", "k"), false, resptest.Ints(0, 5, 3, -1, 20)},
		{"EVAL with a wrong number", resptest.Encode("EVAL", "return 2", "x"), false, "-ERR value is not an integer or out of range\r\n"},
		{"EVAL of what is no Lua", resptest.Encode("EVAL", "return (", "0"), true, "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'\r\n"},
		{"EVAL of what compiles slowly", resptest.Encode("EVAL", distinctGlobals(5000), "0"), true,
			"-ERR Error compiling script (new function): user_script:1: script takes more than 1000000 steps to compile, most of them for different constants; make it shorter\r\n"},
		{"EVAL_RO of what may write", resptest.Encode("EVAL_RO", "#!lua\nreturn 1", "0"), true, "-ERR Can not execute a script with write flag using *_ro command.\r\n"},
		{"SCRIPT LOAD", "SCRIPT LOAD \"return 1\"\r\n", true, load},
		{"SCRIPT LOAD again", "SCRIPT LOAD \"return 1\"\r\n", false, load},
		{"SCRIPT LOAD of what EVAL has compiled", resptest.Encode("SCRIPT", "LOAD", nativeSource), true, "$40\r\n"},
		{"SCRIPT LOAD of what is no Lua", "SCRIPT LOAD \"return (\"\r\n", true, "-ERR Error compiling script (new function): user_script:1: "},
		{"in MULTI", "MULTI\r\nSCRIPT LOAD \"return 3\"\r\nEXEC\r\n", true, "*1\r\n$40\r\n"},
	} {
		r := newHarness(t, withConnection)
		s := r.session()
		if strings.HasSuffix(tt.name, "again") {
			s.say(t, tt.in)
		}
		if tt.name == "SCRIPT LOAD of what EVAL has compiled" {
			s.say(t, resptest.Encode("EVAL", nativeSource, "1", "k"))
		}
		r.Scripts.Take(context.Background(), background.Who{})
		r.Background.Take(context.Background(), background.Who{})
		replies, left, status := s.feed(tt.in + "PING\r\n")
		if waits := status == peer.Waiting; waits != tt.waits {
			t.Errorf("%s: waits is %t, got %q", tt.name, waits, replies)
		}
		r.Scripts.Give(background.Who{})
		r.Background.Give(background.Who{})
		if status == peer.Waiting {
			<-s.woken
			more, _, _ := s.converse(left)
			replies += more
		}
		if strings.HasPrefix(tt.in, "MULTI") {
			replies = strings.TrimPrefix(replies, "+OK\r\n+QUEUED\r\n")
		}
		if !strings.HasPrefix(replies, tt.want) || !strings.HasSuffix(replies, pong) {
			t.Errorf("%s: got %q", tt.name, replies)
		}
	}
}

func distinctGlobals(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d()", i)
	}
	return b.String()
}

// beginning is a store that reports the beginning of transactions.
type beginning struct {
	*shard.Store
	tell func()
}

func (b beginning) Begin(nowNs int64, keys []store.Key) store.Transaction {
	b.tell()
	return b.Store.Begin(nowNs, keys)
}

func (b beginning) BeginAll(nowNs int64) store.Exclusive {
	b.tell()
	return b.Store.BeginAll(nowNs)
}

// TestCompilesBeforeKeysAreHeld: EXEC begins when all its scripts are compiled, and keeps them even if the
// cache does not.
func TestCompilesBeforeKeysAreHeld(t *testing.T) {
	for _, also := range []string{"", "DBSIZE\r\n"} {
		b := &beginning{Store: shard.New()}
		r := newHarness(t, func(c *execute.Config) { c.Store = b })
		scripts := r.Config.Scripts
		began := 0
		b.tell = func() {
			began++
			for i := range 3 {
				if scripts.Cached(fmt.Appendf(nil, "return %d", i)) == nil && began == 1 {
					t.Errorf("%q: keys are held and script %d is not compiled", also, i)
				}
			}
			scripts.Flush()
		}
		in := "MULTI\r\n" + also
		for i := range 3 {
			in += resptest.Encode("EVAL", fmt.Sprintf("return %d", i), "1", "k")
		}
		in += resptest.Encode("EVAL_RO", "return (", "0") + resptest.Encode("EVAL", distinctGlobals(5000), "0") + "EXEC\r\n"
		got := r.session().say(t, in)
		if began == 0 || !strings.Contains(got, ":0\r\n:1\r\n:2\r\n-ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'\r\n"+
			"-ERR Error compiling script (new function): user_script:1: script takes more than 1000000 steps") {
			t.Errorf("%q: began %d times, got %q", also, began, got)
		}
		if scripts.Cached([]byte("return 1")) != nil {
			t.Errorf("%q: compiled while the keys were held", also)
		}
	}
}

// TestScriptsWithoutTransactions: a native script works on any store; others are refused.
func TestScriptsWithoutTransactions(t *testing.T) {
	r := newHarness(t, func(c *execute.Config) { c.Store = storetest.Bare(shard.New()) })
	s := r.session()
	for range 2 {
		s.expect(t, resptest.Encode("EVAL", "return 1", "0"), "-ERR the store of this server has no transactions; send the commands one by one\r\n")
	}
	later, with := withLaterStore()
	r = newHarness(t, with)
	s = r.session()
	later.Hold()
	replies, left, status := s.feed(resptest.Encode("EVAL", nativeSource, "1", "k") + "PING\r\n")
	if status != peer.Waiting || replies != "" {
		t.Fatalf("status %d, got %q", status, replies)
	}
	<-s.woken
	// compiled; now with the store
	if replies, left, status = s.feed(left); status != peer.Waiting || replies != "" {
		t.Fatalf("status %d, got %q", status, replies)
	}
	later.Release()
	<-s.woken
	s.expect(t, left, resptest.Ints(0, 5, 4, -1, 10)+pong)
	if got := r.Config.Records.Stats().Calls["eval"]; got != 1 {
		t.Errorf("counted %+v", got)
	}
}
