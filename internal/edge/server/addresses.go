package server

import (
	"net/netip"
	"sync"

	"cellserver/internal/wire/peer"
)

// addresses counts connections by address, except those over unix sockets. The zero value is ready to use.
type addresses struct {
	mu        sync.Mutex // guards connected
	connected map[netip.Addr]int
}

// take counts a connection. It returns false if its address has most already; 0 is no limit.
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

// leave undoes take.
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
		a.connected = nil // a map keeps its largest size
	}
}
