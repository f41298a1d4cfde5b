package connection_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

const (
	hello       = "__sentinel__:hello"
	changed     = "__Booksleeve_MasterChanged"
	subscribed  = "*3\r\n$9\r\nsubscribe\r\n$18\r\n" + hello + "\r\n:1\r\n"
	ended       = "*3\r\n$11\r\nunsubscribe\r\n$18\r\n" + hello + "\r\n:0\r\n"
	elsewhere   = "-ERR cellserver has no publish and subscribe, except on the channels " + hello + " and " + changed + "; use Redis for that\r\n"
	noMessage   = "-ERR a message on a channel has at most 4096 bytes and no line breaks\r\n"
	notInMulti  = "-ERR SUBSCRIBE isn't allowed for a DENY BLOCKING client\r\n"
	inAnyScript = "-ERR This Redis command is not allowed from script"
)

// subscribedTo returns the reply to SUBSCRIBE to a channel.
func subscribedTo(channel string, subscriptions int) string {
	return "*3\r\n$9\r\nsubscribe\r\n" + strings.TrimPrefix(resptest.Encode(channel), "*1\r\n") + ":" + strconv.Itoa(subscriptions) + "\r\n"
}

// pushed returns replies in their RESP3 form.
func pushed(text string) string {
	return strings.NewReplacer("*3\r\n", ">3\r\n", "$-1\r\n", "_\r\n").Replace(text)
}

// message returns a message as a subscriber gets it.
func message(text string) string { return resptest.Encode("message", hello, text) }

// clientOf returns a session's client: they are numbered from 1.
func clientOf(r *commandstest.Harness, id int64) *clients.Client {
	return r.Engine.Clients.ByIDs([]int64{id})[0]
}

// hasSent returns what a client is sent unasked.
func hasSent(t *testing.T, s *commandstest.Client) string {
	t.Helper()
	got, _, status := commandstest.Feed(t, s, "")
	if status != peer.NeedInput {
		t.Errorf("status %d", status)
	}
	return got
}

func anySubscriber(r *commandstest.Harness) bool {
	return slices.ContainsFunc(r.Engine.Config.Channels, func(ch *clients.Channel) bool { return ch.Any() })
}

