package session_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store/gate"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

const (
	valueBytes = 64 << 10
	turnBytes  = 2*execute.PieceBytes + valueBytes // of replies, at most
)

// longValues returns a client, and the keys and values of n other texts of 64 KB.
func longValues(t *testing.T, n int, change ...func(*commands.Config)) (s *commandstest.Client, values []string) {
	t.Helper()
	s = commandstest.New(change...).Session()
	for i := range n {
		values = append(values, strings.Repeat(string(rune('a'+i)), valueBytes))
		commandstest.Expect(t, s, resptest.Encode("SET", "v"+strconv.Itoa(i), values[i]), "+OK\r\n")
	}
	return s, values
}

// inTurns feeds commands to a session whose replies go to a buffer of the driver's, and calls between after
// each turn. It returns the replies and the most bytes of a turn.
func inTurns(t *testing.T, s *commandstest.Client, in string, between func(turn int)) (replies string, most int, status peer.Status) {
	t.Helper()
	var all strings.Builder
	left, out := []byte(in), make([]byte, 0, 2*turnBytes)
	for turn := 0; ; turn++ {
		n, replies, status := s.Feed(left, out)
		left = left[n:]
		all.Write(replies)
		most = max(most, len(replies))
		if between != nil {
			between(turn)
		}
		switch status {
		case peer.More:
		case peer.Waiting:
			<-s.Conn.Woken
		default:
			return all.String(), most, status
		}
	}
}

func bulk(text string) string { return "$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n" }

// TestLongRepliesComeInTurns, between which others are served, however they were asked for.
func TestLongRepliesComeInTurns(t *testing.T) {
	const calls = 100
	get := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(resptest.Encode("GET", "v"+strconv.Itoa(i%4)))
		}
		return b.String()
	}
	keys := make([]string, calls)
	for i := range keys {
		keys[i] = "v" + strconv.Itoa(i%4)
	}
	many := "for i = 1, 40 do v[i] = redis.call('GET', KEYS[1 + i % 4]) end return v"
	for _, tt := range []struct {
		name, before, in string
		replies          int // values
		head             string
	}{
		{"a pipeline", "", get(calls), calls, ""},
		{"MGET", "", resptest.Encode(append([]string{"MGET"}, keys...)...), calls, "*100\r\n"},
		{"MGET of more", "", resptest.Encode(append([]string{"MGET"}, append(keys, append(keys, keys...)...)...)...), 3 * calls, "*300\r\n"},
		{"EXEC", "MULTI\r\n" + get(calls), "EXEC\r\n", calls, "*100\r\n"},
		{"EXEC of MGET", "MULTI\r\n" + resptest.Encode(append([]string{"MGET"}, keys...)...), "EXEC\r\n", calls, "*1\r\n*100\r\n"},
		{"EXEC of what can not be repeated", "MULTI\r\nCLIENT SETNAME x\r\n" + get(calls), "EXEC\r\n", calls, "*101\r\n+OK\r\n"},
		{"a script", "", resptest.Encode("EVAL", "local v = {} "+many, "4", "v3", "v0", "v1", "v2"), 40, "*40\r\n"},
		{"EXEC of a script", "MULTI\r\n" + resptest.Encode("EVAL", "local v = {} "+many, "4", "v3", "v0", "v1", "v2"), "EXEC\r\n", 40, "*1\r\n*40\r\n"},
	} {
		s, values := longValues(t, 4)
		commandstest.Say(t, s, tt.before)
		var want strings.Builder
		want.WriteString(tt.head)
		for i := range tt.replies {
			want.WriteString(bulk(values[i%4]))
		}
		want.WriteString(commandstest.Pong)
		got, most, status := inTurns(t, s, tt.in+"PING\r\n", nil)
		if got != want.String() || status != peer.NeedInput {
			t.Errorf("%s: status %d, got %d bytes, want %d: %.60q", tt.name, status, len(got), want.Len(), got)
		}
		if most > turnBytes {
			t.Errorf("%s: %d bytes of replies in a turn", tt.name, most)
		}
		if info := commandstest.Say(t, s, "CLIENT INFO\r\n"); !strings.Contains(info, " argv-mem=0 ") || !strings.Contains(info, " omem=0 ") {
			t.Errorf("%s: afterwards %s", tt.name, info)
		}
	}
}

