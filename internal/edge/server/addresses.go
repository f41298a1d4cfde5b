package server

import (
	"net/netip"
	"sync"

	"cellserver/internal/wire/peer"
)

// addresses counts the connections of each address, but those over unix sockets. The zero value has counted none.
type addresses struct {
	mu        sync.Mutex // guards connected
	connected map[netip.Addr]int
}

// take counts one more connection, and is false if its address has as many as it may; 0 is no limit.
func (a *addresses) take(p *peer.Peer, most int) bool {
	origin, ok := p.Origin()
	if !ok {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if most > 0 && a.connected[origin] >= most {
		return false
	}
	if a.connected == nil {
		a.connected = map[netip.Addr]int{}
	}
	a.connected[origin]++
	return true
}

// leave takes back what take has counted.
func (a *addresses) leave(p *peer.Peer) {
	origin, ok := p.Origin()
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.connected[origin]--
	if a.connected[origin] > 0 {
		return
	}
	delete(a.connected, origin)
	if len(a.connected) == 0 {
		a.connected = nil // or it would stay at its largest
	}
}
