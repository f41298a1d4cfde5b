package main

import (
	"bufio"
	"testing"
	"time"
)

// TestRateOfOneClient asks as fast as one connection can: no more may pass than the limit says. (The redis-cell
// module lets a third more pass here, because its host forgets debts below a millisecond.)
func TestRateOfOneClient(t *testing.T) {
	const rate = 1500
	duration := 3 * time.Second
	if testing.Short() {
		duration = time.Second
	}
	nc := startServer(t).dial(t)
	command := appendCommand(nil, "CL.THROTTLE", "k", "0", "1500", "1")
	replies := bufio.NewReader(nc)
	calls, allowed := 0, 0
	start := time.Now()
	for ; time.Since(start) < duration; calls++ {
		if _, err := nc.Write(command); err != nil {
			t.Fatal(err)
		}
		reply, err := readPipelineReply(replies)
		if err != nil {
			t.Fatal(err)
		}
		allowed += int(1 - reply.limited)
	}
	elapsed := time.Since(start).Seconds()
	t.Logf("%d of %d calls passed in %.3f s: %.1f/s of %.0f/s", allowed, calls, elapsed, float64(allowed)/elapsed, float64(calls)/elapsed)
	if most := rate*elapsed*1.02 + 1; float64(allowed) > most {
		t.Errorf("%d calls passed, want at most %.0f", allowed, most)
	}
	if least := rate * elapsed / 2; float64(allowed) < least {
		t.Errorf("%d calls passed, want at least %.0f", allowed, least)
	}
}
