package clients

import (
	"fmt"
	"testing"

	"cellserver/internal/wire/peer"
)

// TestNewKeys: the burst is a second's keys, for each address separately.
func TestNewKeys(t *testing.T) {
	var n NewKeys
	from := func(addr string) *peer.Peer { return &peer.Peer{Addr: addr} }
	if !n.Take(from("192.0.2.1:1"), t0) || n.Limited() || n.PerSec() != 0 {
		t.Error("the zero NewKeys has a limit")
	}
	if n.Limit(2); !n.Limited() || n.PerSec() != 2 {
		t.Fatalf("%d a second", n.PerSec())
	}
	for i, step := range []struct {
		atNs int64
		addr string
		want bool
	}{
		{0, "192.0.2.1:1", true}, {0, "192.0.2.1:2", true}, {0, "192.0.2.1:1", false}, {sec/2 - 1, "192.0.2.1:1", false},
		{sec / 2, "192.0.2.1:1", true}, {sec / 2, "192.0.2.1:1", false}, {sec / 2, "192.0.2.2:1", true},
		{sec / 2, "[2001:db8::1]:1", true}, {sec / 2, "[2001:db8::2]:1", true}, {sec / 2, "[2001:db8::3]:1", false},
		{100 * sec, "192.0.2.1:1", true}, {100 * sec, "192.0.2.1:1", true}, {100 * sec, "192.0.2.1:1", false},
	} {
		if got := n.Take(from(step.addr), t0+step.atNs); got != step.want {
			t.Errorf("step %d: %t", i, got)
		}
	}
	for range 3 {
		if !n.Take(&peer.Peer{Addr: "/s:0", Unix: true}, t0) {
			t.Error("a client on a unix socket is limited")
		}
	}
	if n.Refused() != 5 {
		t.Errorf("%d refused", n.Refused())
	}
	if n.Limit(0); !n.Take(from("192.0.2.1:1"), t0+100*sec) {
		t.Error("the limit was not removed")
	}
	n.Limit(MaxNewKeys)
	for range 10 {
		if !n.Take(from("192.0.2.1:1"), t0+100*sec) {
			t.Error("limited by the largest limit")
		}
	}
}

// TestNewKeysOfManyAddresses: memory is bounded; further addresses share a limit for a second.
func TestNewKeysOfManyAddresses(t *testing.T) {
	var n NewKeys
	n.Limit(1)
	from := func(i int) *peer.Peer { return &peer.Peer{Addr: fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)} }
	for i := range maxOrigins {
		if !n.Take(from(i), t0) {
			t.Fatalf("address %d is limited", i)
		}
	}
	if !n.Take(from(maxOrigins), t0) || n.Take(from(maxOrigins+1), t0) || len(n.tatsNs) != maxOrigins+1 {
		t.Errorf("%d addresses distinguished", len(n.tatsNs))
	}
	if !n.Take(from(maxOrigins+1), t0+sec) || !n.Take(from(maxOrigins), t0+sec) || len(n.tatsNs) != 2 {
		t.Errorf("%d addresses after a second, want 2", len(n.tatsNs))
	}
}
