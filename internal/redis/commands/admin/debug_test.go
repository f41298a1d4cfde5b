package admin_test

import (
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/wire/peer"
)

// TestDebugSleep replies after just that time.
func TestDebugSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ok, refused = "+OK\r\n", "-ERR DEBUG SLEEP takes 0 to 3600 seconds\r\n"
		s := commandstest.New().Session()
		for _, tt := range []struct {
			sec  string
			want string
			took time.Duration
		}{
			{"2.5", ok, 2500 * time.Millisecond}, {"0", ok, 0}, {"3600", ok, time.Hour}, {"3600.001", refused, 0}, {"-0.001", refused, 0},
			{"NaN", refused, 0}, {"x", refused, 0},
		} {
			began := time.Now()
			if got := commandstest.Say(t, s, "DEBUG SLEEP "+tt.sec+"\r\n"); got != tt.want || time.Since(began) != tt.took {
				t.Errorf("%s s: got %q after %s", tt.sec, got, time.Since(began))
			}
		}
	})
}

// TestMayDebug: it is asked about the client.
func TestMayDebug(t *testing.T) {
	r := commandstest.New(func(c *commands.Config) { c.MayDebug = func(p peer.Peer) bool { return p.Unix } })
	const refused = "-ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run " +
		"it from a local connection, otherwise you need to start the server with --enable-debug-command\r\n"
	for unix, want := range map[bool]string{true: "+OK\r\n", false: refused} {
		if got := commandstest.Say(t, r.SessionOf(peer.Peer{Unix: unix}), "DEBUG SLEEP 0\r\n"); got != want {
			t.Errorf("unix %t: got %q, want %q", unix, got, want)
		}
	}
}
