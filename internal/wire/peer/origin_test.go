package peer

import "testing"

func TestOrigin(t *testing.T) {
	for _, tt := range []struct {
		peer Peer
		want string
		ok   bool
	}{
		{Peer{Addr: "192.0.2.7:5000"}, "192.0.2.7", true},
		{Peer{Addr: "[::ffff:192.0.2.7]:5000"}, "192.0.2.7", true},
		{Peer{Addr: "[2001:db8:1:2:3:4:5:6]:5000"}, "2001:db8:1:2::", true},
		{Peer{Addr: "[fe80::1%eth0]:5000"}, "fe80::", true},
		{Peer{Addr: "/run/cellserver.sock:0", Unix: true}, "invalid IP", false},
		{Peer{Addr: "pipe"}, "invalid IP", false},
	} {
		if got, ok := tt.peer.Origin(); got.String() != tt.want || ok != tt.ok {
			t.Errorf("%+v: %s, %t", tt.peer, got, ok)
		}
		want := tt.want
		if !tt.ok {
			want = tt.peer.Addr
		}
		if got := tt.peer.Network(); got != want {
			t.Errorf("%+v: %s, want %s", tt.peer, got, want)
		}
	}
}