// TestLongExecMovesAside: an EXEC whose reply is long is undone and executed once, in the background, and
// depends on the watched keys there, too.
func TestLongExecMovesAside(t *testing.T) {
	for _, change := range []bool{false, true} {
		r := commandstest.New()
		s, other := r.Session(), r.Session()
		text := strings.Repeat("x", valueBytes)
		commandstest.Say(t, s, resptest.Encode("SET", "v", text)+"WATCH w\r\nMULTI\r\nINCR n\r\n"+strings.Repeat("GET v\r\n", 50)+"INCR n\r\n")
		if _, _, status := commandstest.Feed(t, s, "EXEC\r\n"); status != peer.Waiting {
			t.Fatalf("status %d", status)
		}
		if change { // before or after the attempt in the background: one step either way
			commandstest.Say(t, other, "INCR n\r\n")
		}
		<-s.Conn.Woken
		got := commandstest.Say(t, s, "")
		first, last := ":1\r\n", ":2\r\n"
		if change && strings.HasPrefix(got, "*52\r\n:2\r\n") {
			first, last = ":2\r\n", ":3\r\n"
		}
		if want := "*52\r\n" + first + strings.Repeat(bulk(text), 50) + last; got != want {
			t.Errorf("got %d bytes, want %d: %.60q", len(got), len(want), got)
		}
		want := map[bool]string{false: "2", true: "3"}[change]
		commandstest.Expect(t, s, "GET n\r\n", bulk(want))
	}
}

// TestExecOfLongValues: commands with short replies that copy values move aside, and those that only look at
// them copy none.
func TestExecOfLongValues(t *testing.T) {
	const calls = 200
	for command, aside := range map[string]bool{"STRLEN v0": false, "OBJECT ENCODING v0": false, "RENAME v0 w\r\nRENAME w v0": true} {
		s, _ := longValues(t, 1)
		commandstest.Say(t, s, "MULTI\r\n"+strings.Repeat(command+"\r\n", calls))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, status := commandstest.Feed(t, s, "EXEC\r\n")
		runtime.ReadMemStats(&after)
		if aside != (status == peer.Waiting) {
			t.Errorf("%s: status %d", command, status)
		}
		if n := after.TotalAlloc - before.TotalAlloc; !aside && n > calls*valueBytes/4 {
			t.Errorf("%s: %d bytes are allocated", command, n)
		}
		if status == peer.Waiting {
			<-s.Conn.Woken
			if got, want := commandstest.Say(t, s, ""), "*400\r\n"+strings.Repeat("+OK\r\n", 2*calls); got != want {
				t.Errorf("%s got %.80q", command, got)
			}
		}
		commandstest.Expect(t, s, "STRLEN v0\r\nOBJECT ENCODING v0\r\n", ":65536\r\n$3\r\nraw\r\n")
	}
}

// TestTooLongExecIsNotExecuted: nothing is half done, and little more than the bound is built.
func TestTooLongExecIsNotExecuted(t *testing.T) {
	const most = 1 << 20
	s, _ := longValues(t, 4, func(c *commands.Config) { c.MaxReplyBytes = most })
	commandstest.Say(t, s, "MULTI\r\nSET before 1\r\nCL.THROTTLE t 4 1 10\r\n"+strings.Repeat("GET v0\r\nGET v1\r\nGET v2\r\nGET v3\r\n", 100)+"SET behind 1\r\n")
	var begun, ended runtime.MemStats
	runtime.ReadMemStats(&begun)
	want := "-" + reply.ExecAborted(reply.TooLongTransaction(most)).Error() + "\r\n"
	commandstest.Expect(t, s, "EXEC\r\n", want)
	runtime.ReadMemStats(&ended)
	if n := ended.TotalAlloc - begun.TotalAlloc; n > 8*most {
		t.Errorf("%d bytes are allocated", n)
	}
	commandstest.Expect(t, s, "EXISTS before behind t\r\n", ":0\r\n")
	commandstest.Expect(t, s, "MULTI\r\nMGET"+strings.Repeat(" v0 v1 v2 v3", 3)+"\r\nMGET v0 v1 v2 v3\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n"+want)
}

