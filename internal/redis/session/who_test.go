package session

import (
	"testing"

	"cellserver/internal/redis/background"
	"cellserver/internal/wire/peer"
)

// TestSlotsAreSharedBetween clients' networks, users and connections.
func TestSlotsAreSharedBetween(t *testing.T) {
	r := newHarness(t)
	for _, addr := range []string{"192.0.2.1:5000", "192.0.2.1:5001", "192.0.2.2:5000", "[2001:db8::1]:5000", "[2001:db8::2]:5000"} {
		c := &client{woken: make(chan struct{}, 1)}
		p := peer.Peer{Addr: addr}
		c.Session = r.NewSession(p, c)
		if got, want := who(&c.x), (background.Who{Addr: p.Network(), User: "default", Client: c.x.Client.ID}); got != want || want.Client == 0 {
			t.Errorf("%s: %+v, want %+v", addr, got, want)
		}
	}
}

// TestScriptsHaveTheirTurns by client and not by time: the second connection's first one precedes the first
// one's second.
func TestScriptsHaveTheirTurns(t *testing.T) {
	const source = "for i = 1, 1 do return redis.call('cl.throttle', KEYS[1], 9, 1, 60)[3] end"
	const script = "EVAL \"" + source + "\" 1 k\r\n"
	r := newHarness(t)
	first, second := r.session(), r.session()
	if got := first.say(t, script); got != ":9\r\n" {
		t.Fatalf("got %q", got)
	}
	r.Config.Scripts.Cached([]byte(source)).SetLong()
	busy := background.Who{Client: -1}
	r.Scripts.Take(t.Context(), busy)
	for _, s := range []*client{first, second} {
		s.wait(t, script)
	}
	r.Scripts.Give(busy)
	for s, want := range map[*client]string{first: ":7\r\n", second: ":8\r\n"} {
		s.expect(t, "", want)
	}
}
