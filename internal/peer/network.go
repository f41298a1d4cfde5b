package peer

import (
	"net"
	"net/netip"
)

// ipv6HostBits is the part of an IPv6 address that a host chooses as it likes.
const ipv6HostBits = 64

// Network is the part of the client's address that it cannot change as it likes: an IPv4 address, the first half of an IPv6
// address, or the unix socket.
func (p *Peer) Network() string {
	if p.Unix {
		return p.Addr
	}
	host, _, err := net.SplitHostPort(p.Addr)
	if err != nil {
		return p.Addr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Unmap().Is4() {
		return host
	}
	prefix, err := addr.WithZone("").Prefix(addr.BitLen() - ipv6HostBits)
	if err != nil {
		return host
	}
	return prefix.String()
}
