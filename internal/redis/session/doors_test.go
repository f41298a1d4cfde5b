package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/execute"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// door is a way to ask a session.
type door struct {
	s      *commandstest.Client
	waited func() // called when the session waits; may be nil
}

// feed sends calls as RESP and returns their replies in words.
func (d door) feed(t *testing.T, calls [][]string) (replies []string) {
	var in []byte
	for _, call := range calls {
		in = resptest.Append(in, call...)
	}
	var out []byte
	for {
		n, appended, status := d.s.Feed(in, out)
		in, out = in[n:], appended
		if !d.goesOn(status, len(in)) {
			break
		}
	}
	for _, r := range resptest.ParseAll(t, string(out)) {
		if r.Kind == '-' {
			replies = append(replies, "-"+r.Text)
			continue
		}
		var numbers []int64
		for _, e := range r.Elements {
			numbers = append(numbers, e.Number)
		}
		replies = append(replies, fmt.Sprint(numbers))
	}
	return replies
}

// ask asks for calls by value and returns the decisions in words, or nil if a call has no like.
func (d door) ask(_ *testing.T, calls [][]string) (replies []string) {
	asked := &decide.Requests{}
	for _, call := range calls {
		q, ok := commandstest.Request(call...)
		if !ok {
			return nil
		}
		asked.All = append(asked.All, q)
	}
	for d.goesOn(d.s.Ask(asked), 0) {
		continue
	}
	for i, q := range asked.All {
		if q.Err != nil {
			replies = append(replies, "-"+q.Err.Error())
			continue
		}
		seconds := seconds
		if calls[i][0] == "CL.PTHROTTLE" {
			seconds = func(ms int64) int64 { return ms }
		}
		r := &q.Result
		numbers := []int64{execute.LimitedInt(r.Limited), r.Limit, r.Remaining, seconds(r.RetryAfter), seconds(r.ResetAfter)}
		if q.Spec.Flags == limiter.AtMost {
			numbers = append(numbers, q.Taken)
		}
		replies = append(replies, fmt.Sprint(numbers))
	}
	return replies
}

// seconds rounds milliseconds up, but drops one, as redis-cell drops parts of one.
func seconds(ms int64) int64 {
	if ms < 0 {
		return ms
	}
	return (ms + 998) / 1000
}

// goesOn waits where the session does, and reports whether to continue.
func (d *door) goesOn(status peer.Status, left int) bool {
	switch status {
	case peer.Waiting:
		if d.waited != nil {
			d.waited()
			d.waited = nil
		}
		<-d.s.Conn.Woken
		return true
	case peer.More:
		return true
	default:
		return left > 0 && status == peer.NeedInput
	}
}

// rule must hold for every door.
type rule struct {
	name   string
	change func(t *testing.T, c *commands.Config)
	then   func(t *testing.T, r *commandstest.Harness) // before the calls
	user   string                                      // the user's rules; "" without a login
	before string                                      // another client's earlier calls
	calls  string                                      // one a line
	waiter string                                      // a call of another client that waits until these
	waited func(c *commands.Config)                    // called when the session waits, as it must
	want   []string                                    // prefixes of the replies
	still  bool                                        // the clock stands still; others read it too
}

const (
	oneOf16 = "[0 16 15 -1 2]"
	call16  = "CL.THROTTLE k 15 30 60"
)

func rules() []rule {
	return append(rulesOfUsers(), append(rulesOfArguments(), rulesOfStores()...)...)
}

