package command

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/funnel"
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

// clock stands still unless it is moved, and counts how often it was read.
type clock struct {
	nowNs    int64
	readings int
	stepNs   int64 // it goes forward by that at each reading
}

func (c *clock) now() int64 {
	c.readings++
	c.nowNs += c.stepNs
	return c.nowNs
}

func newRig(change ...func(*Config)) *rig {
	r := &rig{clock: clock{nowNs: t0}}
	config := Config{
		Store:       shard.New(),
		Now:         r.clock.now,
		Reading:     funnel.Burst,
		Databases:   16,
		MaxKeyBytes: testMaxKeyBytes,
		Limits:      resp.Limits{MaxArgs: 1 << 20, MaxCommandBytes: 4 << 20},
		Version:     "1.2.3",
		Settings:    []Setting{{"databases", "16"}, {"maxclients", "100"}, {"save", ""}},
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

func withPassword(password string) func(*Config) {
	return func(c *Config) { c.Password = password }
}

func withReading(reading funnel.Reading) func(*Config) {
	return func(c *Config) { c.Reading = reading }
}

func (r *rig) session() *Session {
	return r.engine.NewSession(Peer{Addr: "192.0.2.1:5000", LocalAddr: "192.0.2.2:6380"}, onWake(func() {}))
}

// onWake is a connection that cannot be killed.
type onWake func()

func (f onWake) Wake() { f() }
func (onWake) Kill()   {}

func (r *rig) stats() (st shard.Stats) {
	r.engine.config.Store.UpdateStats(&st)
	return st
}

// feed feeds a session until it wants something else than to be fed on, and returns what it left of in.
func feed(t testing.TB, s *Session, in string) (replies, left string, status Status) {
	t.Helper()
	buf := []byte(in)
	var out []byte
	for {
		consumed, appended, status := s.Feed(buf, out)
		if consumed < 0 || consumed > len(buf) || !bytes.HasPrefix(appended, out) {
			t.Fatalf("%.200q: consumed %d of %d bytes, replied %.200q after %.200q", in, consumed, len(buf), appended, out)
		}
		buf, out = buf[consumed:], appended
		if status != More {
			return string(out), string(buf), status
		}
	}
}

// converse is feed, and waits where the session does.
func converse(t testing.TB, s *Session, in string) (replies, left string, status Status) {
	t.Helper()
	woken := make(chan struct{}, 1)
	s.conn = onWake(func() { woken <- struct{}{} })
	replies, left, status = feed(t, s, in)
	for status == Waiting {
		<-woken
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
	if left != "" || status != NeedInput {
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
func five(numbers ...int) string {
	var b strings.Builder
	b.WriteString("*" + strconv.Itoa(len(numbers)) + "\r\n")
	for _, n := range numbers {
		b.WriteString(":" + strconv.Itoa(n) + "\r\n")
	}
	return b.String()
}

const pong = "+PONG\r\n"
