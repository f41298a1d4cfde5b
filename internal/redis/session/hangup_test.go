package session

import (
	"maps"
	"runtime"
	"strings"
	"testing"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/shard"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// withConnection adds the commands about the connection.
func withConnection(c *execute.Config) {
	do := func(name string, f func(conn execute.Connection, args [][]byte) error) {
		c.Handlers[name] = execute.OnConnection(func(c execute.Call, conn execute.Connection, args [][]byte) error {
			err := f(conn, args)
			if err == nil {
				c.Reply().OK()
			}
			return err
		})
	}
	c.Handlers["monitor"] = execute.OnConnection(func(_ execute.Call, conn execute.Connection, _ [][]byte) error { return conn.Monitor() })
	do("reset", func(conn execute.Connection, _ [][]byte) error { conn.Reset(); return nil })
	do("client|reply", func(conn execute.Connection, args [][]byte) error { conn.Replies(string(args[2]) == "ON"); return nil })
	do("select", func(conn execute.Connection, args [][]byte) error {
		db, err := argument.Database(args[1], c.Databases)
		if err == nil {
			conn.Select(db)
		}
		return err
	})
	do("client|kill", func(conn execute.Connection, _ [][]byte) error {
		conn.Kill(c.Clients.All(func(other *clients.Client) bool { return other != conn.Client() }))
		return nil
	})
}

// TestExecThatIsCancelled leaves nothing: the next transaction does not depend on its watched keys.
func TestExecThatIsCancelled(t *testing.T) {
	r := newHarness(t)
	s, other := r.session(), r.session()
	s.say(t, "WATCH w\r\nMULTI\r\nDBSIZE\r\n")
	r.Background.Take(t.Context(), background.Who{})
	const behind = "MULTI\r\nCL.THROTTLE a 4 1 10\r\nEXEC\r\n"
	if _, left, status := s.feed("EXEC\r\n" + behind); status != peer.Waiting || left != behind {
		t.Fatalf("status %d, left %q", status, left)
	}
	s.HungUp(peer.HalfClosed)
	other.say(t, "CL.THROTTLE w 4 1 10\r\n")
	got, _, _ := s.converse(behind)
	want := "-" + string(reply.ErrCancelled) + "\r\n+OK\r\n+QUEUED\r\n*1\r\n" + resptest.Ints(0, 5, 4, -1, 10)
	if info := s.x.Client.Info(); got != want || info.Queued != -1 || info.Watched != 0 {
		t.Errorf("got %q, want %q; %d are queued and %d watched", got, want, info.Queued, info.Watched)
	}
}

// TestPauseThatIsCancelled counts as no work.
func TestPauseThatIsCancelled(t *testing.T) {
	r := newHarness(t, withLater)
	r.Config.Records.Slowness.SetSlowlog(1)
	s := r.session()
	s.feed("TEST.LATER\r\n")
	s.HungUp(peer.HalfClosed)
	if got := s.say(t, ""); !strings.HasPrefix(got, "-ERR ") {
		t.Errorf("got %q", got)
	}
	for _, c := range r.Config.Records.Commands() {
		if c.Command.Name == "test.later" && (c.Calls != 1 || c.Failed != 1 || c.Ns != 0) {
			t.Errorf("counted %+v", c)
		}
	}
	if n := r.Config.Records.Slowlog.Len(); n != 0 {
		t.Errorf("%d slow calls", n)
	}
}

// TestScriptOutcomes counts how scripts end, also in EXEC.
func TestScriptOutcomes(t *testing.T) {
	r := newHarness(t)
	s := r.session()
	for _, tt := range []struct {
		in   string
		ends bool // by its client's end
		want map[string]uint64
	}{
		{"EVAL \"return 1\" 0\r\n", false, map[string]uint64{"completed": 1, "failed": 0, "ended": 0}},
		{"EVAL \"error('x')\" 0\r\n", false, map[string]uint64{"completed": 1, "failed": 1, "ended": 0}},
		{"EVAL \"while true do end\" 0\r\n", true, map[string]uint64{"completed": 1, "failed": 1, "ended": 1}},
		{"MULTI\r\nEVAL \"return 1\" 0\r\nEVAL \"error('x')\" 0\r\nEXEC\r\n", false, map[string]uint64{"completed": 2, "failed": 2, "ended": 1}},
	} {
		if _, _, status := s.feed(tt.in); status != peer.Waiting {
			t.Fatalf("%q: status %d", tt.in, status)
		}
		if tt.ends {
			s.HungUp(peer.Reset)
		}
		<-s.woken
		s.say(t, "")
		if got := r.Config.Records.Stats().Scripts; !maps.Equal(got, tt.want) {
			t.Errorf("%q: counted %v, want %v", tt.in, got, tt.want)
		}
	}
}

// withLaterStore returns a store that answers batches later.
func withLaterStore() (*storetest.LaterStore, func(*execute.Config)) {
	later := storetest.Later(shard.New())
	return later, func(c *execute.Config) { c.Store = later }
}

// TestClientThatIsGoneWhileAStoreAnswers: its batch and the commands after it are executed unless its session
// is closed.
func TestClientThatIsGoneWhileAStoreAnswers(t *testing.T) {
	const in = "CL.THROTTLE a 4 1 10\r\nCL.THROTTLE b 4 1 10\r\nPING\r\n"
	const behind = "CL.THROTTLE a 4 1 10\r\n"
	first, second := resptest.Ints(0, 5, 4, -1, 10), resptest.Ints(0, 5, 3, -1, 20)
	for _, tt := range []struct {
		name   string
		hangUp []peer.Hangup
	}{
		{name: "half closed", hangUp: []peer.Hangup{peer.HalfClosed}},
		{name: "reset", hangUp: []peer.Hangup{peer.Reset}},
		{name: "one behind the other", hangUp: []peer.Hangup{peer.HalfClosed, peer.Reset}},
		{name: "not at all"},
	} {
		later, with := withLaterStore()
		r := newHarness(t, with)
		s := r.session()
		later.Hold()
		replies, left, status := s.feed(in + behind)
		if replies != "" || left != behind || status != peer.Waiting {
			t.Fatalf("%s: got %q, left %q, status %d", tt.name, replies, left, status)
		}
		for _, how := range tt.hangUp {
			s.HungUp(how)
		}
		if replies, again, status := s.feed(left); replies != "" || again != left || status != peer.Waiting {
			t.Errorf("%s: got %q, left %q, status %d before the store has answered", tt.name, replies, again, status)
		}
		later.Release()
		<-s.woken
		if got, _, _ := s.converse(left); got != first+first+pong+second {
			t.Errorf("%s: got %q", tt.name, got)
		}

		closed := r.session()
		later.Hold()
		closed.feed("CL.THROTTLE c 4 1 10\r\nPING\r\n" + behind)
		for _, how := range tt.hangUp {
			closed.HungUp(how)
		}
		if closed.Close(); closed.pending != nil {
			t.Errorf("%s: what is closed waits", tt.name)
		}
		later.Release()
		for later.Waiting() > 0 {
			runtime.Gosched()
		}
		s.say(t, "CL.THROTTLE z 4 1 10\r\n") // decided behind it
		if n := keys(r); n != 4 || len(closed.woken) != 0 {
			t.Errorf("%s: %d keys, woken %d times", tt.name, n, len(closed.woken))
		}
	}
}

// TestMonitorBehindABatch: a client that enters MONITOR sees a command that waited.
func TestMonitorBehindABatch(t *testing.T) {
	later, with := withLaterStore()
	r := newHarness(t, with, withConnection)
	s, monitor := r.session(), r.session()
	later.Hold()
	s.feed("CL.THROTTLE a 4 1 10\r\nPING held\r\n")
	monitor.say(t, "MONITOR\r\n")
	later.Release()
	<-s.woken
	if got := s.say(t, "PING\r\n"); !strings.HasSuffix(got, pong+pong) {
		t.Errorf("got %q", got)
	}
	if got := monitor.say(t, ""); !strings.Contains(got, "\"PING\" \"held\"\r\n") || strings.Count(got, "\r\n") != 2 {
		t.Errorf("shown %q", got)
	}
}

// TestLaterStoreLeavesNothing: sessions keep no reference to an answered batch or its input.
func TestLaterStoreLeavesNothing(t *testing.T) {
	_, with := withLaterStore()
	r := newHarness(t, with)
	s := r.session()
	for range 3 {
		s.say(t, strings.Repeat("CL.THROTTLE k 299 1 60\r\n", 200)+"PING\r\nCL.THROTTLE k 299 1 60\r\n"+"ECHO "+strings.Repeat("x", 1000)+"\r\n")
	}
	if s.pending != nil || s.x.Scratch != nil || s.x.W.Buf != nil {
		t.Errorf("the session keeps %v, %v and %.20q", s.pending, s.x.Scratch, s.x.W.Buf)
	}
	checkScratch(t, s)
}
