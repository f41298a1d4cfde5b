package session_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/resp"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// manyArguments makes any allocation of 8 bytes per argument exceed the bound.
const manyArguments = 150_000

// command repeats others behind words until the command has count arguments.
func command(count int, words []string, others ...string) string {
	if len(others) == 0 {
		others = []string{""}
	}
	bulks := func(words []string) string {
		_, all, _ := strings.Cut(resptest.Encode(words...), "\r\n")
		return all
	}
	left := count - len(words)
	return fmt.Sprintf("*%d\r\n", count) + bulks(words) + strings.Repeat(bulks(others), left/len(others)) +
		bulks(others[:left%len(others)])
}

// listsOf returns calls with each repeatable part of the command's grammar repeated.
func listsOf(name string) (calls []string) {
	const many = 100_000
	add := func(count int, call string, more ...string) {
		calls = append(calls, command(count, strings.Fields(call), more...))
	}
	numbers := make([]string, 1<<16)
	for i := range numbers {
		numbers[i] = strconv.Itoa(i)
	}
	switch name {
	case "acl|dryrun":
		add(manyArguments, "ACL DRYRUN default EXISTS")
		add(10_000, "ACL DRYRUN default EXISTS", "k")
	case "client|kill":
		add(many, "CLIENT KILL", "ID", "77")
	case "client|list":
		add(many, "CLIENT LIST ID", numbers...)
		add(10_000, "CLIENT LIST ID", numbers...)
	case "client|tracking":
		add(many, "CLIENT TRACKING ON", "OPTIN")
		add(many, "CLIENT TRACKING ON", "NOLOOP")
	case "cl.limit|set":
		add(many, "CL.LIMIT SET x", "1")
	case "cl.mthrottle":
		add(many, "CL.MTHROTTLE 60000", "k", "1", "1", "1", "1")
	case "command|getkeys", "command|getkeysandflags":
		add(manyArguments, strings.ReplaceAll(name, "|", " ")+" EXISTS")
		add(10_000, strings.ReplaceAll(name, "|", " ")+" EXISTS", "k")
	case "command|info", "command|docs", "latency|histogram":
		add(many, strings.ReplaceAll(name, "|", " "), "get")
	case "config|get":
		add(many, "CONFIG GET", "m*")
	case "config|set":
		add(many, "CONFIG SET", "save", "x")
	case "del", "unlink", "exists", "touch", "cl.reset", "watch":
		add(170_000, name)
		add(many, name, numbers...)
		add(10_000, name, numbers...)
	case "eval", "eval_ro":
		add(many, name+" return{} 0", "x")
		add(many, name+" return{} 60000", numbers...)
		calls = append(calls, command(many, []string{name, native, "1", "k", "4", "1", "10"}),
			command(many, []string{name, "return redis.call('cl.throttle', KEYS[1], unpack(ARGV))", "1", "k"}))
	case "evalsha", "evalsha_ro":
		add(many, name+" "+commandstest.SHAOf("return 1")+" 0", "x")
	case "expire", "pexpire", "expireat", "pexpireat":
		add(many, name+" k 1", "nx")
	case "hello":
		add(many, "HELLO 3", "SETNAME", "x")
	case "info":
		add(many, "INFO", "cpu")
	case "latency|reset":
		add(many, "LATENCY RESET", "command")
	case "memory|usage":
		add(many, "MEMORY USAGE k", "SAMPLES", "1")
	case "restore":
		add(many, "RESTORE k 0 x", "REPLACE")
	case "scan":
		add(many, "SCAN 0", "COUNT", "1")
	case "script|exists":
		add(many, "SCRIPT EXISTS", "x")
		add(10_000, "SCRIPT EXISTS", "x")
	case "set":
		add(many, "SET k 1", "KEEPTTL")
	case "shutdown":
		add(many, "SHUTDOWN", "ABORT")
	}
	return calls
}

// turn is the work of one Feed on the driver's goroutine.
type turn struct {
	handed    int // arguments given to a handler
	allocated int // bytes
}

// turns feeds calls to a session and returns the longest turn.
func turns(t *testing.T, r *commandstest.Harness, s *commandstest.Client, in string, handed *int) (worst turn, replies string) {
	t.Helper()
	for left := in; ; <-s.Conn.Woken {
		release := r.Engine.HoldBackground()
		buf, out := []byte(left), make([]byte, 0, 1<<20)
		var before, after runtime.MemStats
		*handed = 0
		runtime.ReadMemStats(&before)
		n, got, status := s.Feed(buf, out)
		runtime.ReadMemStats(&after)
		release()
		worst.handed = max(worst.handed, *handed)
		worst.allocated = max(worst.allocated, int(after.TotalAlloc-before.TotalAlloc))
		replies, left = replies+string(got), left[n:]
		switch status {
		case peer.Waiting:
		case peer.More:
			s.Conn.Wake()
		default:
			return worst, replies
		}
	}
}