func rulesOfUsers() []rule {
	return []rule{
		{name: "no user", change: func(_ *testing.T, c *commands.Config) { c.Users.SetDefaultPassword("pw") }, calls: call16, want: []string{"-NOAUTH"}},
		{name: "no user and no command", change: func(_ *testing.T, c *commands.Config) { c.Users.SetDefaultPassword("pw") }, calls: "NOSUCH", want: []string{"-ERR unknown command"}},
		{name: "a password that was taken away", change: func(_ *testing.T, c *commands.Config) { c.Users.SetDefaultPassword("pw") },
			then: func(_ *testing.T, r *commandstest.Harness) { r.Config.Users.SetDefaultPassword("") }, calls: call16, want: []string{oneOf16}},
		{name: "no right to the command", user: "~* +cl.check", calls: call16, want: []string{"-NOPERM this user has no permissions to run"}},
		{name: "no right to a command that takes no part", user: "~* +cl.check", calls: "PING", want: []string{"-NOPERM"}},
		{name: "no right to the key", user: "~mine* +cl.throttle", calls: call16 + "\nCL.THROTTLE mine 15 30 60",
			want: []string{"-NOPERM this user has no permissions to access", oneOf16}},
		{name: "no right to give back", user: "~* +cl.throttle", calls: call16 + " -1\n" + call16,
			want: []string{"-NOPERM this user has no permissions to run the 'cl.reset' command: a negative quantity", oneOf16}},
		{name: "no right to the name of a limit's key", user: "~l:mine* +cl.check", before: "CL.LIMIT SET l 4 1 10\r\n", calls: "CL.CHECK l a\nCL.CHECK l mine",
			want: []string{"-NOPERM", "[0 5 4 -1 10]"}},
	}
}

func rulesOfArguments() []rule {
	long := strings.Repeat("k", commandstest.MaxKeyBytes+1)
	return []rule{
		{name: "unknown commands", calls: strings.Repeat("NOSUCH a\n", 30), want: slices.Repeat([]string{"-ERR unknown command 'NOSUCH'"}, 30)},
		{name: "a refused command", calls: "PSUBSCRIBE a", want: []string{"-ERR "}},
		{name: "too few arguments", calls: "CL.CHECK a\n" + call16 + " 1 1\nCL.THROTTLE k 1", want: []string{"-ERR wrong number", "-", "-"}},
		{name: "a limit that is none", calls: "CL.THROTTLE k 15 0 60\n" + call16 + "\nCL.FIXEDWINDOW f -1 60", want: []string{"-Cell error", oneOf16, "-ERR max_count"}},
		{name: "arguments that are none", calls: "CL.THROTTLE k x 30 60\n" + call16 + "\nCL.THROTTLE k 15 0 60\nCL.FIXEDWINDOW f 5 60 1 WHAT",
			want: []string{"-Cell error", oneOf16, "-Cell error", "-"}},
		{name: "a long key", calls: "CL.THROTTLE " + long + " 15 30 60\n" + call16, want: []string{"-ERR key is longer than", oneOf16}},
		{name: "another kind of key", before: "CL.FIXEDWINDOW k 5 60\r\n", calls: call16 + "\nCL.FIXEDWINDOW k 5 60", want: []string{"-WRONGTYPE", "[0 5 3"}},
		{name: "limits", before: "CL.LIMIT SET l 4 1 10\r\nCL.LIMIT SET w 1 1 60 5 1 3600\r\n",
			calls: "CL.CHECK nosuch a\nCL.CHECK l a\nCL.CHECK l a 9\nCL.CHECK w a\nCL.CHECK w a 2\nCL.CHECK l a -1\nCL.CHECK l b",
			want:  []string{"-", "[0 5 4 -1 10]", "[1 5 4", "[0 2 1", "[1 2 1", "[0 5 5", "[0 5 4"}},
		{name: "a shadow", before: "CL.LIMIT SET s 0 1 60 SHADOW\r\n", calls: "CL.CHECK s a\nCL.CHECK s a", want: []string{"[0 1 0", "[0 1 0"}},
		{name: "at most some", before: "CL.LIMIT SET s 0 1 60 SHADOW\r\nCL.LIMIT SET l 4 1 10\r\n",
			calls: call16 + " 9 ATMOST\n" + call16 + " 9 ATMOST\n" + call16 + " 9 ATMOST\n" + call16 + " 0 ATMOST\nCL.FIXEDWINDOW f 5 60 9 ATMOST\nCL.SLIDINGWINDOW a 5 60 9 APPROX ATMOST\nCL.CHECK s a 3 ATMOST\nCL.CHECK s a 3 ATMOST\nCL.CHECK l a 3 ATMOST\nCL.CHECK l a 3 ATMOST\nCL.CHECK l a 0 ATMOST",
			want:  []string{"[0 16 7 -1 18 9]", "[0 16 0 -1 32 7]", "[1 16 0 2 32 0]", "-Cell error: Store error: quantity must be at least 1", "[0 5 0 -1 60 5]", "[0 5 0 -1 120 5]", "[0 1 0 -1 60 3]", "[0 1 0 -1 60 3]", "[0 5 2 -1 30 3]", "[0 5 0 -1 50 2]", "-ERR quantity must be at least 1"}},
		{name: "a turn", still: true, before: "CL.THROTTLE k 0 1 3600\r\n", waiter: "CL.BTHROTTLE k 0 1 3600 1 7000\r\n", calls: "CL.THROTTLE k 0 1 3600 -1\nCL.THROTTLE k 0 1 3600",
			want: []string{"[0 1 0", "[1 1 0"}},
		{name: "every kind", calls: call16 + "\nRL.THROTTLE r 15 30 60\nCL.REFUND k 15 30 60\nCL.PTHROTTLE p 15 30 60\nCL.TOKENBUCKET t 15 30 60\n" +
			"CL.FIXEDWINDOW f 5 60\nCL.SLIDINGWINDOW s 5 60\nCL.SLIDINGWINDOW a 5 60 APPROX",
			want: []string{oneOf16, oneOf16, "[0 16 16", "[0 16", "[0 15", "[0 5", "[0 5", "[0 5"}},
		{name: "a bucket", calls: "CL.BUCKET TAKE b 1 0", want: []string{"[0 "}},
		{name: "many calls", calls: strings.Repeat(call16+"\n", 1000), want: slices.Concat([]string{oneOf16}, slices.Repeat([]string{"["}, 999))},
		{name: "new keys", then: func(_ *testing.T, r *commandstest.Harness) { r.Engine.NewKeys.Limit(2) },
			calls: "CL.THROTTLE a 15 30 60\nCL.THROTTLE b 15 30 60\nCL.THROTTLE c 15 30 60\nCL.THROTTLE a 15 30 60\nCL.FIXEDWINDOW d 5 60",
			want:  []string{oneOf16, oneOf16, "-ERR more than 2 new keys per second", "[0 16 14", "-ERR more than 2"}},
	}
}

