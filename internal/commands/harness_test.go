package commands

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/acl"
	"cellserver/internal/catalog"
	"cellserver/internal/commands/admin"
	"cellserver/internal/funnel"
	"cellserver/internal/lua"
	"cellserver/internal/peer"
	"cellserver/internal/resp"
	"cellserver/internal/session"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)

	testMaxKeyBytes = 4096
)

// Bounds as clients feel them:
const (
	feedBytes          = 64 << 10 // of replies, after which a Feed ends
	maxNames           = 128      // of one COMMAND or CONFIG GET
	maxClientText      = 1 << 10
	maxWatched         = 10_000
	queuedArgBytes     = 24 // that an argument behind MULTI costs beside its bytes
	longExec           = 1000
	backgroundKeys     = 1000
	optimisticAttempts = 3
	maxInnerLineBytes  = 1 << 20
	maxLineArgBytes    = 8 << 10
	maxLineArgs        = 1 << 10
)

// rig is an engine with a clock of its own.
type rig struct {
	config Config
	engine *Engine
	clock  clock
	log    bytes.Buffer
	meddle func() // what TEST.MEDDLE does, with which commands of EXEC and scripts have something done from outside
}

// clock stands still unless it is moved, and counts how often it was read. What runs in the background reads it, too.
type clock struct {
	mu       sync.Mutex // guards all below
	nowNs    int64
	readings int
	stepNs   int64 // it goes forward by that at each reading
}

func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readings++
	c.nowNs += c.stepNs
	return c.nowNs
}

func (c *clock) set(nowNs int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nowNs = nowNs
}

func (c *clock) advance(ns int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nowNs += ns
}

// stepBy has it go forward at each reading, and counts those from here on.
func (c *clock) stepBy(ns int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stepNs, c.readings = ns, 0
}

func (c *clock) read() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readings
}

func newRig(change ...func(*Config)) *rig {
	r := &rig{clock: clock{nowNs: t0}}
	r.config = Config{
		Store:         shard.New(),
		Now:           r.clock.now,
		WallTime:      time.Now,
		Catalog:       catalog.New(),
		Reading:       funnel.Burst,
		Databases:     16,
		MaxKeyBytes:   testMaxKeyBytes,
		Limits:        resp.Limits{MaxArgs: 1 << 20, MaxCommandBytes: 4 << 20},
		Version:       "1.2.3",
		MaxReplyBytes: 32 << 20,
		Scripts:       newScripts(time.Minute), // a busy machine is slow
		Shutdown:      func() {},
		MayDebug:      func(peer.Peer) bool { return true },
		Settings:      []admin.Setting{admin.Constant("databases", "16"), admin.Constant("maxclients", "100"), admin.Constant("save", "")},
		Connections: func() admin.Connections {
			return admin.Connections{Connected: 2, MaxClients: 100, Accepted: 7, Refused: 3, Port: 6380}
		},
		Log: slog.New(slog.NewTextHandler(&r.log, nil)),
	}
	r.config.Users = acl.NewUsers(r.config.Catalog.ForRules())
	for _, f := range change {
		f(&r.config)
	}
	engine, err := newEngine(r.config, map[string]session.Handler{
		"test.meddle": session.Plain(func(c session.Call, _ [][]byte) error {
			r.meddle()
			c.Reply().OK()
			return nil
		}),
	})
	if err != nil {
		panic(err)
	}
	r.engine = engine
	return r
}

// meddling adds TEST.MEDDLE.
func meddling(c *Config) {
	c.Catalog = catalog.Of(append(catalog.Rows(), &catalog.Command{Name: "test.meddle", Arity: 1, Flags: catalog.FlagFast}))
	c.Users = acl.NewUsers(c.Catalog.ForRules())
}

// client is a session and its connection.
type client struct {
	*session.Session
	conn *testConn
}

// testConn is a session's connection.
type testConn struct {
	woken  chan struct{} // holds one wake-up
	killed atomic.Bool
}

func (c *testConn) Wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

func (c *testConn) Kill() { c.killed.Store(true) }

func withPassword(password string) func(*Config) {
	return func(c *Config) { c.Users.SetDefaultPassword(password) }
}

func withReading(reading funnel.Reading) func(*Config) {
	return func(c *Config) { c.Reading = reading }
}

func (r *rig) session() *client {
	return r.sessionOf(peer.Peer{Addr: "192.0.2.1:5000", LocalAddr: "192.0.2.2:6380"})
}

func (r *rig) sessionOf(p peer.Peer) *client {
	conn := &testConn{woken: make(chan struct{}, 1)}
	return &client{r.engine.NewSession(p, conn), conn}
}

func (r *rig) stats() (st store.Stats) {
	r.config.Store.UpdateStats(&st)
	return st
}

// feed feeds a session until it wants something else than to be fed on, and returns what it left of in.
func feed(t testing.TB, s *client, in string) (replies, left string, status peer.Status) {
	t.Helper()
	buf := []byte(in)
	var out []byte
	for {
		consumed, appended, status := s.Feed(buf, out)
		if consumed < 0 || consumed > len(buf) || !bytes.HasPrefix(appended, out) {
			t.Fatalf("%.200q: consumed %d of %d bytes, replied %.200q after %.200q", in, consumed, len(buf), appended, out)
		}
		buf, out = buf[consumed:], appended
		if status != peer.More {
			return string(out), string(buf), status
		}
	}
}

// converse is feed, and waits where the session does.
func converse(t testing.TB, s *client, in string) (replies, left string, status peer.Status) {
	t.Helper()
	replies, left, status = feed(t, s, in)
	for status == peer.Waiting {
		<-s.conn.woken
		var more string
		more, left, status = feed(t, s, left)
		replies += more
	}
	return replies, left, status
}

// say feeds whole commands, after which the session must want more, and returns the replies.
func say(t testing.TB, s *client, in string) string {
	t.Helper()
	replies, left, status := converse(t, s, in)
	if left != "" || status != peer.NeedInput {
		t.Errorf("%.200q: status %d, and left %.200q", in, status, left)
	}
	return replies
}

const pong = "+PONG\r\n"

// shaOf is the name of a script for EVALSHA.
func shaOf(script string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(script))) }

// newScripts returns what executes scripts, on a clock that goes forward by itself.
func newScripts(limit time.Duration) *lua.Engine {
	start := time.Now()
	return lua.New(lua.Config{Now: func() int64 { return int64(time.Since(start)) }, TimeLimit: limit})
}

// withTimeLimit bounds the time of scripts.
func withTimeLimit(d time.Duration) func(*Config) {
	return func(c *Config) { c.Scripts = newScripts(d) }
}

// withLimitFor bounds the time of scripts where there is one in a test's input that would never end.
func withLimitFor(in string) func(*Config) {
	if strings.Contains(in, "while true") {
		return withTimeLimit(5 * time.Millisecond)
	}
	return func(*Config) {}
}
