package session_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/execute"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/gate"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
)

// budgetOf returns a call about a hold by value. Its time is of milliseconds.
func budgetOf(t testing.TB, call []string) *decide.Budget {
	t.Helper()
	number := func(word string) int64 {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	b, rest := &decide.Budget{}, call[1:]
	next := func() string {
		word := rest[0]
		rest = rest[1:]
		return word
	}
	switch call[0] {
	case "CL.MCOMMIT":
		b.Verb, b.ID = decide.SettleHold, []byte(next())
	case "CL.MEXTEND":
		b.Verb, b.ID = decide.ExtendHold, []byte(next())
		b.TTLMs = number(next())
	}
	for range number(next()) {
		q := decide.Request{Limit: []byte(next()), Key: []byte(next())}
		if b.Verb != decide.ExtendHold {
			q.Quantity = number(next())
		}
		b.All = append(b.All, q)
	}
	for len(rest) > 0 {
		switch next() {
		case "TTL":
			b.TTLMs = number(next())
		case "CHARGE":
			b.Charge = true
		case "ID":
			b.ID = []byte(next())
		}
	}
	return b
}

// feedBudgets sends calls as RESP, one after the other.
func (d door) feedBudgets(t *testing.T, calls [][]string) (replies []string) {
	for _, call := range calls {
		in, out := resptest.Append(nil, call...), []byte(nil)
		for {
			n, appended, status := d.s.Feed(in, out)
			if in, out = in[n:], appended; !d.goesOn(status, len(in)) {
				break
			}
		}
		r := resptest.ParseAll(t, string(out))[0]
		text := fmt.Sprint(r.Number)
		switch r.Kind {
		case '-':
			text = "-" + r.Text
		case '*':
			last := len(r.Elements) - 1
			text = fmt.Sprint(r.Elements[0].Number)
			for _, e := range r.Elements[1:last] {
				var numbers []int64
				for _, n := range e.Elements {
					numbers = append(numbers, n.Number)
				}
				text += fmt.Sprint(" ", numbers)
			}
			if r.Elements[0].Number == 0 {
				text += " " + r.Elements[last].Text
			}
		}
		replies = append(replies, text)
	}
	return replies
}

// askBudgets asks for calls by value.
func (d door) askBudgets(t *testing.T, calls [][]string) (replies []string) {
	for _, call := range calls {
		b := budgetOf(t, call)
		for d.goesOn(d.s.Ask(b), 0) {
			continue
		}
		text := fmt.Sprint(uint8(b.State))
		switch {
		case b.Err != nil:
			text = "-" + b.Err.Error()
		case b.Verb == decide.Hold:
			text = fmt.Sprint(execute.LimitedInt(b.Limited))
			for i := range b.All {
				r := &b.All[i].Result
				text += fmt.Sprint(" ", []int64{execute.LimitedInt(r.Limited), r.Limit, r.Remaining, seconds(r.RetryAfter), seconds(r.ResetAfter)})
			}
			if !b.Limited {
				text += " " + string(b.ID)
			}
		}
		replies = append(replies, text)
	}
	return replies
}

const (
	budgetLimits = "CL.LIMIT SET l FIXEDWINDOW 100 3600\r\nCL.LIMIT SET f FUNNEL 99 1 10\r\nCL.LIMIT SET s FIXEDWINDOW 10 3600 SHADOW\r\nCL.LIMIT SET x SLIDINGWINDOW 10 3600\r\n"

	holds   = "CL.MRESERVE 2 l k 30 f k 40 TTL 10000 ID a"
	settles = "CL.MCOMMIT a 2 f k 10 l k 20"
	extends = "CL.MEXTEND a 20000 2 f k l k"
	all     = holds + "\n" + extends + "\n" + settles
)

func budgetRules() []rule {
	disk := &slowDisk{}
	kept := func(timeout time.Duration) func(t *testing.T, c *commands.Config) {
		return func(t *testing.T, c *commands.Config) { disk.keep(t, c, timeout, true) }
	}
	remote := func(change func(on *storetest.RemoteStore)) func(*testing.T, *commands.Config) {
		return func(_ *testing.T, c *commands.Config) {
			on := storetest.NewRemote(shard.New())
			change(on)
			c.Store, c.StoreTimeout = on, patience.Forever
		}
	}
	defined := func(t *testing.T, r *commandstest.Harness) { // as over a store no command defines limits
		for name, rule := range map[string]namedlimit.Rule{
			"l": {Algorithm: namedlimit.FixedWindow, Capacity: 100, PeriodSec: 3600}, "f": {Capacity: 100, Count: 1, PeriodSec: 10},
		} {
			if err := r.Config.NamedLimits.Set(namedlimit.Definition{Name: name, Near: 0.8, Policy: namedlimit.Policy{Rules: []namedlimit.Rule{rule}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	long := strings.Repeat("k", commandstest.MaxKeyBytes)
	three := func(text string) []string { return []string{text, text, text} }
	return []rule{
		{name: "holds", calls: all + "\n" + settles + "\n" + extends, want: []string{"0 [0 100 70 -1 3600] [0 100 60 -1 400] a", "1", "1", "0", "0"}},
		{name: "denials", calls: "CL.MRESERVE 2 l k 30 f k 101 TTL 10000 ID a\nCL.MRESERVE 1 l k 101 TTL 10000 ID a", want: []string{"1 [0 100 100 -1 0] [1 100 100 -1 0]", "1 [1 100 100 -1 0]"}},
		{name: "again", calls: holds + "\n" + holds + "\nCL.MRESERVE 2 f k 40 l k 30 TTL 10000 ID a\nCL.MRESERVE 1 l k 30 TTL 10000 ID a",
			want: []string{"0 [0 100 70", "0 [0 100 70", "0 [0 100 60", "-ERR the id is another hold's"}},
		{name: "a charge and a shadow", calls: "CL.MRESERVE 1 s k 11 TTL 10000 CHARGE ID a\nCL.MCOMMIT a 1 s k 12", want: []string{"0 [0 10 0 -1 3600] a", "1"}},
		{name: "limits that are none", calls: "CL.MRESERVE 2 l k 1 nosuch k 1 TTL 10 ID a\nCL.MCOMMIT a 1 nosuch k 1\nCL.MEXTEND a 10 1 nosuch k", want: three("-ERR no such limit 'nosuch'")},
		{name: "an exact window", calls: "CL.MRESERVE 1 x k 1 TTL 10 ID a", want: []string{"-ERR the limit 'x' has an exact sliding window"}},
		{name: "wrong numbers", calls: "CL.MRESERVE 1 l k 0 TTL 10 ID a\nCL.MCOMMIT a 1 l k -1", want: []string{"-ERR units must be at least 1", "-ERR units must be at least 0"}},
		{name: "wrong ids", calls: strings.ReplaceAll(all, " a", " "+strings.Repeat("i", 33)), want: three("-ERR id must have 1 to 32 bytes")},
		{name: "other pairs", calls: holds + "\nCL.MCOMMIT a 1 l k 1\nCL.MEXTEND a 10 1 f k", want: []string{"0", "-ERR the pairs are not", "-ERR the pairs are not"}},
		{name: "a pair twice", calls: "CL.MRESERVE 2 l k 1 l k 2 TTL 10 ID a\nCL.MCOMMIT a 2 l k 1 l k 2\nCL.MEXTEND a 10 2 l k l k", want: three("-ERR the pair of 'l' and 'k' is given twice")},
		{name: "a long key", calls: "CL.MRESERVE 2 l k 1 l " + long + " 1 TTL 10 ID a", want: []string{"-ERR key is longer than"}},
		{name: "another kind of key", before: "SET f:k x\r\n", calls: all, want: three("-WRONGTYPE")},
		{name: "no user", change: func(_ *testing.T, c *commands.Config) { c.Users.SetDefaultPassword("pw") }, calls: "CL.MCOMMIT a 1 l k 1\nCL.MEXTEND a 10 1 l k\nCL.MRESERVE 1 l k 1 TTL 10", want: three("-NOAUTH")},
		{name: "no right to the commands", user: "~* +cl.check", calls: all, want: three("-NOPERM this user has no permissions to run the 'cl.m")},
		{name: "no right to a key", user: "~l:* +@all", calls: all, want: three("-NOPERM this user has no permissions to access")},
		{name: "no right to write a key", user: "%R~* +@all", calls: all, want: three("-NOPERM this user has no permissions to access")},
		{name: "no right to give units back", user: "~l:* ~f:* +@all -cl.reset -@refill", calls: all, want: []string{"0", "1", "1"}},
		{name: "new keys", then: func(_ *testing.T, r *commandstest.Harness) { r.Engine.NewKeys.Limit(1) }, calls: holds, want: []string{"-ERR more than 1 new keys per second"}},
		{name: "a replica", then: func(_ *testing.T, r *commandstest.Harness) {
			on := r.Config.Store.(*shard.Store)
			on.Track(func() {})
			on.Freeze(0, gate.Refusal("READONLY You can't write against a read only replica."))
		}, calls: holds, want: []string{"-READONLY"}},
		{name: "no memory", change: func(_ *testing.T, c *commands.Config) { c.Store.(*shard.Store).SetMaxBytes(1, store.NoEviction) }, calls: holds, want: []string{"-OOM"}},
		{name: "a disk", still: true, change: kept(0), then: func(*testing.T, *commandstest.Harness) { disk.hangs.Store(true) }, waited: func(*commands.Config) { disk.hangs.Store(false) },
			calls: all, want: []string{"0 [0 100 70", "1", "1"}},
		{name: "a disk that is late", still: true, change: kept(time.Millisecond), then: func(*testing.T, *commandstest.Harness) { disk.hangs.Store(true) }, calls: holds, want: []string{"-MISCONF the disk"}},
		{name: "a remote store", still: true, then: defined, change: remote(func(*storetest.RemoteStore) {}), waited: func(*commands.Config) {}, calls: all, want: []string{"0 [0 100 70", "1", "1"}},
		{name: "a remote store with conflicts", still: true, then: defined, change: remote(func(on *storetest.RemoteStore) { on.Conflict(3) }), waited: func(*commands.Config) {}, calls: all, want: []string{"0 [0 100 70", "1", "1"}},
		{name: "a remote store that is down", still: true, then: defined, change: remote(func(on *storetest.RemoteStore) { on.Fail(store.Failure{Line: storetest.LineDown}) }),
			waited: func(*commands.Config) {}, calls: all, want: three("-STOREDOWN")},
		{name: "a cluster", still: true, then: defined, change: remote(func(on *storetest.RemoteStore) { on.Cluster() }), waited: func(*commands.Config) {},
			calls: "CL.MRESERVE 2 l a 1 l b 1 TTL 10 ID a\nCL.MCOMMIT a 2 l a 1 l b 1\nCL.MEXTEND a 10 2 l a l b", want: three("-CROSSSLOT")},
	}
}

// TestBudgetsOfEveryDoor: calls about holds that are fed and asked have equal answers, counts and log lines.
func TestBudgetsOfEveryDoor(t *testing.T) {
	for _, u := range budgetRules() {
		t.Run(u.name, func(t *testing.T) {
			u.before = budgetLimits + u.before
			fed, asked := u.observe(t, door.feedBudgets), u.observe(t, door.askBudgets)
			if len(fed.replies) != len(u.want) {
				t.Fatalf("%d replies, want %d: %q", len(fed.replies), len(u.want), fed.replies)
			}
			for i, got := range fed.replies {
				if !strings.HasPrefix(got, u.want[i]) {
					t.Errorf("reply %d is %q, want %q", i, got, u.want[i])
				}
			}
			if !slices.Equal(asked.replies, fed.replies) {
				t.Errorf("asked, it is answered\n%q\nand fed\n%q", asked.replies, fed.replies)
			}
			if asked.monitor != fed.monitor {
				t.Errorf("asked, MONITOR has\n%q\nand fed\n%q", asked.monitor, fed.monitor)
			}
			if asked.told != fed.told {
				t.Errorf("asked, it is told\n%s\nand fed\n%s", asked.told, fed.told)
			}
		})
	}
}

// TestAskedHoldsGetIDs: a hold by value without an id gets one, and none where it is denied.
func TestAskedHoldsGetIDs(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	commandstest.Say(t, s, budgetLimits)
	d := door{s: s}
	seen := map[string]bool{}
	for range 100 {
		b := &decide.Budget{All: []decide.Request{{Limit: []byte("l"), Key: []byte("k"), Quantity: 1}}, TTLMs: 10}
		for d.goesOn(s.Ask(b), 0) {
			continue
		}
		if id := string(b.ID); b.Err != nil || len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" || seen[id] {
			t.Fatalf("%q, %v", id, b.Err)
		}
		seen[string(b.ID)] = true
		if n := b.All[0].Named; n == nil || len(n.Results()) != 1 || b.All[0].Policy == nil {
			t.Fatalf("%+v", b.All[0])
		}
	}
	b := &decide.Budget{All: []decide.Request{{Limit: []byte("l"), Key: []byte("k"), Quantity: 1}}, TTLMs: 10}
	for d.goesOn(s.Ask(b), 0) {
		continue
	}
	if b.Err != nil || !b.Limited || b.State != limiter.NoHold {
		t.Errorf("%+v", b)
	}
}

// TestAskedBudgetsAllocateLittle.
func TestAskedBudgetsAllocateLittle(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates")
	}
	s := commandstest.New().Session()
	commandstest.Say(t, s, "CL.LIMIT SET l FIXEDWINDOW 1000000000 86400\r\n")
	calls := [][]string{strings.Fields("CL.MRESERVE 3 l a 1 l b 1 l c 1 TTL 30000 ID mine"), strings.Fields("CL.MCOMMIT mine 3 l a 1 l b 1 l c 1")}
	n := testing.AllocsPerRun(100, func() {
		for _, call := range calls {
			s.Ask(budgetOf(t, call))
		}
	})
	if t.Logf("%g allocations", n); n > 110 { // with those of the test
		t.Errorf("%g allocations", n)
	}
}
