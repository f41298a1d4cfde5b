package session_test

import (
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// TestNewKeysAreLimited in every command that creates a key; other calls are answered.
func TestNewKeysAreLimited(t *testing.T) {
	const refused = "-ERR more than 2 new keys per second from this address, the limit of --max-new-keys-per-second; existing keys still answer"
	const line = refused + "\r\n"
	first, second := resptest.Ints(0, 5, 4, -1, 10), resptest.Ints(0, 5, 3, -1, 20)
	call := func(key string) string { return "CL.THROTTLE " + key + " 4 1 10\r\n" }
	all := func(keys string) (in string) {
		for key := range strings.FieldsSeq(keys) {
			in += call(key)
		}
		return in
	}
	eval := func(script, key string) string {
		return resptest.Encode("EVAL", script, "1", key, "4", "1", "10")
	}
	set := func(key, options string) string { return "SET " + key + " 5 " + options + "\r\n" }
	dumped := resptest.ParseAll(t, commandstest.Say(t, commandstest.New().Session(), set("k", "")+"DUMP k\r\n"))[1].Text
	const interpreted = "local r = redis.call('cl.throttle', KEYS[1], 4, 1, 10) return r"
	const nativeCall = "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"
	for _, tt := range []struct{ name, in, want string }{
		{"in a pipeline", all("a b c a d"), first + first + line + second + line},
		{"twice in a batch", all("a a b b c"), first + second + first + second + line},
		{"in other databases", all("a b") + "SELECT 1\r\n" + all("a"), first + first + "+OK\r\n" + line},
		{"calls that make none", "CL.THROTTLE a 4 1 10 0\r\nCL.THROTTLE b 4 1 10 -1\r\nCL.THROTTLE c 4 1 10 6\r\n" + all("a b c"),
			resptest.Ints(0, 5, 5, -1, 0) + resptest.Ints(0, 5, 5, -1, 0) + resptest.Ints(1, 5, 5, -1, 0) + first + first + line},
		{"a call that makes none, and another of the same key", all("a b") + "CL.THROTTLE c 4 1 10 6\r\n" + all("c"),
			first + first + resptest.Ints(1, 5, 5, -1, 0) + line},
		{"in a transaction", "MULTI\r\n" + all("a b c a") + "EXEC\r\n", "+OK\r\n" + strings.Repeat("+QUEUED\r\n", 4) + "*4\r\n" + first + first + line + second},
		{"in scripts", eval(interpreted, "a") + eval(interpreted, "b") + eval(interpreted, "c") + eval(interpreted, "a"),
			first + first + refused + " script: " + commandstest.SHAOf(interpreted) + ", on @user_script:1.\r\n" + second},
		{"in scripts that are one call", eval(nativeCall, "a") + eval(nativeCall, "b") + eval(nativeCall, "c") + eval(nativeCall, "a"),
			first + first + refused + " script: " + commandstest.SHAOf(nativeCall) + ", on @user_script:1.\r\n" + second},
		{"by SET and RESTORE", set("a", "") + set("b", "NX GET") + set("c", "") + set("c", "XX") + resptest.Encode("RESTORE", "c", "0", dumped) + set("a", "") +
			"INCR c\r\nINCREX c BYFLOAT 1\r\nINCREX c EX 5\r\nINCREX c XX\r\nINCR a\r\nMSET a 1 c 1\r\nMSET a 1 b 1\r\nRENAME a c\r\nGETDEL b\r\n" + all("c"),
			"+OK\r\n$-1\r\n" + line + "$-1\r\n" + line + "+OK\r\n" + line + line + line + "*2\r\n:0\r\n:0\r\n:6\r\n" + line + "+OK\r\n" + line + "$1\r\n1\r\n" + line},
		{"by conditional writes", set("a", "IFNE x") + set("b", "IFEQ x") + "GETSET b x\r\n" + set("c", "IFNE x") + set("c", "IFEQ x") + set("b", "IFEQ x") +
			"MSETNX c 1 d 2\r\nMSETNX a 1 d 2\r\nMSETEX 2 a 1 c 2\r\nMSETEX 2 a 1 c 2 XX\r\nMSETEX 2 a 1 b 2 XX\r\nDELEX c IFNE x\r\nDELIFEQ c x\r\n",
			"+OK\r\n$-1\r\n$-1\r\n" + line + "$-1\r\n+OK\r\n" + line + ":0\r\n" + line + ":0\r\n:1\r\n:0\r\n:0\r\n"},
		{"by SET in a transaction", all("a") + "MULTI\r\n" + set("b", "") + set("c", "") + set("b", "") + "EXEC\r\nDEL b\r\n",
			first + "+OK\r\n" + strings.Repeat("+QUEUED\r\n", 3) + "*3\r\n+OK\r\n" + line + "+OK\r\n:1\r\n"},
		{"of each kind", "CL.FIXEDWINDOW a 1 60\r\nCL.SLIDINGWINDOW b 1 60\r\nCL.SLIDINGWINDOW c 1 60 APPROX\r\nCL.PTHROTTLE c 1 1 60\r\n" +
			"CL.BUCKET ADD c 1 1\r\nCL.BUCKET RESET c 1\r\nCL.BUCKET TAKE c 1 -1\r\nCL.BUCKET TAKE c 1 0\r\nCL.FIXEDWINDOW c 1 60 2\r\nCL.FIXEDWINDOW c 1 60 2 COUNTDENIED\r\nCL.FIXEDWINDOW a 1 60\r\n",
			resptest.Ints(0, 1, 0, -1, 60) + resptest.Ints(0, 1, 0, -1, 60) + strings.Repeat(line, 5) + resptest.Ints(0, 1, 0, -1, -1) +
				resptest.Ints(1, 1, 1, -1, 0) + line + resptest.Ints(1, 1, 0, 60, 60)},
		{"of a named limit", "CL.LIMIT SET l 4 1 10 99 1 1\r\nCL.CHECK l a 6\r\nCL.CHECK l a\r\nCL.CHECK l b\r\nCL.CHECK l c\r\nCL.CHECK l a\r\nCL.CHECK l c\r\n",
			"+OK\r\n" + resptest.Ints(1, 5, 5, -1, 0) + first + first + line + second + line},
		{"keys that were deleted", all("a b") + "DEL a\r\n" + all("a"), first + first + ":1\r\n" + line},
	} {
		r := commandstest.New()
		r.Engine.NewKeys.Limit(2)
		c := r.Session()
		commandstest.Expect(t, c, tt.in, tt.want)
		r.Clock.Advance(commandstest.Sec)
		commandstest.Expect(t, c, "SELECT 2\r\n"+all("a b c"), "+OK\r\n"+first+first+line)
	}
}

// TestNewKeysCountOnce, though others change a key and force more attempts.
func TestNewKeysCountOnce(t *testing.T) {
	const script = "redis.call('test.meddle') redis.call('cl.throttle', KEYS[1], 9, 1, 10) redis.call('cl.throttle', KEYS[2], 9, 1, 10) return 'done'"
	const change = "CL.THROTTLE a 9 1 10\r\n"
	for _, tt := range []struct{ name, in, want string }{
		{"a script", resptest.Encode("EVAL", script, "2", "a", "new"), "$4\r\ndone\r\n"},
		{"EXEC", "MULTI\r\nTEST.MEDDLE\r\n" + "CL.THROTTLE new 9 1 10\r\n" + change +
			resptest.Encode("EVAL", "return 1", "1", "a") + "EXEC\r\n", "*4\r\n+OK\r\n*5\r\n:0\r\n"},
	} {
		r := commandstest.New(commandstest.Meddling)
		c, other := r.Session(), r.Session()
		commandstest.Say(t, other, change)
		r.Engine.NewKeys.Limit(1)
		times := 0
		r.Meddle = func() {
			if times++; times <= 2 {
				commandstest.Say(t, other, change)
			}
		}
		if got := commandstest.Say(t, c, tt.in); !strings.Contains(got, tt.want) || times != 3 {
			t.Errorf("%s: in %d attempts got %q", tt.name, times, got)
		}
	}
}
