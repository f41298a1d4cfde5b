package session_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/session"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// lockedStore notes whether its keys are held, and events meanwhile and after.
type lockedStore struct {
	*shard.Store

	mu     sync.Mutex // guards all below
	locks  int
	events []string
}

func (l *lockedStore) lock(change int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.locks += change
}

// happened notes an event.
func (l *lockedStore) happened(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locks > 0 {
		event += " while keys are held"
	}
	l.events = append(l.events, event)
}

func (l *lockedStore) take() (events string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events, l.events = strings.Join(l.events, ", "), nil
	return events
}

func (l *lockedStore) Begin(nowNs int64, keys []store.Key) store.Transaction {
	l.lock(1)
	return &lockedTx{l.Store.Begin(nowNs, keys), l, false}
}

func (l *lockedStore) BeginAll(nowNs int64) store.Exclusive {
	l.lock(1)
	return &lockedAll{l.Store.BeginAll(nowNs), l, false}
}

type lockedTx struct {
	store.Transaction
	store *lockedStore
	ended bool
}

func (t *lockedTx) end() {
	if !t.ended {
		t.ended = true
		t.store.lock(-1)
	}
}

// Commit ends it; so does Rollback. A released transaction still counts, as its work may be repeated.
func (t *lockedTx) Commit() bool { defer t.end(); return t.Transaction.Commit() }

func (t *lockedTx) Rollback() { defer t.end(); t.Transaction.Rollback() }

type lockedAll struct {
	store.Exclusive
	store *lockedStore
	ended bool
}

func (a *lockedAll) End() {
	a.Exclusive.End()
	if !a.ended {
		a.ended = true
		a.store.lock(-1)
	}
}

// watchedConn notes a connection's events.
type watchedConn struct {
	name  string
	store *lockedStore
	woken chan struct{}
}

