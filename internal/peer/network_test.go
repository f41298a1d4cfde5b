package peer

import "testing"

func TestNetwork(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1:5000":          "192.0.2.1",
		"[2001:db8::1]:5000":      "2001:db8::/64",
		"[2001:db8::2:3:4:5]:1":   "2001:db8::/64",
		"[fe80::1%eth0]:5000":     "fe80::/64",
		"[::ffff:192.0.2.1]:5000": "::ffff:192.0.2.1",
		"example:5000":            "example",
		"":                        "",
	} {
		if got := (&Peer{Addr: addr}).Network(); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	if got := (&Peer{Addr: "/tmp/s:0", Unix: true}).Network(); got != "/tmp/s:0" {
		t.Errorf("a unix socket: %s", got)
	}
}
