package session

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/funnel"
	"cellserver/internal/lua"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/resp"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

const (
	t0   = int64(1_700_000_000_000_000_000)
	sec  = int64(1_000_000_000)
	pong = "+PONG\r\n"
)

// harness is an engine of a few commands, with a clock that stands still.
type harness struct {
	*Engine
	gate gate
	log  bytes.Buffer
}

func newHarness(t testing.TB, change ...func(*execute.Config)) *harness {
	t.Helper()
	r := &harness{}
	cat := catalog.Of(append(catalog.Rows(), testCommands()...))
	c := execute.Config{
		Store: shard.New(), Now: func() int64 { return t0 }, WallTime: func() time.Time { return time.Unix(0, t0) },
		Catalog: cat, Users: acl.NewUsers(cat.ForRules()), ACLLog: acl.NewLog(8),
		Records: observe.New(cat, t0), Clients: &clients.Register{}, Channels: clients.NewChannels(catalog.SentinelChannel), NewKeys: &clients.NewKeys{}, NamedLimits: namedlimit.New(namedlimit.Config{}),
		Reading: funnel.Burst, Databases: 16, MaxKeyBytes: 4096,
		MaxReplyBytes: 1 << 20, Limits: resp.Limits{MaxArgs: 1 << 10, MaxCommandBytes: 1 << 20},
		Scripts: lua.New(lua.Config{Now: func() int64 { return time.Now().UnixNano() }, TimeLimit: time.Minute, Native: cat.Batched(), Version: catalog.RedisVersion}), BackgroundThreads: 1, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
		Handlers: map[string]execute.Handler{},
	}
	cat.Each(func(command *catalog.Command) { // those of other packages are not tested here
		if command.Flags&catalog.FlagWhole != 0 {
			c.Handlers[command.FullName()] = execute.Whole(func(execute.Call, store.Walker, [][]byte) error { return nil })
		} else {
			c.Handlers[command.FullName()] = execute.Plain(func(execute.Call, [][]byte) error { return nil })
		}
	})
	c.Handlers["ping"] = execute.Plain(func(c execute.Call, _ [][]byte) error { c.Reply().Status("PONG"); return nil })
	c.Handlers["test.wait"] = own(r.gate.wait)
	c.Handlers["dbsize"] = execute.Whole(func(c execute.Call, all store.Walker, _ [][]byte) error {
		counts := make([]store.KeyCount, 16)
		all.Count(context.Background(), c.Now(), counts)
		c.Reply().Int(int64(counts[c.DB()].Keys))
		return nil
	})
	for _, f := range change {
		f(&c)
	}
	engine, err := NewEngine(c)
	if err != nil {
		t.Fatal(err)
	}
	r.Engine = engine
	return r
}

func testCommands() []*catalog.Command {
	return []*catalog.Command{{Name: "test.wait", Arity: 2}}
}

// with adds commands without arguments.
func with(handlers map[string]execute.Handler) func(*execute.Config) {
	return func(c *execute.Config) {
		rows := append(catalog.Rows(), testCommands()...)
		for name := range handlers {
			rows = append(rows, &catalog.Command{Name: name, Arity: 1})
		}
		c.Catalog = catalog.Of(rows)
		c.Users, c.Records = acl.NewUsers(c.Catalog.ForRules()), observe.New(c.Catalog, t0)
		maps.Copy(c.Handlers, handlers)
	}
}

// testLater is TEST.LATER, which is done in an hour.
var testLater = execute.Plain(func(c execute.Call, _ [][]byte) error {
	return c.After(time.Hour, func(execute.Call) error { return nil })
})

func withLater(c *execute.Config) { with(map[string]execute.Handler{"test.later": testLater})(c) }

// gate is TEST.WAIT's: each opening releases one call.
type gate struct {
	mu      sync.Mutex // guards all below
	open    int
	waiting []*background.Task
}

// wait is TEST.WAIT: it echoes its argument later.
func (g *gate) wait(s *Session, args [][]byte) error {
	text := string(args[1]) // the input may move
	p := s.waitForTask(&s.x, func(x *execute.Executor) error {
		x.W.BulkString(text)
		return nil
	})
	g.let(func() { g.waiting = append(g.waiting, p.Task) })
	return nil
}

func (g *gate) let(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	for g.open > 0 && len(g.waiting) > 0 {
		g.waiting[0].Finish()
		g.waiting = g.waiting[1:]
		g.open--
	}
}

func (g *gate) pass(n int) { g.let(func() { g.open += n }) }

// client is a session and its connection.
type client struct {
	*Session
	woken  chan struct{} // holds one wake-up
	killed atomic.Bool
}

func (c *client) Wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

func (c *client) Kill() { c.killed.Store(true) }

func (c *client) Evict() { c.Kill() }

func (r *harness) session() *client {
	c := &client{woken: make(chan struct{}, 1)}
	c.Session = r.NewSession(peer.Peer{Addr: "192.0.2.1:5000"}, c)
	return c
}

// feed feeds a session until it waits or ends, and returns the rest of in.
func (c *client) feed(in string) (replies, left string, status peer.Status) {
	buf, out := []byte(in), []byte(nil)
	for {
		n, appended, status := c.Feed(buf, out)
		buf, out = buf[n:], appended
		if status != peer.More {
			return string(out), string(buf), status
		}
	}
}

// converse is feed, and waits for the session.
func (c *client) converse(in string) (replies, left string, status peer.Status) {
	for left = in; ; <-c.woken {
		var more string
		more, left, status = c.feed(left)
		if replies += more; status != peer.Waiting {
			return replies, left, status
		}
	}
}

// wait feeds a command that waits, and returns the rest of in.
func (c *client) wait(t testing.TB, in string) (left string) {
	t.Helper()
	replies, left, status := c.feed(in)
	if replies != "" || status != peer.Waiting {
		t.Fatalf("%.200q: status %d, replied %.200q, want a wait", in, status, replies)
	}
	return left
}

// say feeds whole commands, waits for the session, and returns the replies.
func (c *client) say(t testing.TB, in string) string {
	t.Helper()
	replies, left, status := c.converse(in)
	if left != "" || status != peer.NeedInput {
		t.Errorf("%.200q: status %d, and left %.200q", in, status, left)
	}
	return replies
}

// expect feeds whole commands and checks their replies.
func (c *client) expect(t testing.TB, in, want string) {
	t.Helper()
	if got := c.say(t, in); got != want {
		t.Errorf("%.300q: got %q, want %q", in, got, want)
	}
}

// define defines a named limit of 5 units a minute.
func (r *harness) define(t testing.TB, name string) {
	t.Helper()
	r.defineAs(t, namedlimit.Definition{Name: name})
}

func (r *harness) defineAs(t testing.TB, d namedlimit.Definition) {
	t.Helper()
	d.Near, d.Rules = namedlimit.DefaultNear, []namedlimit.Rule{{Capacity: 5, Count: 5, PeriodSec: 60}}
	if err := r.Config.NamedLimits.Set(d); err != nil {
		t.Fatal(err)
	}
}
