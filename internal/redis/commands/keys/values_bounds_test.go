package keys_test

import (
	"strings"
	"testing"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// TestLongValues: nothing makes a value longer than MaxValueBytes.
func TestLongValues(t *testing.T) {
	const tooLong = "-ERR value is longer than 65536 bytes, the limit of --max-value-bytes\r\n"
	longest := strings.Repeat("x", commandstest.MaxValueBytes)
	s := commandstest.New().Session()
	for _, call := range [][]string{
		{"SET", "k", longest + "x"},
		{"SETNX", "k", longest + "x"},
		{"SETEX", "k", "9", longest + "x"},
		{"MSET", "k", "v", "l", longest + "x"},
		{"MSETNX", "k", "v", "l", longest + "x"},
		{"MSETEX", "2", "k", "v", "l", longest + "x", "EX", "9"},
		{"GETSET", "k", longest + "x"},
		{"SET", "k", longest + "x", "IFNE", "v"},
	} {
		commandstest.Expect(t, s, resptest.Encode(call...)+"EXISTS k l\r\n", tooLong+":0\r\n")
	}
	commandstest.Expect(t, s, resptest.Encode("SET", "k", longest)+"STRLEN k\r\n", "+OK\r\n:65536\r\n")
	short := commandstest.New(func(c *commands.Config) { c.MaxValueBytes = 1000 }).Session()
	restore := resptest.Encode("RESTORE", "k", "0", dumpOf(t, s, "k"))
	commandstest.Expect(t, short, restore+"INCRBYFLOAT k 1e1500\r\nINCREX k BYFLOAT 1e1500\r\nEXISTS k\r\n", strings.Repeat(strings.Replace(tooLong, "65536", "1000", 1), 3)+":0\r\n")
}

// TestRequireTTL: no value is left without an expiry, also not by a transaction or a script as a whole.
func TestRequireTTL(t *testing.T) {
	const refused = "-ERR the value would never expire, which --require-ttl refuses"
	script := func(body string, argv ...string) string {
		return resptest.Encode(append([]string{"EVAL", body, "1", "k"}, argv...)...)
	}
	const counts = "local n = redis.call('INCR', KEYS[1]) if n == 1 and ARGV[1] then redis.call('EXPIRE', KEYS[1], ARGV[1]) end return n"
	const loops = "for i = 1, 1 do redis.call('INCR', KEYS[1]) end return 1"
	for _, tt := range []struct {
		calls, want string
		left        string // of the key
	}{
		{calls: "SET k v\r\n", want: refused},
		{calls: "SET k v KEEPTTL\r\n", want: refused},
		{calls: "SETNX k v\r\n", want: refused},
		{calls: "MSET k v l w\r\n", want: refused},
		{calls: "SET k v IFNE w\r\n", want: refused},
		{calls: "SET k v IFEQ w\r\n", want: "$-1"},
		{calls: "SET k v EX 9\r\nSET k w IFEQ v\r\n", want: "+OK\r\n" + refused, left: "v"},
		{calls: "SET k v EX 9\r\nSET k w IFEQ v KEEPTTL\r\n", want: "+OK\r\n+OK", left: "w"},
		{calls: "GETSET k v\r\n", want: refused},
		{calls: "SET k v EX 9\r\nGETSET k w\r\n", want: "+OK\r\n" + refused, left: "v"},
		{calls: "MSETNX l w k v\r\n", want: refused},
		{calls: "MSETEX 2 l w k v\r\n", want: refused},
		{calls: "MSETEX 2 l w k v XX\r\n", want: ":0"},
		{calls: "MSETEX 2 l w k v KEEPTTL\r\n", want: refused},
		{calls: "MSETEX 2 l w k v PX 9000\r\n", want: ":1", left: "v"},
		{calls: "INCR k\r\n", want: refused},
		{calls: "INCRBYFLOAT k 1\r\n", want: refused},
		{calls: "SET k v EX 9\r\nPERSIST k\r\n", want: "+OK\r\n" + refused, left: "v"},
		{calls: "SET k v EX 9\r\nGETEX k PERSIST\r\n", want: "+OK\r\n" + refused, left: "v"},
		{calls: "SET k 1 EX 9\r\nINCR k\r\nSET k 7 KEEPTTL\r\n", want: "+OK\r\n:2\r\n+OK", left: "7"},
		{calls: "MULTI\r\nINCR k\r\nEXPIRE k 9\r\nEXEC\r\n", want: "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:1", left: "1"},
		{calls: "MULTI\r\nINCR k\r\nEXEC\r\n", want: "+OK\r\n+QUEUED\r\n-EXECABORT Transaction discarded because of: the value would never expire"},
		{calls: "MULTI\r\nINCR k\r\nDBSIZE\r\nEXEC\r\n", want: "+OK\r\n+QUEUED\r\n+QUEUED\r\n-EXECABORT"},
		{calls: "INCREX k\r\n", want: refused},
		{calls: "INCREX k BYFLOAT 1\r\n", want: refused},
		{calls: "INCREX k PERSIST\r\n", want: refused},
		{calls: "INCREX k UBOUND 0\r\nINCREX k XX\r\nINCREX k EXAT 1\r\n", want: "*2\r\n:0\r\n:0\r\n*2\r\n:0\r\n:0\r\n*2\r\n:1\r\n:1\r\n"},
		{calls: "INCREX k UBOUND 0 SATURATE\r\n", want: refused},
		{calls: "INCREX k EX 9 ENX\r\nINCREX k\r\nINCREX k BYFLOAT 1\r\nINCREX k PERSIST\r\nINCREX k BYFLOAT 1 PERSIST\r\n",
			want: "*2\r\n:1\r\n:1\r\n*2\r\n:2\r\n:1\r\n*2\r\n$1\r\n3\r\n$1\r\n1\r\n" + refused, left: "3"},
		{calls: "MULTI\r\nINCREX k\r\nEXPIRE k 9\r\nEXEC\r\n", want: "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n*2\r\n:1\r\n:1\r\n:1", left: "1"},
		{calls: "MULTI\r\nINCREX k BYFLOAT 1\r\nEXEC\r\n", want: "+OK\r\n+QUEUED\r\n-EXECABORT"},
		{calls: script("return redis.call('INCREX', KEYS[1])"), want: refused},
		{calls: script("return redis.call('INCREX', KEYS[1], 'EX', 9)"), want: "*2\r\n:1\r\n:1", left: "1"},
		{calls: script(counts, "9"), want: ":1", left: "1"},
		{calls: script(counts), want: refused},
		{calls: script(loops), want: refused},
		{calls: "MULTI\r\n" + script(loops) + "PEXPIRE k 9000\r\nEXEC\r\n", want: "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:1", left: "1"},
		{calls: "MULTI\r\n" + script(loops) + "EXEC\r\n", want: "+OK\r\n+QUEUED\r\n-EXECABORT"},
	} {
		s := commandstest.New(func(c *commands.Config) {
			c.RequireTTL = true
		}).Session()
		if got, _, _ := commandstest.Converse(t, s, tt.calls); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.calls, got, tt.want)
		}
		want := bulk(tt.left)
		if tt.left == "" {
			want = "$-1\r\n"
		}
		if got := commandstest.Say(t, s, "GET k\r\n"); got != want {
			t.Errorf("%q leaves %q, want %q", tt.calls, got, want)
		}
	}
}
