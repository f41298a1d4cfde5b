package session_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// TestScripts checks scripts' access to the server; internal/lua tests the conversion of replies.
func TestScripts(t *testing.T) {
	first := resptest.Ints(0, 5, 4, -1, 10)
	eval := func(script string, args ...string) string {
		return resptest.Encode(append([]string{"EVAL", script, strconv.Itoa(len(args))}, args...)...)
	}
	const call = "redis.call('cl.throttle', KEYS[1], 4, 1, 10)"
	for _, tt := range []struct{ name, in, want string }{ // prefix of the replies
		{"a call", eval("local r = "+call+" return r[3] + r[5]", "a"), ":14\r\n"},
		{"its writes are seen", eval(call+" return {redis.call('exists', KEYS[1]), redis.call('ttl', KEYS[1])}", "a") + "TTL a\r\n", "*2\r\n:1\r\n:10\r\n:10\r\n"},
		{"time stands still", eval("local a = redis.call('time')[2] for i = 1, 1e3 do end return redis.call('time')[2] == a and redis.call('time')[1]"), "$10\r\n1700000000\r\n"},
		{"writes before an error stay", eval(call+" error('broken')", "a") + "TTL a\r\n", "-ERR user_script:1: broken script: " + commandstest.SHAOf(call+" error('broken')") + ", on @user_script:1.\r\n:10\r\n"},
		{"an ended script leaves nothing", eval(loop, "a") + "TTL a\r\n", timedOut + ":-2\r\n"},
		{"a denial is no error", strings.Repeat(eval("return redis.call('cl.throttle', KEYS[1], 0, 1, 10)[1]", "a"), 2), ":0\r\n:1\r\n"},
		{"an error of the command", eval("return redis.call('cl.throttle', KEYS[1], 'x', 1, 10)", "a"), "-Cell error: Store error: Couldn't parse as integer: x script: "},
		{"caught", eval("local r = redis.pcall('cl.throttle', KEYS[1], 'x', 1, 10) return r.err", "a"), "$53\r\nCell error: Store error: Couldn't parse as integer: x"},
		{"an undeclared key", eval(call+" return redis.call('get', 'b')", "a") + "EXISTS a\r\n", "-ERR script used the key 'b', which is not among the keys that it was given; pass it in KEYS script: "},
		{"a key of another database", eval("redis.call('select', 1) return redis.call('get', KEYS[1])", "a"), "-ERR script used the key 'a'"},
		{"its database is its own", eval("return redis.call('select', 1)") + "CL.THROTTLE a 4 1 10\r\nSELECT 1\r\nDBSIZE\r\n", "+OK\r\n" + first + "+OK\r\n:0\r\n"},
		{"the client's database", "SELECT 3\r\n" + eval(call+" return 1", "a") + "DBSIZE\r\nSELECT 0\r\nDBSIZE\r\n", "+OK\r\n:1\r\n:1\r\n+OK\r\n:0\r\n"},
		{"all keys", eval("return redis.call('dbsize')"), "-ERR a command about all keys is not allowed from a script, which has only the keys that it declared script: "},
		{"no transactions", eval("return redis.call('multi')"), "-ERR This Redis command is not allowed from script script: "},
		{"no connections", eval("return redis.call('hello', 3)"), "-ERR This Redis command is not allowed from script script: "},
		{"no scripts", eval("return redis.call('eval', 'return 1', 0)"), "-ERR This Redis command is not allowed from script script: "},
		{"refused commands", eval("return redis.call('psubscribe', 'x')"), "-ERR cellserver has no publish and subscribe, except on the channels __sentinel__:hello and __Booksleeve_MasterChanged; use Redis for that script: "},
		{"the longest key", eval("return redis.call('exists', KEYS[1])", strings.Repeat("k", commandstest.MaxKeyBytes)), ":0\r\n"},
		{"longer", eval("return 1", strings.Repeat("k", commandstest.MaxKeyBytes+1)), "-ERR key is longer than 4096 bytes"},
		{"read-only", resptest.Encode("EVAL_RO", call, "1", "a") + "EXISTS a\r\n", "-ERR Write commands are not allowed from read-only scripts. script: "},
		{"read-only, natively", resptest.Encode("EVAL_RO", native, "1", "a", "4", "1", "10") + "EXISTS a\r\n", "-ERR Write commands are not allowed from read-only scripts. script: "},
		{"read-only by its first line", resptest.Encode("EVAL", "#!lua flags=no-writes\n"+native, "1", "a", "4", "1", "10"), "-ERR Write commands are not allowed from read-only scripts. script: "},
		{"reading", resptest.Encode("EVAL_RO", "return redis.call('exists', KEYS[1])", "1", "a"), ":0\r\n"},
		{"cjson", eval("return cjson.encode("+call+")", "a"), "$13\r\n[0,5,4,-1,10]\r\n"},
		{"by its name", "SCRIPT LOAD \"return 7\"\r\n" + resptest.Encode("EVALSHA", commandstest.SHAOf("return 7"), "0") + resptest.Encode("EVALSHA", strings.ToUpper(commandstest.SHAOf("return 7")), "0") +
			resptest.Encode("SCRIPT", "EXISTS", commandstest.SHAOf("return 7"), "x") + "SCRIPT FLUSH\r\n" + resptest.Encode("EVALSHA", commandstest.SHAOf("return 7"), "0") + resptest.Encode("SCRIPT", "EXISTS", commandstest.SHAOf("return 7")),
			"$40\r\n" + commandstest.SHAOf("return 7") + "\r\n:7\r\n:7\r\n*2\r\n:1\r\n:0\r\n+OK\r\n-NOSCRIPT No matching script. Please use EVAL.\r\n*1\r\n:0\r\n"},
		{"natively by its name", eval("return 1") + resptest.Encode("SCRIPT", "LOAD", native) + resptest.Encode("EVALSHA_RO", commandstest.SHAOf("return 1"), "0") +
			resptest.Encode("EVALSHA", commandstest.SHAOf(native), "1", "a", "4", "1", "10") + resptest.Encode("EVALSHA", commandstest.SHAOf(native), "1", "a", "4", "1", "10"),
			":1\r\n$40\r\n" + commandstest.SHAOf(native) + "\r\n:1\r\n" + first + resptest.Ints(0, 5, 3, -1, 20)},
		{"numbers of keys", "EVAL x y\r\nEVAL x 1\r\nEVAL x -1\r\nEVALSHA x 1\r\n" + resptest.Encode("EVALSHA", commandstest.SHAOf("x"), "99999999999999999999"),
			"-ERR value is not an integer or out of range\r\n-ERR Number of keys can't be greater than number of args\r\n" +
				"-ERR Number of keys can't be negative\r\n-NOSCRIPT No matching script. Please use EVAL.\r\n-ERR value is not an integer or out of range\r\n"},
		{"not Lua", eval("return ("), "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'\r\n"},
		{"nothing runs", "SCRIPT KILL\r\nSCRIPT FLUSH x\r\n", "-NOTBUSY No scripts in execution right now.\r\n-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n"},
		{"between calls", strings.Join([]string{"CL.THROTTLE a 4 1 10\r\n", resptest.Encode("EVAL", native, "1", "a", "4", "1", "10"), "CL.THROTTLE a 4 1 10\r\n", eval("return "+call+"[3]", "a"), "CL.THROTTLE a 4 1 10\r\n"}, ""),
			first + resptest.Ints(0, 5, 3, -1, 20) + resptest.Ints(0, 5, 2, -1, 30) + ":1\r\n" + resptest.Ints(0, 5, 0, -1, 50)},
	} {
		s := commandstest.New(commandstest.WithLimitFor(tt.in)).Session()
		if got := commandstest.Say(t, s, tt.in); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if got := commandstest.Say(t, s, "CLIENT INFO\r\n"); tt.name == "its database is its own" && !strings.Contains(got, " db=1 ") ||
			strings.Contains(tt.in, "'select'") && tt.name != "its database is its own" && !strings.Contains(got, " db=0 ") {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// TestScriptsInRESP3: replies have the types of the client's protocol, and inside the script its own.
func TestScriptsInRESP3(t *testing.T) {
	s := commandstest.New().Session()
	commandstest.Say(t, s, "HELLO 3\r\n")
	for _, tt := range []struct{ script, want string }{
		{"return {double=3.5}", ",3.5\r\n"},
		{"return {map={a=1}}", "%1\r\n$1\r\na\r\n:1\r\n"},
		{"return redis.call('get', KEYS[1])", "_\r\n"},
		{"redis.setresp(3) return redis.call('get', KEYS[1])", "_\r\n"},
		{"redis.setresp(3) return redis.call('get', KEYS[1]) == nil", "#t\r\n"},
		{"return redis.call('get', KEYS[1]) == false", ":1\r\n"},
		{"return redis.call('cl.throttle', KEYS[1], 4, 1, 10)", resptest.Ints(0, 5, 4, -1, 10)},
		{"return redis.call('cl.throttle', KEYS[1], 4, 1, 10, 0)[6]", "_\r\n"},
		{"redis.setresp(3) return redis.call('command', 'info', 'get')[1][3]", "~2\r\n+readonly\r\n+fast\r\n"},
	} {
		commandstest.Expect(t, s, resptest.Encode("EVAL", tt.script, "1", "a"), tt.want)
	}
}

// TestScriptsLog goes to the server's log, with the client.
func TestScriptsLog(t *testing.T) {
	r := commandstest.New()
	commandstest.Say(t, r.Session(), resptest.Encode("EVAL", "redis.log(redis.LOG_WARNING, 'over\\nhere', 7) redis.log(redis.LOG_NOTICE, 'there') redis.log(redis.LOG_DEBUG, 'nowhere')", "0"))
	got := r.Log.String()
	for _, want := range []string{`level=WARN msg="script: over\nhere 7" client=192.0.2.1:5000`, `level=INFO msg="script: there" client=192.0.2.1:5000`} {
		if !strings.Contains(got, want) {
			t.Errorf("logged %q, want %q", got, want)
		}
	}
	if strings.Contains(got, "nowhere") {
		t.Errorf("logged %q", got)
	}
}

const optimisticAttempts = 3

// TestScriptMeetsOthers: another client writes the script's key while it runs. Both take effect, the script
// last; after two conflicts it holds the key.
func TestScriptMeetsOthers(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		times        int // that others write meanwhile
		runs         int
		want         string // the script's reply
		left         string
	}{
		{"nobody", "return redis.call('cl.throttle', KEYS[1], 99, 1, 10)[3]", 0, 1, ":99\r\n", ":10\r\n"},
		{"once", "return redis.call('cl.throttle', KEYS[1], 99, 1, 10)[3]", 1, 2, ":98\r\n", ":20\r\n"},
		{"twice", "return redis.call('cl.throttle', KEYS[1], 99, 1, 10)[3]", 2, 3, ":97\r\n", ":30\r\n"},
		{"always", "return redis.call('cl.throttle', KEYS[1], 99, 1, 10)[3]", 9, 3, ":97\r\n", ":40\r\n"},
		{"it only reads", "return redis.call('exists', KEYS[1])", 1, 1, ":0\r\n", ":10\r\n"},
		{"it deletes", "redis.call('del', KEYS[1]) return redis.call('cl.throttle', KEYS[1], 99, 1, 10)[3]", 1, 2, ":99\r\n", ":10\r\n"},
		{"it fails behind its writes", "redis.call('cl.throttle', KEYS[1], 99, 1, 10) error()", 1, 2, "-ERR", ":20\r\n"},
		{"it is ended", "redis.call('cl.throttle', KEYS[1], 99, 1, 10) while true do end", 1, 1, timedOut, ":10\r\n"},
	} {
		r := commandstest.New(commandstest.Meddling, commandstest.WithQuickScripts, commandstest.WithLimitFor(tt.script))
		s, other := r.Session(), r.Session()
		done := make(chan struct{}, 1)
		runs := 0
		r.Meddle = func() {
			runs++
			write := func() { commandstest.Say(t, other, "CL.THROTTLE a 99 1 10\r\n") }
			switch {
			case runs > tt.times:
			case runs == optimisticAttempts: // waits for the locks
				go func() { write(); done <- struct{}{} }()
			default:
				write()
			}
		}
		got := commandstest.Say(t, s, resptest.Encode("EVAL", "redis.call('test.meddle') "+tt.script, "1", "a"))
		if tt.times >= optimisticAttempts {
			<-done
		}
		if left := commandstest.Say(t, s, "TTL a\r\n"); !strings.HasPrefix(got, tt.want) || left != tt.left || runs != tt.runs {
			t.Errorf("%s: %d runs, replied %q and left %q; want %+v", tt.name, runs, got, left, tt)
		}
	}
}

// TestScriptThatPanics returns an error and only logs a line.
func TestScriptThatPanics(t *testing.T) {
	for _, in := range []string{"", "MULTI\r\n", "MULTI\r\nDBSIZE\r\n"} {
		r := commandstest.New(commandstest.Meddling)
		r.Meddle = breaks
		s := r.Session()
		commandstest.Say(t, s, in)
		got := commandstest.Say(t, s, resptest.Encode("EVAL", "redis.call('cl.throttle', KEYS[1], 4, 1, 10) redis.call('test.meddle')", "1", "a"))
		if in != "" {
			got = commandstest.Say(t, s, "EXEC\r\n")
		}
		if !strings.HasSuffix(got, "-ERR script was ended by an internal error\r\n") || !strings.Contains(r.Log.String(), "it broke") {
			t.Errorf("%q: got %q, logged %q", in, got, r.Log.String())
		}
		commandstest.Expect(t, s, "EXISTS a\r\nCL.THROTTLE a 4 1 10\r\nEVAL \"return 1\" 0\r\n", ":0\r\n"+resptest.Ints(0, 5, 4, -1, 10)+":1\r\n")
	}
}

// TestNativeEqualsTheInterpreter byte for byte, except for the script's name.
func TestNativeEqualsTheInterpreter(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	sha := regexp.MustCompile("[0-9a-f]{40}")
	for _, script := range []string{
		native,
		"return redis.pcall('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])",
		"return redis.call('cl.throttle', KEYS[1], unpack(ARGV))",
		"return redis.call('cl.throttle', KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]))",
		"local r = redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3]) return r",
		"return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])[1]",
		"return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])[2]",
		"return redis.pcall('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])[6]",
		"return redis.call('cl.throttle', 'k', 4, 1, 10)",
		"return redis.call('cl.throttle', KEYS[1])",
	} {
		for _, args := range []string{
			"1 k 4 1 10", "1 k 0 1 10", "1 k 4 1 10 2", "1 k 4 1 10 2 3", "1 k 4 1", "1 k", "0 4 1 10", "2 k l 4 1 10", "2 l k 4 1 10",
			"1 k x 1 10", "1 k 4.5 1 10", "1 k 1e2 1 10", "1 k 0x10 1 10", "1 k -1 1 10", "1 k 4 0 10", "1 k +4 01 10",
			"1 k 9007199254740992 1000000 1", "1 k 9007199254740991 1 1", "1 k 4611686018427387903 1000000000 1",
			"1 k 99999999999999999999 1 1", "1 k 123456789012345 1000 1", "1 " + strings.Repeat("k", commandstest.MaxKeyBytes+1) + " 4 1 10", "x", "-1 k",
		} {
			for _, hello := range []string{"", "HELLO 3\r\n"} {
				var replies [2]string
				for i, prefix := range []string{"", "do end "} {
					s := commandstest.New().Session()
					call := resptest.Encode(append([]string{"EVAL", prefix + script}, strings.Fields(args)...)...)
					replies[i] = sha.ReplaceAllString(commandstest.Say(t, s, hello+call+call+"TTL k\r\nPTTL k\r\n"), "SHA")
				}
				if replies[0] != replies[1] {
					t.Errorf("%s, %.60s, %q: natively %q, by the interpreter %q", script, args, hello, replies[0], replies[1])
				}
			}
		}
	}
}

// TestManyScriptsAtOnce on a few keys lose nothing.
func TestManyScriptsAtOnce(t *testing.T) {
	const sessions, rounds = 8, 40
	r := commandstest.New(func(c *commands.Config) { c.BackgroundThreads = 4 })
	done := make(chan int, sessions)
	for g := range sessions {
		go func() {
			s, allowed := r.Session(), 0
			for range rounds {
				var in string
				if g%2 == 0 {
					in = resptest.Encode("EVAL", native, "1", "a", "1000000", "1", "1")
				} else {
					in = resptest.Encode("EVAL", "for i = 1, 3000 do end "+native, "1", "a", "1000000", "1", "1")
				}
				if strings.HasPrefix(commandstest.Say(t, s, in), "*5\r\n:0\r\n") {
					allowed++
				}
			}
			done <- allowed
		}()
	}
	sum := 0
	for range sessions {
		sum += <-done
	}
	if got, want := commandstest.Say(t, r.Session(), "TTL a\r\n"), fmt.Sprintf(":%d\r\n", sum); got != want || sum != sessions*rounds {
		t.Errorf("%d were let through, and the key lives %q s", sum, got)
	}
}

func breaks() { panic("it broke") }
