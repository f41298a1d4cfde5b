package cellserver

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

var errPeer = errors.New("cellserver: the peer has no IP address; use another key")

// AddressKey returns the key of a client's address: an IPv4 address, or the /64 of an IPv6 address, as a
// host has that many. The client is the peer, unless that is a trusted proxy: then it is the last address
// of X-Forwarded-For that is not one, or the first if all are. What an untrusted peer says is ignored.
func AddressKey(peer string, forwardedFor []string, trusted []netip.Prefix) (string, error) {
	client, ok := readAddress(peer)
	if !ok {
		return "", errPeer
	}
	trusts := func(a netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	for i := len(forwardedFor) - 1; i >= 0; i-- {
		for rest := forwardedFor[i]; rest != "" && trusts(client); {
			comma := strings.LastIndexByte(rest, ',')
			text := strings.TrimSpace(rest[comma+1:])
			rest = rest[:max(comma, 0)]
			if client, ok = readAddress(text); !ok {
				return "", fmt.Errorf("X-Forwarded-For has %.50q in place of an address", text)
			}
		}
	}
	if client.Is4() {
		return client.String(), nil
	}
	const bits = 64 // of a network, the smallest that a client is given
	network, err := client.Prefix(bits)
	return network.String(), err
}

// readAddress reads an address, with a port or without.
func readAddress(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		var withPort netip.AddrPort
		withPort, err = netip.ParseAddrPort(text)
		a = withPort.Addr()
	}
	return a.Unmap().WithZone(""), err == nil
}
