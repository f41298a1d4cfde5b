package servers

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"cellserver/internal/test/resptest"
)

// allocated returns the bytes that do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHostileReplies: whatever a server or a sentinel announces, a call fails with a line within the bounds
// of replies.
func TestHostileReplies(t *testing.T) {
	for what, hostile := range resptest.Hostile() {
		for _, command := range []string{"hello", "evalsha", "script", "cluster", "sentinel", ""} {
			addr := resptest.StartHostile(t, command, hostile)
			url := "redis://" + addr
			switch command {
			case "cluster", "":
				url = "redis-cluster://" + addr
			case "sentinel":
				url = "redis-sentinel://" + addr + "/mymaster"
			}
			var failed *Failed
			bytes := allocated(func() {
				p := open(t, Config{URL: url})
				c := &Call{Script: nothing, Keys: []string{"a"}}
				failed = asFailed(p.Do(deadline(t, 200*time.Millisecond), "a", c, 0))
				_ = p.Close()
			})
			if command != "script" && (failed == nil || strings.Contains(failed.Text, "\n")) {
				t.Errorf("%s in reply to %q gives %+v", what, command, failed)
			}
			if most := 2 * uint64(replyBounds().Bytes); bytes > most {
				t.Errorf("%s in reply to %q: %d bytes were allocated, more than %d", what, command, bytes, most)
			}
		}
	}
}

// TestClusterOfTooManyServers: a bounded number of announced servers is kept.
func TestClusterOfTooManyServers(t *testing.T) {
	p := open(t, Config{URL: "redis://127.0.0.1:1"})
	var last *Server
	for i := range maxServers + 100 {
		last = p.At("10.0.0.1:" + strconv.Itoa(i))
	}
	if n := len(p.servers()); n != maxServers || !p.Forgotten(last) {
		t.Errorf("%d servers are known", n)
	}
	c := &Call{Script: nothing}
	p.Send(deadline(t, time.Minute), last, []*Call{c}, 0)
	if c.Err == nil || !strings.Contains(c.Err.Error(), "more than 4096 servers") {
		t.Errorf("one too many: %v", c.Err)
	}
}