// TestLongValuesAllocateLittle: at most one copy, of a value that is not in one piece in the store.
func TestLongValuesAllocateLittle(t *testing.T) {
	s, values := longValues(t, 1)
	out := make([]byte, 0, 4*valueBytes)
	in := []byte(resptest.Encode("GET", "v0"))
	var before, after runtime.MemStats
	for range 2 { // the first time its buffers are made
		runtime.ReadMemStats(&before)
		for range 100 {
			_, got, _ := s.Feed(in, out)
			if len(got) != len(bulk(values[0])) {
				t.Fatalf("got %d bytes", len(got))
			}
		}
		runtime.ReadMemStats(&after)
	}
	if n := int(after.TotalAlloc-before.TotalAlloc) / 100; n > 3*valueBytes/2 {
		t.Errorf("%d bytes are allocated for a value", n)
	}
}

// TestPiecesAndTheConversation: what was asked for before, behind or about a long reply.
func TestPiecesAndTheConversation(t *testing.T) {
	gets := strings.Repeat("GET v0\r\n", 20)
	for _, tt := range []struct {
		name, in, want string // want with V for a value
		status         peer.Status
	}{
		{"a command behind them", gets + "SET x 1\r\nGET x\r\n", strings.Repeat("V", 20) + "+OK\r\n$1\r\n1\r\n", peer.NeedInput},
		{"a wrong one", gets + "GET\r\n", strings.Repeat("V", 20) + "-ERR wrong number of arguments for 'get' command\r\n", peer.NeedInput},
		{"not RESP", gets + "*x\r\n", strings.Repeat("V", 20) + "-ERR Protocol error: invalid multibulk length\r\n", peer.Close},
		{"without replies", "CLIENT REPLY OFF\r\n" + gets + "CLIENT REPLY ON\r\nPING\r\n", "+OK\r\n" + commandstest.Pong, peer.NeedInput},
		{"without one", "CLIENT REPLY SKIP\r\nMGET" + strings.Repeat(" v0", 20) + "\r\nPING\r\n", commandstest.Pong, peer.NeedInput},
		{"a key of another type", "CL.FIXEDWINDOW w 5 60\r\n" + strings.Repeat("GET v0\r\n", 3) + "GET w\r\nGET none\r\n", resptest.Ints(0, 5, 4, -1, 60) + "VVV-" + reply.ErrWrongType.Error() + "\r\n$-1\r\n", peer.NeedInput},
		{"QUIT", gets + "QUIT\r\nPING\r\n", strings.Repeat("V", 20) + "+OK\r\n", peer.Close},
		{"QUIT in EXEC", "MULTI\r\n" + gets + "QUIT\r\nEXEC\r\n", "+OK\r\n" + strings.Repeat("+QUEUED\r\n", 20) + "+OK\r\n", peer.Close},
	} {
		s, values := longValues(t, 1)
		got, most, status := inTurns(t, s, tt.in, nil)
		if want := strings.ReplaceAll(tt.want, "V", bulk(values[0])); got != want || status != tt.status || most > turnBytes {
			t.Errorf("%s: status %d, got %d bytes, want %d; %d in a turn; %.80q", tt.name, status, len(got), len(want), most, strings.ReplaceAll(got, bulk(values[0]), "V"))
		}
	}
}