func rulesOfStores() []rule {
	disk := &slowDisk{}
	kept := func(timeout time.Duration, runs bool) func(t *testing.T, c *commands.Config) {
		return func(t *testing.T, c *commands.Config) { disk.keep(t, c, timeout, runs) }
	}
	later := func(_ *testing.T, c *commands.Config) { c.Store = storetest.Later(shard.New()) }
	return []rule{
		{name: "loading", still: true, change: kept(0, false), calls: call16 + "\n" + call16, want: []string{"-LOADING", "-LOADING"}},
		{name: "a disk", still: true, change: kept(0, true), then: func(*testing.T, *commandstest.Harness) { disk.hangs.Store(true) }, waited: func(*commands.Config) { disk.hangs.Store(false) },
			calls: call16 + " 0\n" + call16 + "\n" + call16 + "\nCL.THROTTLE other 15 0 60\nCL.THROTTLE k 0 1 60", want: []string{"[0 16 16", oneOf16, "[0 16 14", "-Cell", "["}},
		{name: "a disk that is late", still: true, change: kept(time.Millisecond, true), then: func(*testing.T, *commandstest.Harness) { disk.hangs.Store(true) },
			calls: call16 + " 0\n" + call16 + "\n" + call16 + "\nCL.THROTTLE other 15 0 60\nCL.CHECK nosuch k\n" + call16, want: []string{"[0 16 16", "-MISCONF the disk", "-MISCONF the disk", "-Cell", "-", "-MISCONF the disk"}},
		{name: "a disk that fails", still: true, change: kept(time.Millisecond, true), then: func(t *testing.T, r *commandstest.Harness) {
			disk.fails.Store(true)
			commandstest.Say(t, r.Session(), "CL.THROTTLE a 15 30 60\r\n")
			// The second failure follows what the first one has led to; before, the disk may merely be late.
			for disk.failures.Load() < 2 || r.Config.Keeper.Gate().Refusal() == nil {
				time.Sleep(time.Millisecond)
			}
		}, calls: call16 + "\n" + call16 + " 0\nCL.THROTTLE a 15 30 60 -1", want: []string{"-MISCONF the data directory", "[0 16 16", "-MISCONF the data directory"}},
		{name: "no memory", change: func(_ *testing.T, c *commands.Config) { c.Store.(*shard.Store).SetMaxBytes(1, store.NoEviction) },
			calls: call16 + "\n" + call16 + " 0", want: []string{"-OOM", "[0 16 16"}},
		{name: "a store that answers later", still: true, change: later, waited: func(*commands.Config) {},
			calls: call16 + "\n" + call16 + "\nCL.FIXEDWINDOW f 5 60\nCL.THROTTLE k 1 0 1\n" + call16, want: []string{oneOf16, "[0 16 14", "[0 5 4", "-Cell", "[0 16 13"}},
		{name: "a remote store", still: true, change: func(_ *testing.T, c *commands.Config) { c.Store = storetest.NewRemote(shard.New()) }, waited: func(*commands.Config) {},
			calls: call16 + "\nCL.THROTTLE k 1 0 1\n" + call16 + "\nCL.FIXEDWINDOW k 5 60", want: []string{oneOf16, "-Cell", "[0 16 14", "-WRONGTYPE"}},
		{name: "a remote store that is down", still: true, change: func(_ *testing.T, c *commands.Config) {
			on := storetest.NewRemote(shard.New())
			on.Fail(store.Failure{Line: storetest.LineDown})
			c.Store = on
		}, waited: func(*commands.Config) {}, calls: call16 + "\n" + call16, want: []string{"-STOREDOWN", "-STOREDOWN"}},
	}
}

