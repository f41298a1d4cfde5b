package session

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"cellserver/internal/decide/clients"
	"cellserver/internal/lua"
	"cellserver/internal/redis/execute"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// TestClientMemoryIsCounted while a session holds it, to within a KiB and a factor of two.
func TestClientMemoryIsCounted(t *testing.T) {
	long := strings.Repeat("x", 1000)
	commands := strings.Repeat(resptest.Encode("PING", long), 100)
	keys := []string{"WATCH"}
	for i := range 100 {
		keys = append(keys, long+string(rune('0'+i)))
	}
	watch := resptest.Encode(keys...)
	const least, most = 100_000, 200_000
	for _, tt := range []struct {
		name    string
		kind    clients.Holding
		in, end string
	}{
		{"MULTI and DISCARD", clients.Queue, "MULTI\r\n" + commands, "DISCARD\r\n"},
		{"MULTI and EXEC", clients.Queue, "MULTI\r\n" + commands, "EXEC\r\n"},
		{"MULTI and a refused EXEC", clients.Queue, "MULTI\r\n" + commands + "FOO\r\n", "EXEC\r\n"},
		{"WATCH and UNWATCH", clients.WatchedKeys, watch, "UNWATCH\r\n"},
		{"WATCH and EXEC", clients.WatchedKeys, watch + "MULTI\r\n", "EXEC\r\n"},
		{"WATCH in two", clients.WatchedKeys, resptest.Encode(keys[:50]...) + resptest.Encode(append(keys[:1:1], keys[50:]...)...), "UNWATCH\r\n"},
	} {
		r := newHarness(t)
		c := r.session()
		c.say(t, tt.in)
		if held, _ := c.x.Client.Memory(); held[tt.kind] < least || held[tt.kind] > most {
			t.Errorf("%s: %d bytes", tt.name, held[tt.kind])
		}
		c.say(t, tt.end)
		if held, total := c.x.Client.Memory(); held != (clients.Held{}) || r.Config.Clients.Memory() != int64(total) {
			t.Errorf("%s: afterwards %v, and %d of all", tt.name, held, r.Config.Clients.Memory())
		}
		c.say(t, tt.in)
		c.Close()
		if left := r.Config.Clients.Memory(); left != 0 {
			t.Errorf("%s: %d bytes are held by nobody", tt.name, left)
		}
	}
}

// TestWatchIsCountedBeforeItIsTaken: all keys of a WATCH in steps are counted with the first.
func TestWatchIsCountedBeforeItIsTaken(t *testing.T) {
	r := newHarness(t, func(c *execute.Config) { c.Limits.MaxArgs = 10_000 })
	c := r.session()
	keys := []string{"WATCH"}
	for i := range 3 * watchStep {
		keys = append(keys, strconv.Itoa(i))
	}
	_, left, _ := c.feed(resptest.Encode(keys...)) // decoded in the background
	<-c.woken
	_, _, status := c.feed(left)
	first, _ := c.x.Client.Memory()
	c.say(t, "")
	if all, _ := c.x.Client.Memory(); status != peer.Waiting || first[clients.WatchedKeys] != all[clients.WatchedKeys] || first[clients.WatchedKeys] < 100_000 {
		t.Errorf("status %d: %d bytes with the first step, %d with all", status, first[clients.WatchedKeys], all[clients.WatchedKeys])
	}
}

// TestCloseSendsNothing: MONITOR's unread lines are dropped.
func TestCloseSendsNothing(t *testing.T) {
	r := newHarness(t)
	c := r.session()
	c.say(t, "MONITOR\r\n")
	r.session().say(t, resptest.Encode("ECHO", strings.Repeat("x", 5000)))
	if c.Close(); c.x.W.Buf != nil || r.Config.Records.Monitors.Any() {
		t.Errorf("%d bytes, there is one in MONITOR: %t", len(c.x.W.Buf), r.Config.Records.Monitors.Any())
	}
}

// TestWaitingArgumentsAreCounted for waiting scripts, until the client is gone.
func TestWaitingArgumentsAreCounted(t *testing.T) {
	r := newHarness(t, func(c *execute.Config) {
		c.Scripts = lua.New(lua.Config{Now: func() int64 { return time.Now().UnixNano() }, TimeLimit: time.Minute, Native: c.Catalog.Batched(), Version: catalog.RedisVersion})
	})
	endless := r.session()
	endless.wait(t, resptest.Encode("EVAL", "while true do end", "0"))
	eval := resptest.Encode("EVAL", "local n = #ARGV return n", "0", strings.Repeat("x", 1<<19))
	var all []*client
	for range 3 {
		c := r.session()
		c.feed(eval[:len(eval)/2])
		c.feed(eval)
		if held, _ := c.x.Client.Memory(); held[clients.Arguments] < 1<<19 || held[clients.Arguments] > 1<<19+1<<10 {
			t.Errorf("%v are held", held)
		}
		all = append(all, c)
	}
	all[0].Close()
	all[1].HungUp(peer.Reset)
	all[1].feed("")
	if held, _ := all[1].x.Client.Memory(); held[clients.Arguments] != 0 {
		t.Errorf("%v are held for a script that was cancelled", held)
	}
	endless.HungUp(peer.Reset)
	<-all[2].woken
	if replies, _, _ := all[2].feed(""); replies != ":1\r\n" {
		t.Errorf("got %q", replies)
	}
	all[1].Close()
	all[2].Close()
	if got := r.Config.Clients.Memory(); got != clients.ClientBytes {
		t.Errorf("%d bytes are held for the client that is left", got)
	}
	<-endless.woken
	endless.feed("")
	endless.Close()
}

// TestEvictionIsLogged once, with its reason.
func TestEvictionIsLogged(t *testing.T) {
	r := newHarness(t)
	r.Config.Clients.SetMaxMemory(50_000)
	for range 3 {
		c := r.session()
		c.say(t, "MULTI\r\n"+strings.Repeat(resptest.Encode("PING", strings.Repeat("x", 1000)), 100))
		if !c.killed.Load() {
			t.Error("a client that holds twice as much as all may is there")
		}
	}
	if log := r.log.String(); strings.Count(log, "--maxmemory-clients") != 1 || !strings.Contains(log, "max_bytes=50000") || r.Config.Clients.Evicted() != 3 {
		t.Errorf("%d are evicted; the log is %s", r.Config.Clients.Evicted(), log)
	}
}
