package keys_test

import (
	"strings"
	"testing"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/resptest"
)

// TestIncrexChangesWatchedKeys only if it adds, or deletes what is there.
func TestIncrexChangesWatchedKeys(t *testing.T) {
	for call, changes := range map[string]bool{
		"INCREX k": true, "INCREX k BYINT 0": true, "INCREX k BYFLOAT 0": true, "INCREX k EX 9": true, "INCREX k PERSIST": true,
		"INCREX k UBOUND 5 SATURATE": true, "INCREX k EXAT 1": true, "INCREX k BYFLOAT 1 EXAT 1": true, "INCREX absent": true, "INCREX absent UBOUND 0 SATURATE": true,
		"INCREX k UBOUND 5": false, "INCREX k BYFLOAT 1 UBOUND 5 EX 9": false, "INCREX k NX": false, "INCREX absent XX": false, "INCREX absent LBOUND 5 EX 9": false,
		"INCREX absent EXAT 1": false, "INCREX absent BYFLOAT 1 EXAT 1": false, "INCREX k ENX": false, "INCREX l SATURATE": false,
	} {
		for _, form := range []string{"%", "MULTI\r\n%EXEC\r\n", "EVAL \"return redis.pcall(unpack(ARGV))\" 3 k absent l "} {
			r := commandstest.New()
			s, other := r.Session(), r.Session()
			commandstest.Say(t, s, "SET k 5\r\nCL.THROTTLE l 1 1 60\r\nWATCH k absent l\r\nMULTI\r\nPING\r\n")
			in := strings.Replace(form, "%", call+"\r\n", 1)
			if in == form {
				in += call + "\r\n"
			}
			commandstest.Say(t, other, in)
			want := "*1\r\n+PONG\r\n"
			if changes {
				want = "*-1\r\n"
			}
			if got := commandstest.Say(t, s, "EXEC\r\n"); got != want {
				t.Errorf("%q: got %q, want %q", in, got, want)
			}
		}
	}
}

// TestIncrexWithoutRoom: no key is created, and what is declined is answered.
func TestIncrexWithoutRoom(t *testing.T) {
	const oom = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
	s := commandstest.New(func(c *commands.Config) {
		c.Store.(*shard.Store).SetMaxBytes(1, store.NoEviction)
		c.Store.(*shard.Store).SetMaxValueBytes(1)
	}).Session()
	commandstest.Expect(t, s, "INCREX k EX 5\r\nINCREX k BYFLOAT 1\r\nINCREX k XX\r\nINCREX k UBOUND 0\r\nINCREX k EXAT 1\r\nEXISTS k\r\n",
		oom+oom+strings.Repeat("*2\r\n:0\r\n:0\r\n", 2)+"*2\r\n:1\r\n:1\r\n:0\r\n")
}

// TestIncrexInRESP3: numbers of BYFLOAT are doubles, also in EXEC.
func TestIncrexInRESP3(t *testing.T) {
	s := commandstest.New().Session()
	commandstest.Say(t, s, "HELLO 3\r\n")
	commandstest.Expect(t, s, "INCREX k BYFLOAT 2.5\r\nINCREX k BYFLOAT 1 UBOUND 3\r\nMULTI\r\nINCREX k BYFLOAT -2.5\r\nINCREX k\r\nEXEC\r\n",
		"*2\r\n,2.5\r\n,2.5\r\n*2\r\n,2.5\r\n,0\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n*2\r\n,0\r\n,-2.5\r\n*2\r\n:1\r\n:1\r\n")
}

// TestIncrexOfBothKindsInOrder: a pipeline of integers and floats keeps its order, and so does each reply.
func TestIncrexOfBothKindsInOrder(t *testing.T) {
	s := commandstest.New().Session()
	var in, want strings.Builder
	for range 300 {
		in.WriteString(resptest.Encode("INCREX", "k", "UBOUND", "1") + resptest.Encode("INCREX", "k", "BYFLOAT", "-1", "EX", "9") + resptest.Encode("INCREX", "k", "ENX") + resptest.Encode("TTL", "k"))
		want.WriteString("*2\r\n:1\r\n:1\r\n*2\r\n$1\r\n0\r\n$2\r\n-1\r\n-ERR ENX flag requires an expiration\r\n:9\r\n")
	}
	commandstest.Expect(t, s, in.String(), want.String())
}
