package clients

import (
	"fmt"
	"testing"

	"cellserver/internal/wire/peer"
)

const (
	loginT0  = int64(1_700_000_000_000_000_000)
	loginSec = int64(1_000_000_000)
)

// TestPauses: each failure from a host makes the next one's pause twice as long, up to a bound; a minute, or
// too many hosts have them forgotten.
func TestPauses(t *testing.T) {
	a, sameHost, socket := peer.Peer{Addr: "192.0.2.1:1"}, peer.Peer{Addr: "192.0.2.1:2"}, peer.Peer{Addr: "/run/a:1", Unix: true}
	v6, sameNetwork, otherNetwork := peer.Peer{Addr: "[2001:db8::1]:1"}, peer.Peer{Addr: "[2001:db8::2:0:0:1]:9"}, peer.Peer{Addr: "[2001:db8:0:1::1]:1"}
	mapped := peer.Peer{Addr: "[::ffff:192.0.2.9]:1"}
	var f Logins
	nowNs := loginT0
	for i, step := range []struct {
		from     peer.Peer
		afterSec int64
		pauseMs  int64
	}{
		{a, 0, 50}, {sameHost, 0, 100}, {a, 0, 200}, {v6, 0, 50}, {a, 0, 400}, {socket, 0, 50}, {a, 0, 800}, {a, 0, 1600}, {a, 0, 1600},
		{a, 60, 1600}, {a, 61, 50}, {a, 0, 100}, {v6, 0, 50}, {sameNetwork, 0, 100}, {otherNetwork, 0, 50}, {mapped, 0, 50}, {sameHost, 0, 200}, {a, 3600, 50},
	} {
		nowNs += step.afterSec * loginSec
		if got := f.Add(step.from, nowNs).Milliseconds(); got != step.pauseMs {
			t.Errorf("step %d: a pause of %d ms, want %d", i, got, step.pauseMs)
		}
	}
	if total, recent := f.Total(); total != 18 || recent != 18 {
		t.Errorf("%d failures, %d of them recent", total, recent)
	}
	f.Reset()
	if total, recent := f.Total(); total != 18 || recent != 0 {
		t.Errorf("after Reset: %d failures, %d of them recent", total, recent)
	}
}

// TestHostsAreForgotten, so that no sender of addresses can fill the memory.
func TestHostsAreForgotten(t *testing.T) {
	var f Logins
	nowNs := loginT0
	for i := range 3 * maxLoginHosts {
		if i == maxLoginHosts/2 {
			nowNs += 2 * int64(loginMemory)
		}
		f.Add(peer.Peer{Addr: string(rune(i)) + ":1"}, nowNs)
		if len(f.byHost) > maxLoginHosts {
			t.Fatalf("%d hosts are remembered", len(f.byHost))
		}
	}
	if got, _ := f.Total(); got != 3*maxLoginHosts {
		t.Errorf("%d failures counted", got)
	}
}

// TestOldestHostsAreForgottenFirst: those of more than a minute ago go, and the others stay, if that is
// enough.
func TestOldestHostsAreForgottenFirst(t *testing.T) {
	var f Logins
	from := func(i int) peer.Peer { return peer.Peer{Addr: fmt.Sprint("host", i, ":1")} }
	const recent = maxLoginHosts / 2
	nowNs := loginT0 + int64(loginMemory)
	for i := range maxLoginHosts {
		at := loginT0 // a minute ago, which is not yet forgotten
		if i >= recent {
			at--
		}
		f.Add(from(i), at)
	}
	f.Add(peer.Peer{Addr: "new:1"}, nowNs)
	if len(f.byHost) != recent+1 {
		t.Errorf("%d hosts are remembered", len(f.byHost))
	}
	for i := range recent {
		if got := f.Add(from(i), nowNs); got != 2*firstPause {
			t.Fatalf("host %d: a pause of %s", i, got)
		}
	}
}