func (c *watchedConn) Wake() {
	if c.name == "monitor" {
		c.store.happened("monitor woken")
	}
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

func (c *watchedConn) Kill() { c.store.happened(c.name + " killed") }

func (c *watchedConn) Evict() { c.store.happened(c.name + " evicted") }

// watchedLog notes a log's lines.
type watchedLog struct {
	slog.Handler
	store *lockedStore
}

func (w watchedLog) Handle(_ context.Context, r slog.Record) error {
	w.store.happened("logged " + r.Message)
	return nil
}

func (w watchedLog) Enabled(context.Context, slog.Level) bool { return true }

// lockedRig is a harness with such a store and log, a client, one in MONITOR, and a victim, client 3.
type lockedRig struct {
	*commandstest.Harness
	store      *lockedStore
	s, monitor *session.Session
	conn       *watchedConn
}

func newLockedRig(t *testing.T, change ...func(*commands.Config)) *lockedRig {
	t.Helper()
	l := &lockedRig{store: &lockedStore{Store: shard.New()}}
	l.Harness = commandstest.New(append(change, withStore(l.store), func(c *commands.Config) {
		c.Log = slog.New(watchedLog{slog.DiscardHandler, l.store})
	})...)
	connect := func(name string) (*session.Session, *watchedConn) {
		conn := &watchedConn{name, l.store, make(chan struct{}, 1)}
		return l.Engine.NewSession(peer.Peer{Addr: "192.0.2.1:5000"}, conn), conn
	}
	l.s, l.conn = connect("client")
	l.monitor, _ = connect("monitor")
	connect("victim")
	l.feed(t, l.monitor, "MONITOR\r\n")
	l.feed(t, l.monitor, "") // takes its lines
	return l
}

func (l *lockedRig) feed(t *testing.T, s *session.Session, in string) string {
	t.Helper()
	var out []byte
	for buf := []byte(in); ; {
		n, appended, status := s.Feed(buf, out)
		buf, out = buf[n:], appended
		switch status {
		case peer.NeedInput:
			return string(out)
		case peer.Waiting:
			<-l.conn.woken
		case peer.More:
		default:
			t.Fatalf("status %d behind %q", status, out)
		}
	}
}

// TestSettled: effects of EXEC and scripts beyond keys and replies follow the release of their keys.
func TestSettled(t *testing.T) {
	const throttle, kill = "CL.THROTTLE k 4 1 10\r\n", "CLIENT KILL ID 3\r\n"
	eval := func(script string) string { return resptest.Encode("EVAL", script, "1", "k") }
	log := eval("redis.log(redis.LOG_WARNING, 'a') redis.call('cl.throttle', KEYS[1], 4, 1, 10) redis.log(redis.LOG_DEBUG, 'b')")
	for _, tt := range []struct {
		name, in, want string
		lines          int // in MONITOR
	}{
		{"a transaction", "MULTI\r\n" + throttle + kill + throttle + "EXEC\r\n", "monitor woken, victim killed", 4},
		{"with all keys", "MULTI\r\n" + throttle + kill + "DBSIZE\r\nEXEC\r\n", "monitor woken, victim killed", 4},
		{"a script", log, "monitor woken, logged script: a, logged script: b", 2},
		{"that fails", eval("redis.log(redis.LOG_WARNING, 'a') error('x')"), "monitor woken, logged script: a", 1},
		{"a transaction with scripts", "MULTI\r\n" + log + kill + log + "EXEC\r\n",
			"monitor woken, logged script: a, logged script: b, logged script: a, logged script: b, victim killed", 6},
		{"with scripts that may run again", "MULTI\r\n" + log + "EXEC\r\n", "monitor woken, logged script: a, logged script: b", 4},
		{"that does nothing", "WATCH k\r\n" + throttle + "MULTI\r\n" + throttle + log + kill + "EXEC\r\n", "monitor woken", 4},
		{"not in a transaction", kill, "victim killed", 0},
	} {
		l := newLockedRig(t)
		l.feed(t, l.s, tt.in)
		if got := l.store.take(); got != tt.want {
			t.Errorf("%s: got %s; want %s", tt.name, got, tt.want)
		}
		if got := l.feed(t, l.monitor, ""); strings.Count(got, "\r\n") != tt.lines {
			t.Errorf("%s: MONITOR has seen %q, want %d lines", tt.name, got, tt.lines)
		}
	}
}

// TestSettledForAClientThatIsGone: a transaction that has begun is executed whole, with its later effects.
func TestSettledForAClientThatIsGone(t *testing.T) {
	for _, how := range []peer.Hangup{peer.HalfClosed, peer.Reset} {
		for _, closed := range []bool{false, true} {
			l := newLockedRig(t, commandstest.Meddling)
			begun, goOn := make(chan struct{}), make(chan struct{})
			l.Meddle = func() {
				close(begun)
				<-goOn
			}
			l.feed(t, l.s, "MULTI\r\nCL.THROTTLE a 4 1 10\r\nTEST.MEDDLE\r\nCLIENT KILL ID 3\r\n"+
				resptest.Encode("EVAL", "redis.log(redis.LOG_WARNING, 'a') return redis.call('cl.throttle', KEYS[1], 4, 1, 10)", "1", "b"))
			l.feed(t, l.monitor, "")
			l.store.take()
			const behind = "CL.THROTTLE c 4 1 10\r\n"
			if _, _, status := l.s.Feed([]byte("EXEC\r\n"+behind), nil); status != peer.Waiting {
				t.Fatalf("status %d", status)
			}
			<-begun
			l.s.HungUp(how)
			if closed {
				l.s.Close()
			}
			close(goOn)
			<-l.conn.woken
			if got, want := l.store.take(), "monitor woken, logged script: a, victim killed"; got != want {
				t.Errorf("%d, closed %v: got %s; want %s", how, closed, got, want)
			}
			keys := 2
			if !closed {
				first := resptest.Ints(0, 5, 4, -1, 10)
				if got, want := l.feed(t, l.s, behind), "*4\r\n"+first+"+OK\r\n:1\r\n"+first+first; got != want {
					t.Errorf("%d: got %q, want %q", how, got, want)
				}
				keys++
			}
			if st := l.Stats(); st.Keys != keys {
				t.Errorf("%d, closed %v: %d keys", how, closed, st.Keys)
			}
			seen := l.feed(t, l.monitor, "")
			for _, line := range []string{`"CL.THROTTLE" "a"`, `"TEST.MEDDLE"`, `lua] "cl.throttle" "b"`, `"EXEC"`} {
				if !strings.Contains(seen, line) {
					t.Errorf("%d, closed %v: MONITOR has seen %q and not %s", how, closed, seen, line)
				}
			}
		}
	}
}

// TestLoggedIsBounded for scripts and EXEC together, also with empty lines: the kept bytes are bounded, ten
// lines a second are written, and the rest is counted.
func TestLoggedIsBounded(t *testing.T) {
	logs := func(n, bytes int) string {
		return resptest.Encode("EVAL", fmt.Sprintf("for i = 1, %d do redis.log(redis.LOG_WARNING, string.rep('x', %d)) end", n, bytes), "0")
	}
	for _, tt := range []struct {
		in      string
		want    int
		leftOut uint64
	}{
		{logs(10, 1000), 10, 0},
		{logs(64, 1000), 10, 54},
		{logs(999, 1000), 10, 989},
		{logs(9999, 0), 10, 9989},
		{"MULTI\r\n" + strings.Repeat(logs(9, 1000), 20) + "EXEC\r\n", 10, 170},
		{"MULTI\r\n" + strings.Repeat(logs(2, 1), 3) + "EXEC\r\n", 6, 0},
		{strings.Repeat(logs(3, 1), 5), 10, 5},
	} {
		l := newLockedRig(t)
		l.feed(t, l.monitor, "RESET\r\n")
		l.store.take()
		l.feed(t, l.s, tt.in)
		if got, leftOut := strings.Count(l.store.take(), "logged "), l.Engine.Records.ScriptLinesLeftOut(); got != tt.want || leftOut != tt.leftOut {
			t.Errorf("%.200q: %d lines, and %d left out; want %d and %d", tt.in, got, leftOut, tt.want, tt.leftOut)
		}
	}
}

// TestScriptLinesInASecond: each client has ten, and all a hundred; then follows the number of omitted ones.
// Long lines are cut. Lines below the log's level do not count.
func TestScriptLinesInASecond(t *testing.T) {
	r := commandstest.New()
	log := func(level, text string, n int) string {
		return resptest.Encode("EVAL", fmt.Sprintf("for i = 1, %d do redis.log(redis.LOG_%s, %s) end", n, level, text), "0")
	}
	expect := func(written int, leftOut uint64) {
		t.Helper()
		if got := strings.Count(r.Log.String(), "script: "); got != written || r.Engine.Records.ScriptLinesLeftOut() != leftOut {
			t.Errorf("%d lines written and %d left out, want %d and %d", got, r.Engine.Records.ScriptLinesLeftOut(), written, leftOut)
		}
	}
	first := r.Session()
	commandstest.Say(t, first, log("DEBUG", "'a'", 100))
	expect(0, 0)
	commandstest.Say(t, first, log("WARNING", "'a'", 12))
	expect(10, 2)
	for range 20 {
		commandstest.Say(t, r.Session(), log("WARNING", "'b'", 7))
	}
	expect(100, 2+50)
	r.Clock.Advance(commandstest.Sec)
	commandstest.Say(t, first, log("WARNING", "'c' .. string.rep('中', 1000)", 2))
	expect(102, 52)
	if got := r.Log.String(); strings.Count(got, "left_out_before=2\n") != 1 || strings.Count(got, "left_out_before=50\n") != 1 || strings.Count(got, "left_out") != 2 || !strings.Contains(got, `script: c`+strings.Repeat("中", 341)+`..."`) {
		t.Errorf("logged %.3000q", got)
	}
}
