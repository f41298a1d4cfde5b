package session

import (
	"context"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// TestWaiting steps through a pipeline.
func TestWaiting(t *testing.T) {
	const throttle = "CL.THROTTLE k 1 1 60\r\n"
	type step struct {
		open    int    // number of open gates
		in      string // input after what was left
		left    string
		replies string
		status  peer.Status
	}
	first, second := resptest.Ints(0, 2, 1, -1, 60), resptest.Ints(0, 2, 0, -1, 120)
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"alone", []step{
			{in: "TEST.WAIT a\r\n", status: peer.Waiting},
			{open: 1, replies: "$1\r\na\r\n"},
			{in: "PING\r\n", replies: pong},
		}},
		{"replies stay in order", []step{
			{in: throttle + "TEST.WAIT a\r\n" + throttle + "PING\r\n", left: throttle + "PING\r\n", replies: first, status: peer.Waiting},
			{open: 1, replies: "$1\r\na\r\n" + second + pong},
		}},
		{"nothing is executed meanwhile", []step{
			{in: "TEST.WAIT a\r\nCL.THROTTLE k 1 1 60\r\nPING\r\n", left: "CL.THROTTLE k 1 1 60\r\nPING\r\n", status: peer.Waiting},
			{left: "CL.THROTTLE k 1 1 60\r\nPING\r\n", status: peer.Waiting},
			{open: 1, replies: "$1\r\na\r\n" + first + pong},
		}},
		{"several", []step{
			{in: "TEST.WAIT a\r\nTEST.WAIT b\r\nPING\r\nTEST.WAIT c\r\n", left: "TEST.WAIT b\r\nPING\r\nTEST.WAIT c\r\n", status: peer.Waiting},
			{open: 1, left: "PING\r\nTEST.WAIT c\r\n", replies: "$1\r\na\r\n", status: peer.Waiting},
			{open: 1, replies: "$1\r\nb\r\n" + pong, status: peer.Waiting},
			{open: 1, replies: "$1\r\nc\r\n"},
		}},
		{"woken too early", []step{
			{in: "TEST.WAIT a\r\nPING\r\n", left: "PING\r\n", status: peer.Waiting},
			{left: "PING\r\n", status: peer.Waiting},
			{left: "PING\r\n", status: peer.Waiting},
			{open: 1, replies: "$1\r\na\r\n" + pong},
		}},
		{"woken before it waits", []step{
			{open: 1},
			{in: "TEST.WAIT a\r\n", status: peer.Waiting},
			{replies: "$1\r\na\r\n"},
		}},
		{"more comes in meanwhile", []step{
			{in: "TEST.WAIT a\r\nPI", left: "PI", status: peer.Waiting},
			{in: "NG\r\n*1\r\n$4\r\nPI", left: "PING\r\n*1\r\n$4\r\nPI", status: peer.Waiting},
			{open: 1, left: "*1\r\n$4\r\nPI", replies: "$1\r\na\r\n" + pong},
			{in: "NG\r\n", replies: pong},
		}},
		{"a protocol error behind it", []step{
			{in: "TEST.WAIT a\r\n*x\r\n", left: "*x\r\n", status: peer.Waiting},
			{open: 1, left: "*x\r\n", replies: "$1\r\na\r\n-ERR Protocol error: invalid multibulk length\r\n", status: peer.Close},
		}},
		{"a web page behind it", []step{
			{in: "TEST.WAIT a\r\nPOST / HTTP/1.1\r\nFLUSHALL\r\n", left: "POST / HTTP/1.1\r\nFLUSHALL\r\n", status: peer.Waiting},
			{left: "POST / HTTP/1.1\r\nFLUSHALL\r\n", status: peer.Waiting},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newHarness(t)
			s, left := r.session(), ""
			for i, step := range tt.steps {
				r.gate.pass(step.open)
				replies, after, status := s.feed(left + step.in)
				if replies != step.replies || after != step.left || status != step.status {
					t.Errorf("step %d: got %q, left %q, status %d; want %+v", i, replies, after, status, step)
				}
				left = after
			}
		})
	}
}