// TestManyArguments: a command with many arguments is answered, and no turn on a driver's goroutine is longer
// than with few: no handler is given more arguments than are decoded at once, and memory grows only by one
// copy of the command.
func TestManyArguments(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates")
	}
	const most = 1 << 20 // beyond the copy; most of it for a WATCH of 10,000 keys
	rules := "user default on nopass ~* &* +@all\nuser ruled on nopass ~a* ~*b &* +@all\n"
	names := []string{"nosuch", "acl|nosuch"}
	for _, c := range catalog.New().Commands() {
		names = append(names, c.FullName())
	}
	befores := []string{"", "AUTH ruled x\r\n", "MULTI\r\n"}
	if racetest.IsQuick() {
		befores = befores[:1]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			check := func(call, before string) {
				r, handed := commandstest.NewUserHarness(t, rules), 0
				r.Engine.CountHanded(func(args int) { handed = max(handed, args) })
				s := r.Session()
				commandstest.Say(t, s, before)
				got, replies := turns(t, r.Harness, s, call, &handed)
				if got.handed > resp.LongArgs || got.allocated > len(call)+most {
					t.Errorf("%.50q behind %q: %d arguments were handed to a handler, "+
						"and %d bytes allocated beyond a copy",
						call, before, got.handed, got.allocated-len(call))
				}
				if !strings.HasSuffix(replies, "\r\n") {
					t.Errorf("%.50q behind %q: got %.200q", call, before, replies)
				}
				s.Close()
			}
			check(command(manyArguments, strings.Split(name, "|")), "")
			for _, call := range listsOf(name) {
				for _, before := range befores {
					if check(call, before); before == "MULTI\r\n" {
						check(call+"EXEC\r\n", before)
					}
				}
			}
		})
	}
}

// TestManyArgumentsInMulti: queued commands are bounded by their arguments, and executed.
func TestManyArgumentsInMulti(t *testing.T) {
	const most = (4 << 20) / 24
	for _, tt := range []struct {
		arguments int
		want      string
	}{
		{most, "+OK\r\n+QUEUED\r\n*1\r\n:0\r\n"},
		{most + 1, "+OK\r\n-ERR transaction is longer than 4194304 bytes, the limit of --max-command-bytes\r\n" +
			"-EXECABORT Transaction discarded because of previous errors.\r\n"},
	} {
		s := commandstest.New().Session()
		call := command(tt.arguments, []string{"EXISTS"})
		commandstest.Expect(t, s, "MULTI\r\n"+call+"EXEC\r\n", tt.want)
	}
}

// TestMostNames: a name may take kilobytes of reply or a search of everything.
func TestMostNames(t *testing.T) {
	for _, call := range []string{"INFO", "LATENCY RESET", "LATENCY HISTOGRAM", "CONFIG GET", "COMMAND INFO", "COMMAND DOCS"} {
		const most = 128
		s := commandstest.New().Session()
		if got := commandstest.Say(t, s, call+strings.Repeat(" x", most)+"\r\n"); strings.HasPrefix(got, "-") {
			t.Errorf("%s: got %.100q", call, got)
		}
		want := "-ERR more than 128 names or patterns; ask for all of them instead\r\n"
		commandstest.Expect(t, s, call+strings.Repeat(" x", most+1)+"\r\n", want)
	}
}

// TestManyArgumentsInLine: an inline command's many arguments do not take one turn.
func TestManyArgumentsInLine(t *testing.T) {
	const words = 30_000
	for name, want := range map[string]string{
		"EXISTS":        fmt.Sprintf(":%d\r\n", words),
		"PING":          "-ERR more than 1024 arguments for 'ping'; send fewer at once\r\n",
		"LATENCY RESET": "-ERR more than 1024 arguments for 'latency|reset'; send fewer at once\r\n",
	} {
		r := commandstest.New()
		handed := 0
		s := r.Session()
		commandstest.Say(t, s, "CL.THROTTLE k 1 1 10\r\n")
		r.Engine.CountHanded(func(args int) { handed = max(handed, args) })
		if got := commandstest.Say(t, s, name+strings.Repeat(" k", words)+"\r\n"); got != want ||
			handed > resp.LongArgs {
			t.Errorf("%s: got %.100q, and %d arguments were handed to a handler", name, got, handed)
		}
	}
}
