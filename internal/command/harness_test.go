package command

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/acl"
	"cellserver/internal/funnel"
	"cellserver/internal/lua"
	"cellserver/internal/peer"
	"cellserver/internal/resp"
	"cellserver/internal/shard"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)

	testMaxKeyBytes = 4096
)

// rig is an engine with a clock of its own.
type rig struct {
	engine *Engine
	clock  clock
	log    bytes.Buffer
}

// clock stands still unless it is moved, and counts how often it was read. What runs aside reads it, too.
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
	config := Config{
		Store:         shard.New(),
		Now:           r.clock.now,
		Reading:       funnel.Burst,
		Databases:     16,
		MaxKeyBytes:   testMaxKeyBytes,
		Limits:        resp.Limits{MaxArgs: 1 << 20, MaxCommandBytes: 4 << 20},
		Version:       "1.2.3",
		MaxReplyBytes: 32 << 20,
		Users:         acl.NewUsers(Commands()),
		Scripts:       newScripts(time.Minute), // a busy machine is slow
		Shutdown:      func() {},
		Debug:         func(peer.Peer) bool { return true },
		Settings:      []Setting{Constant("databases", "16"), Constant("maxclients", "100"), Constant("save", "")},
		Clients: func() ClientStats {
			return ClientStats{Connected: 2, MaxClients: 100, Accepted: 7, Refused: 3, Port: 6380}
		},
		Log: slog.New(slog.NewTextHandler(&r.log, nil)),
	}
	for _, f := range change {
		f(&config)
	}
	r.engine = NewEngine(config)
	return r
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

func (r *rig) session() *Session {
	return r.engine.NewSession(peer.Peer{Addr: "192.0.2.1:5000", LocalAddr: "192.0.2.2:6380"}, &testConn{woken: make(chan struct{}, 1)})
}

func (r *rig) stats() (st shard.Stats) {
	r.engine.config.Store.UpdateStats(&st)
	return st
}

// feed feeds a session until it wants something else than to be fed on, and returns what it left of in.
func feed(t testing.TB, s *Session, in string) (replies, left string, status peer.Status) {
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
func converse(t testing.TB, s *Session, in string) (replies, left string, status peer.Status) {
	t.Helper()
	replies, left, status = feed(t, s, in)
	for status == peer.Waiting {
		<-s.conn.(*testConn).woken
		var more string
		more, left, status = feed(t, s, left)
		replies += more
	}
	return replies, left, status
}

// say feeds whole commands, after which the session must want more, and returns the replies.
func say(t testing.TB, s *Session, in string) string {
	t.Helper()
	replies, left, status := converse(t, s, in)
	if left != "" || status != peer.NeedInput {
		t.Errorf("%.200q: status %d, and left %.200q", in, status, left)
	}
	return replies
}

// encode writes a command as a client's library does.
func encode(args ...string) string {
	var b strings.Builder
	b.WriteString("*" + strconv.Itoa(len(args)) + "\r\n")
	for _, arg := range args {
		b.WriteString("$" + strconv.Itoa(len(arg)) + "\r\n" + arg + "\r\n")
	}
	return b.String()
}

// five is CL.THROTTLE's reply.
func five(numbers ...int64) string {
	var b strings.Builder
	b.WriteString("*" + strconv.Itoa(len(numbers)) + "\r\n")
	for _, n := range numbers {
		b.WriteString(":" + strconv.FormatInt(n, 10) + "\r\n")
	}
	return b.String()
}

const pong = "+PONG\r\n"

// shaOf is the name of a script for EVALSHA.
func shaOf(script string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(script))) }

// meddle adds TEST.MEDDLE to an engine, with which the commands of EXEC and scripts have something done from outside.
func meddle(e *Engine, do func()) {
	r := &row{name: "test.meddle", arity: 1, flags: flagFast, stats: &rowStats{}, run: func(s *Session, _ [][]byte) error {
		do()
		s.w.OK()
		return nil
	}}
	e.table.rows = append(e.table.rows, r)
	e.table.byName[r.name] = r
}

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
