package app

import (
	"testing"

	"cellserver/internal/wire/peer"
)

func TestIsLocal(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "127.255.3.4:65535": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		"192.0.2.2:1": false, "[fd00::2]:1": false, "[::ffff:192.0.2.2]:1": false, "[fe80::1%eth0]:1": false,
		"0.0.0.0:1": false, "localhost:1": false, "": false,
	} {
		if got := isLocal(peer.Peer{Addr: addr}); got != want {
			t.Errorf("%q: got %v", addr, got)
		}
	}
	if !isLocal(peer.Peer{Addr: "/tmp/s:0", Unix: true}) {
		t.Error("a unix socket is not local")
	}
}