// TestErrorsInPiecesAreCounted as any other.
func TestErrorsInPiecesAreCounted(t *testing.T) {
	s, _ := longValues(t, 1)
	_, _, _ = inTurns(t, s, "CL.FIXEDWINDOW w 5 60\r\n"+strings.Repeat("GET v0\r\n", 3)+"GET w\r\n", nil)
	if got := commandstest.Say(t, s, "INFO errorstats commandstats\r\n"); !strings.Contains(got, "errorstat_WRONGTYPE:count=1\r\n") ||
		!strings.Contains(got, "cmdstat_get:calls=4,") {
		t.Errorf("got %s", got)
	}
}

// TestMessagesWaitForPieces: a message is not sent within a reply.
func TestMessagesWaitForPieces(t *testing.T) {
	r := commandstest.New()
	s, other := r.Session(), r.Session()
	text := strings.Repeat("x", valueBytes)
	commandstest.Say(t, s, resptest.Encode("SET", "v", text)+"HELLO 3\r\nSUBSCRIBE __sentinel__:hello\r\n")
	got, _, _ := inTurns(t, s, "MGET"+strings.Repeat(" v", 20)+"\r\n", func(turn int) {
		if turn == 3 {
			commandstest.Say(t, other, "PUBLISH __sentinel__:hello hi\r\n")
		}
	})
	if want := "*20\r\n" + strings.Repeat(bulk(text), 20) + ">3\r\n$7\r\nmessage\r\n$18\r\n__sentinel__:hello\r\n$2\r\nhi\r\n"; got != want {
		t.Errorf("got %q", strings.ReplaceAll(got, text, "V"))
	}
}

// lateDisk is a Keeper that confirms when a test does.
type lateDisk struct {
	execute.Keeper
	gate    *gate.Gate
	confirm []func(kept bool)
}

func (d *lateDisk) Gate() *gate.Gate { return d.gate }

func (d *lateDisk) Confirms() bool { return true }

func (d *lateDisk) Confirm(done func(kept bool)) { d.confirm = append(d.confirm, done) }

func (d *lateDisk) end(kept bool) {
	for _, done := range d.confirm {
		done(kept)
	}
	d.confirm = nil
}

// TestPiecesWaitForTheDisk: the whole reply of an EXEC that reports a change waits for it, or is an error.
func TestPiecesWaitForTheDisk(t *testing.T) {
	for _, kept := range []bool{true, false} {
		d := &lateDisk{}
		s := commandstest.New(func(c *commands.Config) {
			d.gate = gate.New(nil, c.Now)
			c.Keeper = d
		}).Session()
		text := strings.Repeat("x", valueBytes)
		replies, left, status := commandstest.Feed(t, s, resptest.Encode("SET", "v", text))
		d.end(true)
		<-s.Conn.Woken
		if replies += commandstest.Say(t, s, left); replies != "+OK\r\n" {
			t.Fatalf("status %d, got %q", status, replies)
		}
		commandstest.Say(t, s, "MULTI\r\nINCR n\r\n"+strings.Repeat("GET v\r\n", 20))
		if replies, _, status = commandstest.Feed(t, s, "EXEC\r\n"); status != peer.Waiting || replies != "" {
			t.Fatalf("status %d, got %.60q", status, replies)
		}
		<-s.Conn.Woken // of the background
		if replies, _, status = commandstest.Feed(t, s, "PING\r\n"); status != peer.Waiting || replies != "" {
			t.Errorf("before the disk has it: status %d, got %.60q", status, replies)
		}
		d.end(kept)
		want := "*21\r\n:1\r\n" + strings.Repeat(bulk(text), 20)
		if !kept {
			want = "-" + reply.ErrUnconfirmed.Error() + "\r\n"
		}
		if got := commandstest.Say(t, s, "PING\r\n"); got != want+commandstest.Pong {
			t.Errorf("kept %t: got %d bytes, %.80q", kept, len(got), got)
		}
	}
}

// TestPiecesOfAClientThatIsGone are dropped.
func TestPiecesOfAClientThatIsGone(t *testing.T) {
	s, _ := longValues(t, 1)
	if _, _, status := s.Feed([]byte(strings.Repeat("GET v0\r\n", 20)), nil); status != peer.More {
		t.Errorf("status %d", status)
	}
	s.Close()
}
