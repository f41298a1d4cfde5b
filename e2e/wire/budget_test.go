package wire

import (
	"bufio"
	"strconv"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/resptest"
)

// TestTransactionThatWouldHoldUpOthers: an expensive transaction is refused whole, and the connection goes
// on.
func TestTransactionThatWouldHoldUpOthers(t *testing.T) {
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		const keys, walks = 2000, 2500
		p := startServer(t)
		attacker, other := p.Dial(t), p.Dial(t)
		var calls, replies strings.Builder
		for i := range keys {
			calls.WriteString(resptest.Encode("CL.THROTTLE", "k"+strconv.Itoa(i), "4", "1", "1000"))
			replies.WriteString(resptest.Ints(0, 5, 4, -1, 1000))
		}
		harness.Exchange(t, other, calls.String(), replies.String())
		in := "MULTI\r\nFLUSHALL\r\n" + strings.Repeat("DBSIZE\r\n", walks) + "EXEC\r\n"
		harness.Exchange(t, attacker, in[:len(in)-len("EXEC\r\n")], "+OK\r\n"+strings.Repeat("+QUEUED\r\n", 1+walks))
		if _, err := attacker.Write([]byte("EXEC\r\nPING\r\n")); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(attacker)
		line, err := lines.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "-EXECABORT ") || !strings.Contains(line, "'dbsize'") {
			t.Errorf("got %q, %v", line, err)
		}
		if line, err := lines.ReadString('\n'); line != "+PONG\r\n" || err != nil {
			t.Errorf("behind it: %q, %v", line, err)
		}
		harness.Exchange(t, other, "DBSIZE\r\nMULTI\r\nDBSIZE\r\nEXEC\r\n", ":2000\r\n+OK\r\n+QUEUED\r\n*1\r\n:2000\r\n")
	})
}
