package admin_test

import (
	"strings"
	"testing"
	"time"

	"cellserver/internal/commands/rig"
	"cellserver/internal/peer"
	"cellserver/internal/resptest"
)

const loop = "redis.call('cl.throttle', KEYS[1], 4, 1, 10) while true do end"

// TestScriptKill ends what runs, by EVAL and in EXEC.
func TestScriptKill(t *testing.T) {
	for _, in := range []string{"", "MULTI\r\n"} {
		r := rig.New(rig.Meddling, rig.WithTimeLimit(time.Hour))
		s, other := r.Session(), r.Session()
		started := make(chan struct{}, 1)
		r.Meddle = func() { started <- struct{}{} }
		call := resptest.Encode("EVAL", "redis.call('test.meddle') "+loop, "1", "a")
		if in != "" {
			rig.Say(t, s, in+call)
			call = "EXEC\r\n"
		}
		if _, _, status := rig.Feed(t, s, call); status != peer.Waiting {
			t.Fatalf("status %d", status)
		}
		<-started
		if got := rig.Say(t, other, "SCRIPT KILL\r\n"); got != "+OK\r\n" {
			t.Errorf("got %q", got)
		}
		<-s.Conn.Woken
		got := rig.Say(t, s, "EXISTS a\r\n")
		if !strings.Contains(got, "-ERR Script killed by user with SCRIPT KILL") || !strings.HasSuffix(got, "\r\n:0\r\n") {
			t.Errorf("%q: got %q", in, got)
		}
	}
}
