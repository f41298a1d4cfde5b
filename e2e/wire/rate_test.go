package wire

import (
	"bufio"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/resptest"
)

// TestRateOfOneClient sends calls at full speed: never more may pass than the limit allows. (redis-cell
// allows a third more here, because Redis expires keys with less than a millisecond to live.) How many pass
// at least depends on the machine, but no call may be limited while a unit is available.
func TestRateOfOneClient(t *testing.T) {
	t.Parallel()
	const rate, interval = 1500, time.Second / 1500
	duration := 3 * time.Second
	if testing.Short() {
		duration = time.Second
	}
	nc := harness.StartServer(t).Dial(t)
	command := resptest.Append(nil, "CL.THROTTLE", "k", "0", "1500", "1")
	replies := bufio.NewReader(nc)
	calls, allowed := 0, 0
	var lastSent, lastRead time.Duration // of the last call that passed; the server's time lies between them
	start := time.Now()
	for ; time.Since(start) < duration; calls++ {
		sent := time.Since(start)
		if _, err := nc.Write(command); err != nil {
			t.Fatal(err)
		}
		reply, err := readPipelineReply(replies)
		if err != nil {
			t.Fatal(err)
		}
		switch read := time.Since(start); {
		case reply.limited == 1 && (allowed == 0 || sent > lastRead+interval):
			t.Fatalf("call %d was refused %s after the last that passed", calls, sent-lastRead)
		case reply.limited == 0 && allowed > 0 && read < lastSent+interval:
			t.Fatalf("call %d passed %s after the last one", calls, read-lastSent)
		case reply.limited == 0:
			allowed, lastSent, lastRead = allowed+1, sent, read
		}
	}
	elapsed := time.Since(start).Seconds()
	t.Logf("%d of %d calls passed in %.3f s: %.1f/s of %.0f/s", allowed, calls, elapsed, float64(allowed)/elapsed, float64(calls)/elapsed)
	if most := rate*elapsed*1.02 + 1; float64(allowed) > most {
		t.Errorf("%d calls passed, want at most %.0f", allowed, most)
	}
}
