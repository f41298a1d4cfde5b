package peer

import "net/netip"

// Origin returns whom a client is counted with, where clients are told apart by their address: its IPv4 address, or the
// first 64 bits of its IPv6 address, for a host has as many of those as it likes. It is false over a unix socket.
func (p *Peer) Origin() (origin netip.Addr, ok bool) {
	if p.Unix {
		return netip.Addr{}, false
	}
	from, err := netip.ParseAddrPort(p.Addr)
	if err != nil {
		return netip.Addr{}, false
	}
	addr := from.Addr().Unmap()
	if addr.Is6() {
		prefix, _ := addr.WithZone("").Prefix(64) // which an IPv6 address has
		addr = prefix.Addr()
	}
	return addr, true
}

// Network is Origin as a text; where there is none, the client's whole address.
func (p *Peer) Network() string {
	if origin, ok := p.Origin(); ok {
		return origin.String()
	}
	return p.Addr
}
