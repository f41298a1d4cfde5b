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
		{"a bit map", "BITFIELD k INCRBY u8 0 1", "INCR,"},
		{"a log of calls", "APPEND k 1", "SET"},
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
			if !strings.HasPrefix(line, "-ERR cellserver keeps ") || !strings.Contains(line, " "+tt.instead+" ") ||
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

// TestRefusalsInMulti: a command refused when queued aborts EXEC.
func TestRefusalsInMulti(t *testing.T) {
	s := commandstest.New().Session()
	commandstest.ExpectLike(t, s, "MULTI\r\nCL.THROTTLE k 4 1 10\r\nHSET n f 1\r\nEXEC\r\nEXISTS k\r\n",
		"+OK\r\n+QUEUED\r\n-ERR cellserver keeps limits, not hashes: CL.THROTTLE key max_burst count period …\r\n"+
			"-EXECABORT Transaction discarded because of previous errors.\r\n:0\r\n")
	commandstest.Expect(t, s, "HDEL\r\nHDEL a\r\n", strings.Repeat("-ERR wrong number of arguments for 'hdel' command\r\n", 2))
}