// TestWakeFromAnotherGoroutine drives sessions as a connection does, while others wake them, sometimes too
// early or twice.
func TestWakeFromAnotherGoroutine(t *testing.T) {
	const waits = 200
	r := newHarness(t)
	s := r.session()
	waiting := make(chan struct{}, waits)
	go func() {
		for range waits {
			<-waiting
			s.Wake() // early
			r.gate.pass(1)
			s.Wake()
		}
	}()
	buf := []byte(strings.Repeat("TEST.WAIT x\r\nCL.THROTTLE k 999 1 1\r\n", waits))
	var out []byte
	for status, answered := peer.Waiting, 0; status == peer.Waiting || len(buf) > 0; {
		var n int
		n, out, status = s.Feed(buf, out)
		buf = buf[n:]
		if status != peer.Waiting {
			continue
		}
		if done := strings.Count(string(out), "$1\r\nx\r\n"); done >= answered { // another one waits
			waiting <- struct{}{}
			answered = done + 1
		}
		<-s.woken
	}
	all := resptest.ParseAll(t, string(out))
	if len(all) != 2*waits {
		t.Fatalf("%d replies, want %d", len(all), 2*waits)
	}
	for i := 0; i < len(all); i += 2 {
		if all[i].Text != "x" || len(all[i+1].Elements) != 5 || all[i+1].Elements[2].Number != int64(999-i/2) {
			t.Fatalf("replies %d and %d: got %+v, %+v", i, i+1, all[i], all[i+1])
		}
	}
}

// TestExecOfAClientThatIsGone respects its watched keys, and does not begin after waiting for its turn.
func TestExecOfAClientThatIsGone(t *testing.T) {
	r := newHarness(t) // one at a time
	other := r.session()
	for _, in := range []string{"WATCH w\r\n", ""} {
		s := r.session()
		s.say(t, in+"MULTI\r\nCL.THROTTLE a 4 1 10\r\nDBSIZE\r\n")
		r.Background.Take(t.Context(), background.Who{})
		s.wait(t, "EXEC\r\n")
		s.Close()
		<-s.woken
		r.Background.Give(background.Who{})
		if got := keys(r); got != 0 {
			t.Errorf("%q: it was executed", in)
		}
	}
	// The client leaves after EXEC began, before it checks its watched keys.
	s := r.session()
	s.say(t, "WATCH w\r\nMULTI\r\nCL.THROTTLE a 4 1 10\r\n")
	x := execute.NewExecution(&s.x, s.multi.Steps, s.watched, "EXEC")
	x.MakePlan()
	ctx, cancel := context.WithCancel(t.Context())
	s.Close()
	cancel()
	other.say(t, "CL.THROTTLE w 4 1 10\r\n")
	if x.Run(ctx); x.Executor != nil {
		t.Error("it was executed, though a watched key had changed")
	}
}

// TestCloseLeavesNothing of a waiting session: no entry in the register, and no watch in the store.
func TestCloseLeavesNothing(t *testing.T) {
	r := newHarness(t)
	other := r.session()
	var watches []store.Watch
	for i := range 100 {
		s := r.session()
		s.say(t, "WATCH a b c\r\nMULTI\r\nPING\r\nDBSIZE\r\n")
		watches = append(watches, s.watched.Watch)
		if i%2 == 0 {
			s.feed("EXEC\r\n")
			defer func() { <-s.woken }()
		}
		s.Close()
		if s.watched != nil || s.pending != nil {
			t.Fatal("a closed session watches or waits")
		}
	}
	if n := r.Config.Clients.Len(); n != 1 {
		t.Errorf("%d clients are registered", n)
	}
	r.Live.All.FlushAll()
	other.say(t, "CL.THROTTLE a 1 1 1\r\nCL.THROTTLE b 1 1 1\r\nCL.THROTTLE c 1 1 1\r\n")
	for _, w := range watches {
		if w.Dirty(t0) {
			t.Fatal("a closed watch has noticed a change")
		}
	}
}

func keys(r *harness) int {
	var st store.Stats
	r.Config.Store.UpdateStats(&st)
	return st.Keys
}

// TestScratchRefersToNoInput: shared scratch space must not keep a large input buffer alive.
func TestScratchRefersToNoInput(t *testing.T) {
	r := newHarness(t)
	s := r.session()
	s.say(t, strings.Repeat("CL.THROTTLE k 1 1 1\r\n", 300)+"PING "+strings.Repeat("x", 1000)+"\r\n")
	checkScratch(t, s)
}

// checkScratch fails if scratch space refers to an argument or a key.
func checkScratch(t *testing.T, s *client) {
	t.Helper()
	s.x.Begin()
	defer s.x.End()
	shared := s.x.Scratch
	for _, arg := range shared.Args[:cap(shared.Args)] {
		if arg != nil {
			t.Fatalf("an argument is left: %.20q", arg)
		}
	}
	batch := reflect.ValueOf(shared).Elem().FieldByName("batch")
	for i := range batch.Cap() {
		if name := batch.Slice(0, batch.Cap()).Index(i).FieldByName("Key").FieldByName("Name"); !name.IsNil() {
			t.Fatalf("a key is left: %.20q", name.Bytes())
		}
	}
}

