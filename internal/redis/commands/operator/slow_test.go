package operator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cellserver/internal/decide/observe"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/store"
	"cellserver/internal/test/resptest"
)

func withThresholds(w admin.Thresholds) func(*commands.Config) {
	return func(c *commands.Config) { c.Thresholds = w }
}

// slowlogText returns SLOWLOG GET as lines of "id us args addr name".
func slowlogText(t *testing.T, s *commandstest.Client, count string) string {
	t.Helper()
	var b strings.Builder
	for _, e := range resptest.ParseAll(t, commandstest.Say(t, s, "SLOWLOG GET "+count+"\r\n"))[0].Elements {
		if len(e.Elements) != 6 || e.Elements[1].Number != commandstest.T0/1e9 {
			t.Errorf("%+v", e)
		}
		fmt.Fprintf(&b, "%d %d [", e.Elements[0].Number, e.Elements[2].Number)
		for _, arg := range e.Elements[3].Elements {
			fmt.Fprintf(&b, "%s,", arg.Text)
		}
		fmt.Fprintf(&b, "] %s %s\n", e.Elements[4].Text, e.Elements[5].Text)
	}
	return b.String()
}

// TestSlowlogEntries: each command takes 20 us, as the clock advances by that at each reading.
func TestSlowlogEntries(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, tt := range []struct{ name, in, want string }{
		{"a command", "PING x\r\n", "[PING,x,] 192.0.2.1:5000 \n"},
		{"of a batch", "CL.BUCKET TAKE b 5\r\nCL.BUCKET TAKE c 5\r\nRL.THROTTLE k 1 1 1\r\n",
			"[RL.THROTTLE,k,] 192.0.2.1:5000 \n[CL.BUCKET,TAKE,b,... (1 more calls in one batch),] 192.0.2.1:5000 \n"},
		{"of values", "INCR a\r\nINCR b\r\nINCRBYFLOAT a 1\r\nRENAME a c\r\n",
			"[RENAME,a,c,] 192.0.2.1:5000 \n[INCRBYFLOAT,a,1,] 192.0.2.1:5000 \n[INCR,a,... (1 more calls in one batch),] 192.0.2.1:5000 \n"},
		{"of INCREX", "INCREX a EX 5\r\nINCREX b\r\nINCREX a BYFLOAT 1\r\nPING\r\n",
			"[PING,] 192.0.2.1:5000 \n[INCREX,a,BYFLOAT,1,] 192.0.2.1:5000 \n[INCREX,a,... (1 more calls in one batch),] 192.0.2.1:5000 \n"},
		{"one that fails", "SELECT x\r\n", "[SELECT,x,] 192.0.2.1:5000 \n"},
		{"one that is refused", "NOSUCH\r\nGET\r\nPSUBSCRIBE x\r\n", ""},
		{"the client's name", "CLIENT SETNAME me\r\n", "[CLIENT,SETNAME,me,] 192.0.2.1:5000 me\n"},
		{"passwords", "AUTH a\r\nCONFIG SET databases 1 requirepass x MasterAuth y\r\nHELLO 3 AUTH default x\r\n",
			"[HELLO,3,AUTH,(redacted),(redacted),] 192.0.2.1:5000 \n" +
				"[CONFIG,SET,databases,1,requirepass,(redacted),MasterAuth,(redacted),] 192.0.2.1:5000 \n[AUTH,(redacted),] 192.0.2.1:5000 \n"},
		{"a long argument", "ECHO " + long + "\r\n", "[ECHO," + long[:128] + "... (72 more bytes),] 192.0.2.1:5000 \n"},
		{"many arguments", "DEL" + strings.Repeat(" k", 40) + "\r\n", "[DEL," + strings.Repeat("k,", 30) + "... (10 more arguments),] 192.0.2.1:5000 \n"},
		{"as many as are kept", "DEL" + strings.Repeat(" k", 31) + "\r\n", "[DEL," + strings.Repeat("k,", 31) + "] 192.0.2.1:5000 \n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := commandstest.New(withThresholds(admin.Thresholds{SlowlogFromUs: 20, SlowlogMaxLen: 10}))
			s := r.Session()
			r.Clock.StepBy(20_000)
			commandstest.Say(t, s, tt.in)
			r.Clock.StepBy(0)
			var got strings.Builder
			for line := range strings.Lines(slowlogText(t, r.Session(), "-1")) {
				_, rest, _ := strings.Cut(line, " ")
				us, rest, _ := strings.Cut(rest, " ")
				got.WriteString(rest)
				if us != "20" && us != "40" { // DEL also reads the clock
					t.Errorf("%s us", us)
				}
			}
			if got.String() != tt.want {
				t.Errorf("got  %q\nwant %q", got.String(), tt.want)
			}
		})
	}
}