// slowDisk is a directory that blocks while it hangs and refuses writes while it fails.
type slowDisk struct {
	hangs, fails atomic.Bool
	failures     atomic.Int64
}

// keep persists a store to the disk.
func (d *slowDisk) keep(t *testing.T, c *commands.Config, timeout time.Duration, runs bool) {
	d.hangs.Store(false)
	d.fails.Store(false)
	d.failures.Store(0)
	dir := disktest.New()
	dir.Before = func(op disktest.Op, _ string) error {
		for d.hangs.Load() {
			time.Sleep(time.Millisecond)
		}
		if d.fails.Load() && op != disktest.Remove {
			d.failures.Add(1)
			return errors.New("input/output error")
		}
		return nil
	}
	began := time.Now()
	now := func() int64 { return commandstest.T0 + int64(time.Since(began)) }
	k := persist.New(persist.Config{Dir: dir, Store: c.Store.(persist.Store), Now: now, Timeout: timeout, Log: slog.New(slog.DiscardHandler)})
	if c.Keeper = k; !runs {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = k.Run(ctx, func() { close(ready) })
	}()
	<-ready
	t.Cleanup(func() {
		d.hangs.Store(false)
		d.fails.Store(false)
		end()
		<-ended
	})
}

// seen is everything that clients can observe of calls.
type seen struct {
	replies  []string
	waited   bool
	readings int    // of the clock
	told     string // by INFO, SLOWLOG, ACL LOG, CL.TOP, CLIENT LIST and the limits' counters
	monitor  string
}

