// Package commandstest runs an engine of all commands on a clock of its own, for tests, and clients of its
// sessions. A Harness is safe for concurrent use except for its Log; a Client belongs to one goroutine at a
// time.
package commandstest

import (
	"bytes"
	"context"
	"crypto/sha1"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/memory"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/lua"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/session"
	"cellserver/internal/resp"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

const (
	T0            = int64(1_700_000_000_000_000_000) // Unix ns at which a harness's clock starts
	Sec           = int64(1_000_000_000)             // ns
	MaxKeyBytes   = 4096
	MaxValueBytes = 64 << 10
)

// sharedCatalog is made once, as a test makes hundreds of engines.
var sharedCatalog = sync.OnceValue(catalog.New) //nolint:gochecknoglobals // a Catalog never changes

// Harness is an engine with a clock of its own.
type Harness struct {
	Config commands.Config
	Engine *commands.Engine
	Clock  Clock
	Log    bytes.Buffer
	Meddle func() // what TEST.MEDDLE does: interfere from outside while EXEC or a script runs
}

// Clock stands still unless moved, and counts its readings. It is safe for concurrent use.
type Clock struct {
	mu       sync.Mutex // guards all below
	nowNs    int64
	readings int
	stepNs   int64 // added at each reading
}

// Now returns Unix nanoseconds.
func (c *Clock) Now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readings++
	c.nowNs += c.stepNs
	return c.nowNs
}

// Set moves the clock to a time.
func (c *Clock) Set(nowNs int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nowNs = nowNs
}

// Advance moves the clock forward.
func (c *Clock) Advance(ns int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nowNs += ns
}

// StepBy advances the clock by ns at each later reading, and resets their count.
func (c *Clock) StepBy(ns int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stepNs, c.readings = ns, 0
}

// Readings returns the number of readings since StepBy.
func (c *Clock) Readings() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readings
}

// New returns a harness with a changed configuration.
func New(change ...func(*commands.Config)) *Harness {
	r := &Harness{Clock: Clock{nowNs: T0}}
	r.Config = commands.Config{
		Config: execute.Config{
			Store:         shard.New(),
			Now:           r.Clock.Now,
			WallTime:      time.Now,
			Catalog:       sharedCatalog(),
			Reading:       funnel.Burst,
			Databases:     16,
			MaxKeyBytes:   MaxKeyBytes,
			MaxValueBytes: MaxValueBytes,
			Limits:        resp.Limits{MaxArgs: 1 << 20, MaxCommandBytes: 4 << 20},
			MaxReplyBytes: 32 << 20,
			Scripts:       NewScripts(time.Minute), // long enough for a busy machine
			Log:           slog.New(slog.NewTextHandler(&r.Log, nil)),
		},
		Options: admin.Options{
			Version:       "1.2.3",
			Shutdown:      func() {},
			ReleaseMemory: memory.Release,
			MayDebug:      func(peer.Peer) bool { return true },
			Settings:      []admin.Setting{admin.Constant("databases", "16"), admin.Constant("maxclients", "100"), admin.Constant("save", "")},
			Connections: func() admin.Connections {
				return admin.Connections{Connected: 2, MaxClients: 100, Accepted: 7, Refused: 3, Port: 6380}
			},
		},
	}
	r.Config.Users = acl.NewUsers(r.Config.Catalog.ForRules())
	for _, f := range change {
		f(&r.Config)
	}
	r.Config.Handlers = map[string]execute.Handler{
		"test.meddle": execute.Plain(func(c execute.Call, _ [][]byte) error {
			r.Meddle()
			c.Reply().OK()
			return nil
		}),
	}
	r.start()
	return r
}

func (r *Harness) start() {
	engine, err := commands.NewEngine(r.Config)
	if err != nil {
		panic(err)
	}
	r.Engine = engine
	if s, ok := r.Config.Store.(store.Spender); ok {
		s.SpendBy(engine.Config.NamedLimits.SpentAt)
	}
}

// Keeping persists the store in a directory until the test ends, with a sync before each reply if interval is
// 0.
func Keeping(t testing.TB, dir disk.Dir, interval time.Duration) func(*commands.Config) {
	return func(c *commands.Config) {
		k := persist.New(persist.Config{Dir: dir, Store: c.Store.(persist.Store), Now: c.Now, Interval: interval, Log: slog.New(slog.DiscardHandler)})
		c.Keeper = k
		ctx, end := context.WithCancel(context.Background())
		ready, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			_ = k.Run(ctx, func() { close(ready) }) // fails where the test makes the directory fail
		}()
		<-ready
		t.Cleanup(func() {
			end()
			<-ended
		})
	}
}

// Meddling adds TEST.MEDDLE.
func Meddling(c *commands.Config) {
	c.Catalog = catalog.Of(append(catalog.Rows(), &catalog.Command{Name: "test.meddle", Arity: 1, Flags: catalog.FlagFast}))
	c.Users = acl.NewUsers(c.Catalog.ForRules())
}

// Client is a session and its connection.
type Client struct {
	*session.Session
	Conn *Conn
}

// Conn is a session's connection.
type Conn struct {
	Woken  chan struct{} // holds one wake-up
	Killed atomic.Bool
}

// Wake implements peer.Conn.
func (c *Conn) Wake() {
	select {
	case c.Woken <- struct{}{}:
	default:
	}
}

// Kill implements peer.Conn.
func (c *Conn) Kill() { c.Killed.Store(true) }

// Evict implements peer.Conn.
func (c *Conn) Evict() { c.Killed.Store(true) }

// WithPassword makes the default user require a password.
func WithPassword(password string) func(*commands.Config) {
	return func(c *commands.Config) { c.Users.SetDefaultPassword(password) }
}