// TestSlowAhead: a command's time includes its background part.
func TestSlowAhead(t *testing.T) {
	r := commandstest.New(withThresholds(admin.Thresholds{SlowlogFromUs: 1000, SlowlogMaxLen: 10, LatencyFromMs: 1}), commandstest.Standing)
	s := r.Session()
	commandstest.Say(t, s, "DEBUG SLEEP 0.003\r\nDEBUG SLEEP 0\r\nAUTH x\r\nDBSIZE\r\n")
	if got, want := slowlogText(t, s, "-1"), "0 3000 [DEBUG,SLEEP,0.003,] 192.0.2.1:5000 \n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	commandstest.Expect(t, s, "LATENCY LATEST\r\n",
		fmt.Sprintf("*1\r\n*4\r\n$7\r\ncommand\r\n:%d\r\n:3\r\n:3\r\n", commandstest.T0/1e9))
}

// caller has a settable client.
type caller struct{}

func (caller) Addr() string { return "192.0.2.1:5000" }

func (caller) Name() string { return "" }

func TestSlowBatch(t *testing.T) {
	r := commandstest.New(withThresholds(admin.Thresholds{SlowlogFromUs: 5000, SlowlogMaxLen: 10, LatencyFromMs: 5}))
	s := r.Session()
	batch := make([]store.Request, 3)
	batch[0].Key.Name = []byte("first" + strings.Repeat("x", 200))
	records, throttle := r.Engine.Records, r.Config.Catalog.Lookup([]byte("cl.throttle"))
	took := func(batch []store.Request, d time.Duration) {
		if records.Slowness.IsSlow(int64(d)) {
			records.SlowCall(throttle, observe.BatchArgs(throttle, batch), caller{}, commandstest.T0, int64(d))
		}
	}
	took(batch, 4999*time.Microsecond)
	took(batch, 7*time.Millisecond)
	took(batch[:1], 5*time.Millisecond)
	name := string(batch[0].Key.Name[:128]) + "... (77 more bytes)"
	want := "1 5000 [CL.THROTTLE," + name + ",] 192.0.2.1:5000 \n0 7000 [CL.THROTTLE," + name + ",... (2 more calls in one batch),] 192.0.2.1:5000 \n"
	if got := slowlogText(t, s, "-1"); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := records.Latencies.All()["fast-command"]; got.WorstMs != 7 || len(got.Samples) != 1 {
		t.Errorf("got %+v", got)
	}
}

// TestSlowlogCommands have the replies and errors of Redis 7.0.15.
func TestSlowlogCommands(t *testing.T) {
	r := commandstest.New(withThresholds(admin.Thresholds{SlowlogFromUs: -1, SlowlogMaxLen: 3}))
	s := r.Session()
	config := func(name, value string) string { return commandstest.Say(t, s, "CONFIG SET "+name+" "+value+"\r\n") }
	for _, tt := range []struct{ got, want string }{
		{commandstest.Say(t, s, "SLOWLOG LEN\r\nSLOWLOG GET\r\n"), ":0\r\n*0\r\n"},
		{config("slowlog-log-slower-than", "0"), "+OK\r\n"},
		{commandstest.Say(t, s, "SLOWLOG LEN\r\n"), ":1\r\n"}, // CONFIG SET itself
		{commandstest.Say(t, s, "PING\r\nPING\r\nPING\r\nSLOWLOG LEN\r\n"), strings.Repeat(commandstest.Pong, 3) + ":3\r\n"},
		{slowlogText(t, s, "2"), "5 0 [SLOWLOG,LEN,] 192.0.2.1:5000 \n4 0 [PING,] 192.0.2.1:5000 \n"},
		{commandstest.Say(t, s, "SLOWLOG GET 0\r\n"), "*0\r\n"},
		{config("slowlog-max-len", "1"), "+OK\r\n"},
		{commandstest.Say(t, s, "SLOWLOG LEN\r\n"), ":1\r\n"},
		{config("slowlog-log-slower-than", "-1"), "+OK\r\n"},
		{commandstest.Say(t, s, "SLOWLOG RESET\r\nSLOWLOG LEN\r\n"), "+OK\r\n:0\r\n"},
		{config("slowlog-log-slower-than", "0"), "+OK\r\n"},
		{slowlogText(t, s, "1")[:3], "10 "}, // the numbers continue
		{config("slowlog-max-len", "0"), "+OK\r\n"},
		{commandstest.Say(t, s, "SLOWLOG LEN\r\n"), ":0\r\n"},
		{commandstest.Say(t, s, "SLOWLOG GET x\r\nSLOWLOG GET -2\r\n"), strings.Repeat("-ERR count should be greater than or equal to -1\r\n", 2)},
		{commandstest.Say(t, s, "SLOWLOG GET 1 2\r\n"), "-ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.\r\n"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