// TestHungUp: a client that sends no more neither delays others nor waits for a turn, but gets the reply of
// running work; if it is gone, that ends too. Commands after it are always executed.
func TestHungUp(t *testing.T) {
	const behind = "CL.THROTTLE behind 1 1 60\r\nPING\r\n"
	executed := resptest.Ints(0, 2, 1, -1, 60) + pong
	cancelled := "-" + string(reply.ErrCancelled) + "\r\n"
	const spin = "EVAL \"while true do end\" 0\r\n"
	for _, tt := range []struct {
		name, in string
		busy     bool // all slots are taken
		runs     bool // the work has begun
		how      peer.Hangup
		want     string // prefix of the replies; empty if it goes on waiting
	}{
		{name: "a time, half closed", in: "TEST.LATER\r\n", how: peer.HalfClosed, want: cancelled + executed},
		{name: "a time, reset", in: "TEST.LATER\r\n", how: peer.Reset, want: cancelled + executed},
		{name: "a wrong password, reset", in: "TEST.LOGIN\r\n", how: peer.Reset, want: cancelled + executed},
		{name: "a turn, half closed", in: spin, busy: true, how: peer.HalfClosed, want: cancelled + executed},
		{name: "a turn, reset", in: spin, busy: true, how: peer.Reset, want: cancelled + executed},
		{name: "a script, half closed", in: spin, runs: true, how: peer.HalfClosed},
		{name: "a script, reset", in: spin, runs: true, how: peer.Reset, want: "-ERR script was ended: its client has gone, or the server is shutting down"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newHarness(t, with(map[string]execute.Handler{
				"test.later": testLater,
				"test.login": execute.OnConnection(func(_ execute.Call, conn execute.Connection, _ [][]byte) error {
					return conn.AfterPause(time.Hour, reply.ErrWrongPass)
				}),
			}))
			s := r.session()
			if tt.busy {
				r.Scripts.Take(t.Context(), background.Who{})
			}
			_, left, status := s.feed(tt.in + behind)
			if status != peer.Waiting || left != behind {
				t.Fatalf("status %d, left %q", status, left)
			}
			p := s.pending.wait.(*task)
			for tt.runs && !p.Running() {
				runtime.Gosched()
			}
			s.HungUp(tt.how)
			if tt.want == "" {
				if _, ended := p.Outcome(); ended {
					t.Error("it was cancelled")
				}
				s.Close()
				<-s.woken
				return
			}
			<-s.woken
			replies, left, _ := s.converse(left)
			if !strings.HasPrefix(replies, tt.want) || !strings.HasSuffix(replies, executed) || left != "" {
				t.Errorf("replied %q, left %q", replies, left)
			}
		})
	}
}

// TestEndBackground: running and waiting work ends early, and says so.
func TestEndBackground(t *testing.T) {
	for _, in := range []string{"EVAL \"while true do end\" 0\r\n", "TEST.ENDLESS\r\n", "TEST.NEVER\r\n", "MULTI\r\nEVAL \"while true do end\" 1 k\r\nEXEC\r\n"} {
		r := newHarness(t, with(map[string]execute.Handler{
			"test.endless": execute.Plain(func(c execute.Call, _ [][]byte) error {
				return c.Background(func(ctx context.Context, _ int64) { <-ctx.Done() }, func(execute.Call) error { return nil })
			}),
			"test.never": execute.Plain(func(c execute.Call, _ [][]byte) error {
				return c.Until(func(context.Context, func()) {}, 0, func(execute.Call) error { return nil })
			}),
		}))
		s, waits := r.session(), r.session()
		_, left, status := s.feed(in)
		_, leftOfOther, other := waits.feed(in)
		if status != peer.Waiting || other != peer.Waiting {
			t.Fatalf("%q: the status is %v and %v", in, status, other)
		}
		r.EndBackground()
		for _, one := range []struct {
			*client
			left string
		}{{s, left}, {waits, leftOfOther}} {
			<-one.woken
			if replies, _, status := one.feed(one.left); status != peer.NeedInput || !strings.Contains(replies, "shutting down") {
				t.Errorf("%q: got %q, %v", in, replies, status)
			}
		}
	}
}
