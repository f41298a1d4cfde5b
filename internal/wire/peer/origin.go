package peer

import "net/netip"

// Origin returns the address that identifies a client's host: its IPv4 address, or the first 64 bits of its
// IPv6 address, as a host may use any in its network. ok is false over a unix socket.
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
		prefix, _ := addr.WithZone("").Prefix(64) // never fails for IPv6
		addr = prefix.Addr()
	}
	return addr, true
}

// Network returns Origin as text, or else the client's whole address.
func (p *Peer) Network() string {
	if origin, ok := p.Origin(); ok {
		return origin.String()
	}
	return p.Addr
}