// observe executes a rule's calls through a door.
func (u rule) observe(t *testing.T, ask func(d door, t *testing.T, calls [][]string) []string) (s seen) {
	r := commandstest.New(func(c *commands.Config) {
		c.NamedLimits = namedlimit.New(namedlimit.Config{Log: c.Log})
		if u.still {
			c.Now = func() int64 { return commandstest.T0 }
		}
		if u.change != nil {
			u.change(t, c)
		}
	})
	operator, monitor := r.Session(), r.Session()
	for _, c := range []*commandstest.Client{operator, monitor} {
		if !c.Authenticated() {
			commandstest.Say(t, c, "AUTH pw\r\n")
		}
	}
	commandstest.Say(t, operator, "CONFIG SET slowlog-log-slower-than 1 slowlog-max-len 2000\r\nACL SETUSER app ON NOPASS\r\n"+u.before)
	client := r.Session()
	if u.user != "" {
		if _, err := r.Config.Users.Load("", "user default on nopass ~* +@all\nuser app on nopass "+u.user); err != nil {
			t.Fatal(err)
		}
		conn := &commandstest.Conn{Woken: make(chan struct{}, 1)}
		client.Close()
		client = &commandstest.Client{Session: r.Engine.NewSessionAs(peer.Peer{Addr: "192.0.2.1:5000"}, conn, r.Config.Users.Lookup("app")), Conn: conn}
	}
	commandstest.Say(t, monitor, "MONITOR\r\n")
	if u.then != nil {
		u.then(t, r)
	}
	waiter := r.Session()
	if u.waiter != "" {
		if _, _, status := commandstest.Feed(t, waiter, u.waiter); status != peer.Waiting {
			t.Fatalf("%q: status %d", u.waiter, status)
		}
	}
	var calls [][]string
	for line := range strings.Lines(u.calls) {
		calls = append(calls, spelled(strings.Fields(line)))
	}
	d := door{s: client, waited: func() {
		if s.waited = true; u.waited != nil {
			u.waited(&r.Config)
		}
	}}
	if !u.still {
		r.Clock.StepBy(2000)
	}
	s.replies = ask(d, t, calls)
	s.readings = r.Clock.Readings()
	if u.waiter != "" {
		<-waiter.Conn.Woken
		turn, _, _ := commandstest.Feed(t, waiter, "")
		s.told = "turn: " + turn
	}
	r.Clock.StepBy(0)
	s.monitor, _, _ = commandstest.Feed(t, monitor, "")
	told, _, _ := commandstest.Converse(t, operator, "INFO commandstats\r\nINFO errorstats\r\nINFO stats\r\nSLOWLOG GET 2000\r\nACL LOG\r\nCL.TOP\r\nCLIENT LIST\r\nCL.LIMIT STATS\r\n"+
		"CL.LIMIT LIST\r\nLATENCY HISTOGRAM\r\n")
	s.told += ownINFO.ReplaceAllString(told, "")
	for _, l := range r.Config.NamedLimits.All() {
		n := l.Counts()
		s.told += fmt.Sprintln(l.Name, n.Allowed, n.Limited, n.ShadowLimited)
	}
	return s
}

// spelled returns a call as that which is like its request.
func spelled(call []string) []string {
	q, ok := commandstest.Request(call...)
	if !ok {
		return call
	}
	call = nil
	for _, word := range decide.Words(q.Command, q.Limit, q.Key, &q.Spec, q.Quantity, false) {
		call = append(call, string(word))
	}
	return call
}

// TestEveryDoorHasTheSameRules: fed and asked calls have equal answers, counts, log lines and INFO.
func TestEveryDoorHasTheSameRules(t *testing.T) {
	compared := 0
	for _, u := range rules() {
		t.Run(u.name, func(t *testing.T) {
			fed, asked := u.observe(t, door.feed), u.observe(t, door.ask)
			if len(fed.replies) != len(u.want) {
				t.Fatalf("%d replies, want %d: %q", len(fed.replies), len(u.want), fed.replies)
			}
			for i, got := range fed.replies {
				if !strings.HasPrefix(got, u.want[i]) {
					t.Errorf("reply %d is %q, want %q", i, got, u.want[i])
				}
			}
			if u.waited != nil && !fed.waited {
				t.Error("fed it does not wait")
			}
			if asked.replies == nil {
				return
			}
			compared++
			if !slices.Equal(asked.replies, fed.replies) {
				t.Errorf("asked, it is answered\n%q\nand fed\n%q", asked.replies, fed.replies)
			}
			if fed.waited != asked.waited {
				t.Errorf("fed it waits: %t, and asked: %t", fed.waited, asked.waited)
			}
			if asked.readings != fed.readings {
				t.Errorf("asked, it reads the clock %d times, and fed %d", asked.readings, fed.readings)
			}
			if asked.monitor != fed.monitor {
				t.Errorf("asked, MONITOR has\n%q\nand fed\n%q", asked.monitor, fed.monitor)
			}
			if asked.told != fed.told {
				t.Errorf("asked, it is told\n%s\nand fed\n%s", asked.told, fed.told)
			}
		})
	}
	if compared < 20 {
		t.Errorf("%d rules were compared", compared)
	}
}

// TestAskDoesNotAllocate, as Feed does not.
func TestAskDoesNotAllocate(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates")
	}
	s := commandstest.New().Session()
	q, _ := commandstest.Request("CL.THROTTLE", "k", "1000000", "1000000", "1")
	all := slices.Repeat([]decide.Request{q}, 128)
	asked := &decide.Requests{}
	allocs := testing.AllocsPerRun(100, func() {
		*asked = decide.Requests{All: all}
		if status := s.Ask(asked); status != peer.NeedInput || asked.Left() || all[127].Err != nil {
			t.Fatalf("status %d, %+v", status, all[127])
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
