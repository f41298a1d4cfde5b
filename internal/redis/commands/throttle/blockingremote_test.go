package throttle_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// inRemoteBubble is inBubble over a remote store that allows only batches while others wait.
func inRemoteBubble(t *testing.T, f func(t *testing.T, r *commandstest.Harness, on *storetest.RemoteStore)) {
	synctest.Test(t, func(t *testing.T) {
		on := storetest.NewRemote(shard.New())
		on.Forbid("session.(*Session).Feed", "session.(*Session).HungUp", "session.(*Session).Close", "session.(*Engine).EndBackground")
		f(t, commandstest.New(onSystemClock, func(c *commands.Config) { c.Store = on }), on)
		synctest.Wait()
		if within := on.Within(); within != nil {
			t.Errorf("called where others wait: %v", within)
		}
	})
}

// waitsRemotely sends a call that must wait, and waits until it is debited.
func waitsRemotely(t *testing.T, s *commandstest.Client, in string) {
	t.Helper()
	waits(t, s, in)
	stillWaits(t, s)
}

func TestBThrottleOverRemote(t *testing.T) {
	inRemoteBubble(t, func(t *testing.T, r *commandstest.Harness, _ *storetest.RemoteStore) { testTurns(t, r, 1) })
}

// TestBThrottleLeavingRemotely: a client that leaves, in any way at any time, returns its debit.
func TestBThrottleLeavingRemotely(t *testing.T) {
	const ended = "-ERR the command was ended before it was done: the server is shutting down, or its client has gone\r\n"
	const cancelled = "-ERR the client closed its side of the connection before this command was done; it was cancelled\r\n"
	for name, tt := range map[string]struct {
		leave func(t *testing.T, r *commandstest.Harness, s *commandstest.Client)
		told  string
	}{
		"reset":       {func(_ *testing.T, _ *commandstest.Harness, s *commandstest.Client) { s.HungUp(peer.Reset) }, cancelled},
		"half closed": {func(_ *testing.T, _ *commandstest.Harness, s *commandstest.Client) { s.HungUp(peer.HalfClosed) }, cancelled},
		"closed":      {func(_ *testing.T, _ *commandstest.Harness, s *commandstest.Client) { s.Close() }, ""},
		"both": {func(_ *testing.T, _ *commandstest.Harness, s *commandstest.Client) {
			s.HungUp(peer.HalfClosed)
			s.Close()
		}, ""},
		"unblocked": {func(t *testing.T, r *commandstest.Harness, _ *commandstest.Client) {
			if got := commandstest.Say(t, r.Session(), "CLIENT UNBLOCK 2\r\nCLIENT UNBLOCK 2\r\n"); got != ":1\r\n:0\r\n" && got != ":0\r\n:0\r\n" {
				t.Errorf("got %q", got)
			}
		}, resptest.Ints(1, 1, 0, 60, 60)},
		"the end": {func(_ *testing.T, r *commandstest.Harness, _ *commandstest.Client) { r.Engine.EndBackground() }, ended},
	} {
		for _, when := range []string{"before", "while it waits"} {
			if name == "unblocked" && when == "before" { // not blocked
				continue
			}
			t.Run(name+" "+when, func(t *testing.T) {
				inRemoteBubble(t, func(t *testing.T, r *commandstest.Harness, on *storetest.RemoteStore) {
					first, leaving := r.Session(), r.Session()
					commandstest.Say(t, first, "CL.BTHROTTLE k 0 1 60 1 0\r\n")
					if when == "before" {
						on.Hold()
					}
					waitsRemotely(t, leaving, "CL.BTHROTTLE k 0 1 60 1 0\r\n")
					tt.leave(t, r, leaving)
					on.Release()
					synctest.Wait()
					if tt.told != "" {
						got, _, status := commandstest.Converse(t, leaving, "")
						if got != tt.told && (when != "before" || !strings.HasPrefix(got, "-ERR ")) || status != peer.NeedInput {
							t.Errorf("it was told %q, status %d, want %q", got, status, tt.told)
						}
						leaving.Close()
					}
					synctest.Wait()
					commandstest.Expect(t, first, "CL.THROTTLE k 0 1 60 0\r\n",
						resptest.Ints(0, 1, 0, -1, 60))
					if n := r.Engine.Clients.Blocked(); n != 0 {
						t.Errorf("%d are blocked", n)
					}
				})
			})
		}
	}
}

// TestBThrottleFailsRemotely: a failed debit is reported at once, and a failed refund drains.
func TestBThrottleFailsRemotely(t *testing.T) {
	inRemoteBubble(t, func(t *testing.T, r *commandstest.Harness, on *storetest.RemoteStore) {
		failure := store.Failure{Line: storetest.LineDown}
		s, leaving := r.Session(), r.Session()
		on.Fail(failure)
		commandstest.Expect(t, s, "CL.BTHROTTLE k 0 1 60 1 0\r\n", "-"+storetest.LineDown+"\r\n")
		on.Fail(nil)
		commandstest.Say(t, s, "CL.BTHROTTLE k 0 1 60 1 0\r\n")
		waitsRemotely(t, leaving, "CL.BTHROTTLE k 0 1 60 1 0\r\n")
		on.Fail(failure)
		leaving.Close()
		synctest.Wait()
		on.Fail(nil)
		commandstest.Expect(t, s, "CL.THROTTLE k 0 1 60 0\r\n", resptest.Ints(1, 1, 0, 60, 120))
		time.Sleep(2 * time.Minute)
	})
}