// WithReading sets how max_burst is read.
func WithReading(reading funnel.Reading) func(*commands.Config) {
	return func(c *commands.Config) { c.Reading = reading }
}

// Session returns a new client.
func (r *Harness) Session() *Client {
	return r.SessionOf(peer.Peer{Addr: "192.0.2.1:5000", LocalAddr: "192.0.2.2:6380"})
}

// SessionOf returns a new client with an address.
func (r *Harness) SessionOf(p peer.Peer) *Client {
	conn := &Conn{Woken: make(chan struct{}, 1)}
	return &Client{r.Engine.NewSession(p, conn), conn}
}

// Stats returns the store's figures.
func (r *Harness) Stats() (st store.Stats) {
	r.Config.Store.UpdateStats(&st)
	return st
}

// Feed feeds a session until its status is not peer.More, and returns what it left of in.
func Feed(t testing.TB, s *Client, in string) (replies, left string, status peer.Status) {
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

// Converse is Feed that waits for wake-ups while the session is Waiting.
func Converse(t testing.TB, s *Client, in string) (replies, left string, status peer.Status) {
	t.Helper()
	var all strings.Builder
	for left = in; ; <-s.Conn.Woken {
		replies, left, status = Feed(t, s, left)
		all.WriteString(replies)
		if status != peer.Waiting {
			return all.String(), left, status
		}
	}
}

// Say feeds whole commands and returns their replies. The session must then need input.
func Say(t testing.TB, s *Client, in string) string {
	t.Helper()
	replies, left, status := Converse(t, s, in)
	if left != "" || status != peer.NeedInput {
		t.Errorf("%.200q: status %d, and left %.200q", in, status, left)
	}
	return replies
}

// Expect feeds whole commands and checks their replies.
func Expect(t testing.TB, s *Client, in, want string) {
	t.Helper()
	if got := Say(t, s, in); got != want {
		t.Errorf("%.300q: got %q, want %q", in, got, want)
	}
}

// ExpectLike is Expect with … in want for any text.
func ExpectLike(t testing.TB, s *Client, in, want string) {
	t.Helper()
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
	if got := Say(t, s, in); !regexp.MustCompile(`(?s)^` + pattern + `$`).MatchString(got) {
		t.Errorf("%.300q: got %q, want %q", in, got, want)
	}
}

// Pong is the reply to PING.
const Pong = "+PONG\r\n"

// SHAOf returns the SHA1 by which EVALSHA names a script.
func SHAOf(script string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(script))) }

// CallOf encodes a call of a command with a number of words, its name in mixed case.
func CallOf(c *catalog.Command, words int) string {
	args := make([]string, 0, words)
	for part := range strings.SplitSeq(c.FullName(), "|") {
		args = append(args, strings.ToUpper(part[:1])+part[1:])
	}
	for len(args) < words {
		args = append(args, "1")
	}
	return resptest.Encode(args...)
}

// Standing fixes the time at T0.
func Standing(c *commands.Config) { c.Now = func() int64 { return T0 } }

// NewScripts returns an engine for scripts on the real clock.
func NewScripts(limit time.Duration) *lua.Engine {
	start := time.Now()
	return scriptsOn(func() int64 { return int64(time.Since(start)) }, limit)
}

func scriptsOn(now func() int64, limit time.Duration) *lua.Engine {
	return lua.New(lua.Config{Now: now, TimeLimit: limit, Native: sharedCatalog().Batched(), Version: catalog.RedisVersion})
}

// WithTimeLimit bounds the time of scripts.
func WithTimeLimit(d time.Duration) func(*commands.Config) {
	return func(c *commands.Config) { c.Scripts = NewScripts(d) }
}

// WithQuickScripts has scripts take no time, so that whether they hold their keys does not depend on the
// machine.
func WithQuickScripts(c *commands.Config) {
	c.Scripts = scriptsOn(func() int64 { return 0 }, time.Minute)
}

// WithLimitFor bounds the time of scripts if a test's input has an endless one.
func WithLimitFor(in string) func(*commands.Config) {
	if strings.Contains(in, "while true") {
		return WithTimeLimit(5 * time.Millisecond)
	}
	return func(*commands.Config) {}
}

// UserHarness is a harness with an ACL file.
type UserHarness struct {
	*Harness
	t    testing.TB
	file string
}

// NewUserHarness returns a harness whose ACL file has the given lines.
func NewUserHarness(t testing.TB, lines ...string) *UserHarness {
	t.Helper()
	return NewUserHarnessOf(t, func(*commands.Config) {}, lines...)
}

// NewUserHarnessOf is NewUserHarness with a changed configuration.
func NewUserHarnessOf(t testing.TB, change func(*commands.Config), lines ...string) *UserHarness {
	t.Helper()
	r := &UserHarness{t: t, file: filepath.Join(t.TempDir(), "users.acl")}
	r.Harness = New(change, func(c *commands.Config) { c.ACLFile = r.file })
	r.Rewrite(lines...)
	return r
}

// Write replaces the file's lines.
func (r *UserHarness) Write(lines ...string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// Rewrite changes the file and reloads it.
func (r *UserHarness) Rewrite(lines ...string) {
	r.t.Helper()
	r.Write(lines...)
	if err := r.Engine.ReloadUsers(); err != nil {
		r.t.Fatal(err)
	}
}

// Login returns a session of a user whose password is pw.
func (r *UserHarness) Login(user string) *Client {
	r.t.Helper()
	s := r.Session()
	if got := Say(r.t, s, "AUTH "+user+" pw\r\n"); got != "+OK\r\n" {
		r.t.Fatalf("AUTH %s: got %q", user, got)
	}
	return s
}
