package commands_test

import (
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// TestRefusalsOfLibraries: calls of libraries that keep their limits in Redis are refused in one line that
// names the alternative, everywhere.
func TestRefusalsOfLibraries(t *testing.T) {
	for _, tt := range []struct{ library, call, instead string }{
		{"redis_rate", "SET k 1700000001.5 EX 60", "CL.THROTTLE"},
		{"rate-limiter-flexible", "SET k 0 EX 1 NX", "CL.THROTTLE"},
		{"rate-limiter-flexible", "INCRBY k 1", "CL.FIXEDWINDOW"},
		{"rate-limit-redis", "INCR k", "CL.FIXEDWINDOW"},
		{"throttled", "SETNX k 1700000001500000000", "CL.THROTTLE"},
		{"throttled", "SETEX k 60 1700000001500000000", "CL.THROTTLE"},
		{"ulule/limiter, limits, rack-attack", "INCRBY k 1", "CL.FIXEDWINDOW"},
		{"a funnel", "HMGET k capacity left rate at", "CL.THROTTLE"},
		{"a funnel", "HSET k left 14", "CL.THROTTLE"},
		{"a sliding window", "ZADD k 1700000000 1700000000", "CL.SLIDINGWINDOW"},
		{"a sliding window", "ZREMRANGEBYSCORE k 0 1699999940", "CL.SLIDINGWINDOW"},
		{"a sliding window", "ZCARD k", "CL.SLIDINGWINDOW"},
		{"a token bucket", "LPUSH k token", "CL.BUCKET"},
		{"a token bucket", "LLEN k", "CL.BUCKET"},
		{"a token bucket", "LPOP k", "CL.BUCKET"},
		{"limits, its moving window", "LRANGE k 0 10", "CL.SLIDINGWINDOW"},
		{"limits, its moving window", "LINDEX k 9", "CL.SLIDINGWINDOW"},
		{"a log of times", "LTRIM k 0 9", "CL.SLIDINGWINDOW"},
		{"a semaphore", "SADD k holder", "CL.CONCURRENCY"},
	} {
		s := commandstest.New().Session()
		helps := func(sent, line string) {
			t.Helper()
			if !strings.HasPrefix(line, "-ERR cellserver keeps limits, not ") || !strings.Contains(line, ": "+tt.instead+" ") ||
				!strings.Contains(line, "; see cellserver's docs/RECIPES.md#") ||
				strings.Index(line, "\r\n") != len(line)-2 {
				t.Errorf("%s: %s: got %q, want one line that names %s", tt.library, sent, line, tt.instead)
			}
		}
		call := tt.call + "\r\n"
		lines := strings.SplitAfter(commandstest.Say(t, s, "PING\r\n"+call+"PING\r\n"), "\r\n")
		if len(lines) != 4 || lines[0] != commandstest.Pong || lines[2] != commandstest.Pong {
			t.Fatalf("%s: in a pipeline: %q", tt.library, lines)
		}
		helps("in a pipeline", lines[1])
		words := "'" + strings.Join(strings.Fields(tt.call), "','") + "'"
		raised := commandstest.Say(t, s, resptest.Encode("EVAL", "return redis.call("+words+")", "1", "k"))
		helps("in a script", raised)
		if !strings.Contains(raised, " script: ") || !strings.HasSuffix(raised, ", on @user_script:1.\r\n") {
			t.Errorf("%s: the script raised %q", tt.library, raised)
		}
		helps("caught by a script", commandstest.Say(t, s, resptest.Encode("EVAL", "return redis.pcall("+words+")", "1", "k")))
		if got := commandstest.Say(t, s, "EXISTS k\r\n"); got != ":0\r\n" {
			t.Errorf("%s: afterwards %q", tt.library, got)
		}
	}
}

// TestRefusalsInMulti: a command refused when queued aborts EXEC; an invalid value of SET fails only in EXEC,
// beside the other commands, as in Redis.
func TestRefusalsInMulti(t *testing.T) {
	s := commandstest.New().Session()
	got := commandstest.Say(t, s, "MULTI\r\nCL.THROTTLE k 4 1 10\r\nINCR n\r\nEXEC\r\nEXISTS k\r\n")
	const want = "+OK\r\n+QUEUED\r\n-ERR cellserver keeps limits, not counters: CL.FIXEDWINDOW key max_count period counts and decides in one call; " +
		"see cellserver's docs/RECIPES.md#counters\r\n-EXECABORT Transaction discarded because of previous errors.\r\n:0\r\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = commandstest.Say(t, s, "MULTI\r\nCL.THROTTLE k 4 1 10\r\nSET n 1\r\nEXEC\r\nEXISTS k\r\n")
	if !strings.HasPrefix(got, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n*5\r\n") || !strings.Contains(got, "-ERR cellserver keeps limits, not values: ") ||
		!strings.HasSuffix(got, "\r\n:1\r\n") {
		t.Errorf("got %q", got)
	}
	commandstest.Expect(t, s, "INCR\r\nINCR a b\r\n",
		strings.Repeat("-ERR wrong number of arguments for 'incr' command\r\n", 2))
}