// TestSubscribe expects the bytes of redis-server 7.0.15 for what is not refused, as TestSubscribeAsRedis of
// e2e confirms.
func TestSubscribe(t *testing.T) {
	only := func(command string) string {
		return "-ERR Can't execute '" + command + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n"
	}
	const unknown, none = "*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"
	pong := func(text string) string {
		return "*2\r\n$4\r\npong\r\n" + strings.TrimPrefix(resptest.Encode(text), "*1\r\n")
	}
	for _, tt := range []struct{ name, in, want string }{
		{"another channel", "SUBSCRIBE a\r\nSUBSCRIBE " + hello + " a\r\nPUBLISH a b\r\nPSUBSCRIBE *\r\nPING\r\n", elsewhere + elsewhere + elsewhere + elsewhere + commandstest.Pong},
		{"another case", "SUBSCRIBE __SENTINEL__:hello\r\n", elsewhere},
		{"twice", "SUBSCRIBE " + hello + " " + hello + "\r\nSUBSCRIBE " + hello + "\r\n", subscribed + subscribed + subscribed},
		{"PING", "SUBSCRIBE " + hello + "\r\nPING\r\nPING x\r\nPING a b\r\n",
			subscribed + pong("") + pong("x") + "-ERR wrong number of arguments for 'ping' command\r\n"},
		{"other commands", "SUBSCRIBE " + hello + "\r\nGET a\r\nGET\r\nCL.THROTTLE a 1 1 1\r\nPUBLISH a b\r\nCONFIG GET x\r\nHELLO 3\r\nMULTI\r\nMONITOR\r\nEVAL x 0\r\nNOSUCH\r\nEXEC\r\n",
			subscribed + only("get") + "-ERR wrong number of arguments for 'get' command\r\n" + only("cl.throttle") + only("publish") + only("config|get") + only("hello") + only("multi") +
				only("monitor") + only("eval") + "-ERR unknown command 'NOSUCH', with args beginning with: \r\n" +
				"-EXECABORT Transaction discarded because of: " + only("exec")[len("-ERR "):]},
		{"UNSUBSCRIBE", "UNSUBSCRIBE\r\nUNSUBSCRIBE b\r\nSUBSCRIBE " + hello + "\r\nUNSUBSCRIBE b\r\nUNSUBSCRIBE\r\nPING\r\nUNSUBSCRIBE\r\n",
			none + unknown + subscribed + strings.Replace(unknown, ":0", ":1", 1) + ended + commandstest.Pong + none},
		{"UNSUBSCRIBE by name", "SUBSCRIBE " + hello + "\r\nUNSUBSCRIBE " + hello + " b " + hello + "\r\nGET a\r\n", subscribed + ended + unknown + ended + "$-1\r\n"},
		{"RESET", "SUBSCRIBE " + hello + "\r\nRESET\r\nPING\r\nGET a\r\n", subscribed + "+RESET\r\n" + commandstest.Pong + "$-1\r\n"},
		{"in a transaction", "MULTI\r\nSUBSCRIBE " + hello + "\r\nUNSUBSCRIBE\r\nPUBLISH " + hello + " x\r\nUNSUBSCRIBE b\r\nEXEC\r\nPING\r\n",
			"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n" + notInMulti + notInMulti + ":0\r\n" + unknown + commandstest.Pong},
		{"messages", "PUBLISH " + hello + " \"\"\r\n" + resptest.Encode("PUBLISH", hello, "a\nb") + resptest.Encode("PUBLISH", hello, "a\rb") +
			resptest.Encode("PUBLISH", hello, strings.Repeat("x", 4096)) + resptest.Encode("PUBLISH", hello, strings.Repeat("x", 4097)),
			":0\r\n" + noMessage + noMessage + ":0\r\n" + noMessage},
		{"both channels", "SUBSCRIBE " + changed + " " + hello + "\r\nCLIENT LIST\r\nRESET\r\nSUBSCRIBE " + hello + " " + changed + "\r\nUNSUBSCRIBE\r\nPING\r\n",
			subscribedTo(changed, 1) + subscribedTo(hello, 2) + only("client|list") + "+RESET\r\n" + subscribed + subscribedTo(changed, 2) +
				strings.Replace(ended, ":0", ":1", 1) + strings.Replace(subscribedTo(changed, 0), "$9\r\n", "$11\r\nun", 1) + commandstest.Pong},
		{"RESP3", "HELLO 3\r\nSUBSCRIBE " + hello + "\r\nPING\r\nGET a\r\nUNSUBSCRIBE\r\nUNSUBSCRIBE\r\n", pushed(subscribed) + commandstest.Pong + "_\r\n" + pushed(ended+none)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := commandstest.New().Session()
			in := tt.in
			if rest, ok := strings.CutPrefix(in, "HELLO 3\r\n"); ok {
				commandstest.Say(t, s, "HELLO 3\r\n")
				in = rest
			}
			if got := commandstest.Say(t, s, in); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
	s := commandstest.New().Session()
	if got := commandstest.Say(t, s, resptest.Encode("EVAL", "return redis.call('subscribe', ARGV[1])", "0", hello)); !strings.HasPrefix(got, inAnyScript) {
		t.Errorf("in a script: got %q", got)
	}
}

// TestPublish: every subscriber gets every message, in the form of its protocol.
func TestPublish(t *testing.T) {
	r := commandstest.New()
	old, modern, other := r.Session(), r.Session(), r.Session()
	commandstest.Say(t, old, "SUBSCRIBE "+hello+"\r\n")
	commandstest.Say(t, modern, "HELLO 3\r\nSUBSCRIBE "+hello+"\r\n")
	for _, tt := range []struct{ in, want, messages string }{
		{"PUBLISH " + hello + " a\r\n", ":2\r\n", message("a")},
		{"PUBLISH " + hello + " \"b c\"\r\nPUBLISH " + hello + " \"\"\r\n", ":2\r\n:2\r\n", message("b c") + message("")},
		{"MULTI\r\nPUBLISH " + hello + " a\r\nPUBLISH " + hello + " b\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:2\r\n:2\r\n", message("a") + message("b")},
		{"MULTI\r\nCL.THROTTLE k 1 1 1 0\r\nPUBLISH " + hello + " a\r\nDISCARD\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n+OK\r\n", ""},
		{resptest.Encode("EVAL", "return {redis.call('publish', ARGV[1], 'x'), redis.call('publish', ARGV[1], 'y')}", "0", hello), "*2\r\n:2\r\n:2\r\n", message("x") + message("y")},
		{resptest.Encode("EVAL", "return redis.pcall('publish', 'a', 'x')", "0"), elsewhere, ""},
		{"PUBLISH " + changed + " x\r\n", ":0\r\n", ""},
		{resptest.Encode("EVAL", "return {redis.call('publish', ARGV[1], 'x'), redis.call('publish', ARGV[2], 'y'), redis.call('publish', ARGV[1], 'z')}", "0", hello, changed),
			"*3\r\n:2\r\n:0\r\n:2\r\n", message("x") + message("z")},
	} {
		if got := commandstest.Say(t, other, tt.in); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
		if got := hasSent(t, old); got != tt.messages {
			t.Errorf("%q: a subscriber got %q, want %q", tt.in, got, tt.messages)
		}
		if got := hasSent(t, modern); got != pushed(tt.messages) {
			t.Errorf("%q: a subscriber by RESP3 got %q, want %q", tt.in, got, pushed(tt.messages))
		}
	}
	if got := commandstest.Say(t, modern, "PUBLISH "+hello+" own\r\n"); got != ":2\r\n"+pushed(message("own")) {
		t.Errorf("of its own: got %q", got)
	}
	commandstest.Say(t, other, "PUBLISH "+hello+" last\r\n")
	if got := commandstest.Say(t, old, "UNSUBSCRIBE\r\nPING\r\n"); got != message("own")+message("last")+ended+commandstest.Pong {
		t.Errorf("what was pending: got %q", got)
	}
	commandstest.Say(t, modern, "RESET\r\n")
	if got := commandstest.Say(t, other, "PUBLISH "+hello+" nobody\r\n"); got != ":0\r\n" || anySubscriber(r) {
		t.Errorf("nobody is left: got %q", got)
	}
}

// TestSubscriberIsSilent: it is woken once for new messages, and may be silent until it has ended.
func TestSubscriberIsSilent(t *testing.T) {
	r := commandstest.New()
	s, other := r.Session(), r.Session()
	commandstest.Say(t, s, "SUBSCRIBE "+hello+"\r\n")
	if !s.Listens() || other.Listens() {
		t.Error("a session does not say whether it has subscribed")
	}
	commandstest.ExpectLike(t, other, "INFO stats\r\n", "…pubsub_channels:1\r\n…")
	commandstest.Say(t, other, "PUBLISH "+hello+" a\r\nPUBLISH "+hello+" b\r\n")
	if len(s.Conn.Woken) != 1 {
		t.Errorf("woken %d times", len(s.Conn.Woken))
	}
	commandstest.Say(t, s, "UNSUBSCRIBE\r\n")
	commandstest.ExpectLike(t, other, "INFO stats\r\n", "…pubsub_channels:0\r\n…")
	if s.Listens() {
		t.Error("still a subscriber")
	}
	commandstest.Say(t, s, "SUBSCRIBE "+hello+"\r\n")
	if s.Close(); anySubscriber(r) {
		t.Error("a closed client is still a subscriber")
	}
	quits := r.Session()
	commandstest.Say(t, quits, "SUBSCRIBE "+hello+"\r\n")
	if got, _, status := commandstest.Converse(t, quits, "QUIT\r\n"); got != "+OK\r\n" || status != peer.Close || anySubscriber(r) {
		t.Errorf("QUIT: got %q, status %d", got, status)
	}
}

// TestSlowSubscriber is closed, however it is published, and delays nobody.
func TestSlowSubscriber(t *testing.T) {
	racetest.SkipAlone(t)
	r := commandstest.New()
	slow, quick, other := r.Session(), r.Session(), r.Session()
	commandstest.Say(t, slow, "SUBSCRIBE "+hello+"\r\n")
	commandstest.Say(t, quick, "SUBSCRIBE "+hello+"\r\n")
	publish, messages, sent := resptest.Encode("PUBLISH", hello, strings.Repeat("x", 4000)), 0, 0
	for ; !slow.Conn.Killed.Load(); sent += 16 {
		if sent > 2*clients.MaxBacklogBytes/4000 {
			t.Fatal("not closed")
		}
		commandstest.Say(t, other, strings.Repeat(publish, 16))
		if held, _ := clientOf(r, 1).Memory(); sent > 100 && sent < 1000 && held[clients.Messages] < sent*4000 {
			t.Errorf("%d bytes are counted for %d messages", held[clients.Messages], sent)
		}
		got, _, _ := commandstest.Converse(t, quick, "")
		messages += strings.Count(got, "message")
	}
	if messages != sent || quick.Conn.Killed.Load() || sent < clients.MaxBacklogBytes/4100 {
		t.Errorf("the quick one got %d of %d", messages, sent)
	}
	if log := r.Log.String(); strings.Count(log, "subscriber of __sentinel__:hello is too slow") != 1 {
		t.Errorf("the log says %q", log)
	}
	if got := hasSent(t, slow); got != "" {
		t.Errorf("what it has not read is kept: %d bytes", len(got))
	}
}

// TestManyMessagesAtOnce: a script or a transaction sends at most a mebibyte, and tells which are not sent.
func TestManyMessagesAtOnce(t *testing.T) {
	script := resptest.Encode("EVAL", "local n = 0 for i = 1, 1000 do n = n + redis.call('publish', ARGV[1], ARGV[2]) end return n", "0", hello, strings.Repeat("x", 4000))
	r := commandstest.New()
	s, other := r.Session(), r.Session()
	commandstest.Say(t, s, "SUBSCRIBE "+hello+"\r\n")
	const most = 1 << 20 / 4001
	if got := commandstest.Say(t, other, script); got != ":262\r\n" {
		t.Errorf("%d fit, got %q", most, got)
	}
	got, _, _ := commandstest.Converse(t, s, "")
	if n := strings.Count(got, "message"); n != most || s.Conn.Killed.Load() {
		t.Errorf("%d messages, want %d", n, most)
	}
}

// TestSentinelsTransaction is queued and executed whole; its client is not among the killed.
func TestSentinelsTransaction(t *testing.T) {
	for _, pipelined := range []bool{true, false} {
		r := commandstest.New()
		s, subscriber, replica, normal := r.Session(), r.Session(), r.Session(), r.Session()
		commandstest.Say(t, subscriber, "SUBSCRIBE "+hello+"\r\n")
		clientOf(r, 3).Change(func(i *clients.Info) { i.Replica = true })
		want := "+OK\r\n" + strings.Repeat("+QUEUED\r\n", 4) + "*4\r\n+OK\r\n+OK\r\n:1\r\n:1\r\n"
		var got string
		lines := []string{"MULTI\r\n", "SLAVEOF NO ONE\r\n", "CONFIG REWRITE\r\n", "CLIENT KILL TYPE normal\r\n", "CLIENT KILL TYPE pubsub\r\n", "EXEC\r\n"}
		if pipelined {
			lines = []string{strings.Join(lines, "")}
		}
		for _, line := range lines {
			got += commandstest.Say(t, s, line)
		}
		if got != want || s.Conn.Killed.Load() {
			t.Errorf("got %q, want %q", got, want)
		}
		if !subscriber.Conn.Killed.Load() || replica.Conn.Killed.Load() || !normal.Conn.Killed.Load() {
			t.Error("not the right ones were closed")
		}
		const idle = "-NOTBUSY No scripts in execution right now.\r\n"
		got, _, status := commandstest.Converse(t, s, "SCRIPT KILL\r\nMULTI\r\nSCRIPT KILL\r\nCLIENT KILL TYPE normal SKIPME no\r\nPING\r\nEXEC\r\n")
		if want := idle + "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n" + idle + ":2\r\n" + commandstest.Pong; got != want || status != peer.Close {
			t.Errorf("got %q, status %d, want %q", got, status, want)
		}
	}
}
