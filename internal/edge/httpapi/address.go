package httpapi

import (
	"net/netip"
	"slices"
	"strings"

	"cellserver/internal/decide/namedlimit"
)

// Headers in which proxies tell an address:
const (
	forwardedFor    = "X-Forwarded-For"
	forwardedHeader = "Forwarded"
	realIP          = "X-Real-IP"
)

// peer returns the address of the connection.
func (f *forwarded) peer() (netip.Addr, bool) {
	p := f.client.Peer()
	from, err := netip.ParseAddrPort(p.Addr)
	return normal(from.Addr()), err == nil && !p.Unix
}

func normal(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func (f *forwarded) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(f.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// appendIP appends the visitor's address, or its network of IPv6: the connection's, or what a trusted proxy
// tells, in a header if one is named.
func (f *forwarded) appendIP(b []byte, header string) ([]byte, error) {
	visitor, ok := f.peer()
	if !ok {
		return b, bad("by=ip requires a connection over TCP")
	}
	if f.trusts(visitor) {
		var err error
		if visitor, err = f.toldIn(header); err != nil {
			return b, err
		}
	}
	return namedlimit.AppendNetwork(b, visitor, f.IPv6PrefixBits), nil
}

// toldIn returns the address that a trusted proxy tells, in a header if one is named.
func (f *forwarded) toldIn(header string) (visitor netip.Addr, err error) {
	if header == "" {
		return f.toldAnywhere()
	}
	visitor, err = f.addressIn(header)
	if err == nil && !visitor.IsValid() {
		err = bad("by=ip:" + header + " requires that the trusted proxy sends that header")
	}
	return visitor, err
}

// toldAnywhere returns what all of the headers tell that are there: the visitor may have sent any of them.
func (f *forwarded) toldAnywhere() (visitor netip.Addr, err error) {
	found := ""
	for _, header := range []string{forwardedFor, forwardedHeader, realIP} {
		told, err := f.addressIn(header)
		switch {
		case err != nil:
			return told, err
		case !told.IsValid():
		case found == "":
			found, visitor = header, told
		case told != visitor && (header != realIP || !f.trusts(told)): // else it is that of a proxy before this one
			return told, bad(found + " and " + header + " differ; have the proxy clear the one that it does not set")
		}
	}
	if found == "" {
		return visitor, bad("by=ip requires that the trusted proxy sends X-Forwarded-For or X-Real-IP, or Forwarded")
	}
	return visitor, nil
}

// addressIn returns the address in one header, or none.
func (f *forwarded) addressIn(header string) (netip.Addr, error) {
	switch {
	case strings.EqualFold(header, forwardedFor):
		return f.hop()
	case strings.EqualFold(header, forwardedHeader):
		return f.hopOfForwarded()
	default:
		return f.single(header)
	}
}

// single returns the address in a header that is there once, or none.
func (f *forwarded) single(header string) (a netip.Addr, err error) {
	text, ok, err := f.only(header)
	if err != nil || !ok {
		return a, err
	}
	if a, ok = readAddress(text); !ok {
		return a, bad(header + " is not an address")
	}
	return a, nil
}

// hop returns the last address of X-Forwarded-For that is not a trusted proxy's, or the first if all are.
// What is before it the visitor may have made up.
func (f *forwarded) hop() (visitor netip.Addr, err error) {
	for i := len(f.Fields) - 1; i >= 0; i-- {
		if !f.Fields[i].Is(forwardedFor) {
			continue
		}
		for rest := f.Fields[i].Value; rest != ""; {
			comma := strings.LastIndexByte(rest, ',')
			text := strings.TrimSpace(rest[comma+1:])
			rest = rest[:max(comma, 0)]
			var ok bool
			if visitor, ok = readAddress(text); !ok {
				return netip.Addr{}, bad("X-Forwarded-For has " + quote(text) + " in place of an address")
			}
			if !f.trusts(visitor) {
				return visitor, nil
			}
		}
	}
	return visitor, nil
}

// hopOfForwarded is hop for Forwarded, RFC 7239.
func (f *forwarded) hopOfForwarded() (visitor netip.Addr, err error) {
	for i := len(f.Fields) - 1; i >= 0; i-- {
		if !f.Fields[i].Is(forwardedHeader) {
			continue
		}
		nodes, ok := nodesOf(f.Fields[i].Value)
		if !ok {
			return netip.Addr{}, bad("Forwarded is not as RFC 7239 has it: " + quote(f.Fields[i].Value))
		}
		for j := len(nodes) - 1; j >= 0; j-- {
			if visitor, ok = readNode(nodes[j]); !ok {
				return netip.Addr{}, bad("Forwarded has " + quote(nodes[j]) + " in place of for= and an address")
			}
			if !f.trusts(visitor) {
				return visitor, nil
			}
		}
	}
	return visitor, nil
}

// nodesOf returns the for= of each element of a Forwarded, "" where there is none.
func nodesOf(value string) (nodes []string, ok bool) {
	node, has := "", false
	for rest := value; ; {
		var name, text string
		var isPair bool
		if rest = strings.TrimLeft(rest, " \t"); rest != "" && rest[0] != ',' && rest[0] != ';' {
			if name, rest, isPair = strings.Cut(rest, "="); !isPair || !isToken(name) {
				return nil, false
			}
			if text, rest, ok = cutValue(rest); !ok {
				return nil, false
			}
		}
		if strings.EqualFold(name, "for") {
			if has {
				return nil, false
			}
			node, has = text, true
		}
		rest = strings.TrimLeft(rest, " \t")
		switch {
		case rest == "":
			return append(nodes, node), true
		case rest[0] == ',':
			nodes, node, has = append(nodes, node), "", false
		case rest[0] != ';':
			return nil, false
		}
		rest = rest[1:]
	}
}

// cutValue cuts a token or a quoted string.
func cutValue(rest string) (value, after string, ok bool) {
	if !strings.HasPrefix(rest, `"`) {
		end := strings.IndexAny(rest, ",; \t")
		if end < 0 {
			end = len(rest)
		}
		return rest[:end], rest[end:], end > 0 && !strings.Contains(rest[:end], `"`)
	}
	var b []byte
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '"':
			return string(b), rest[i+1:], true
		case '\\':
			if i++; i == len(rest) {
				return "", "", false
			}
		}
		b = append(b, rest[i])
	}
	return "", "", false
}

// readNode reads the address of a node; the port may be a name, such as _x. Other names have no address.
func readNode(node string) (netip.Addr, bool) {
	if colon := strings.LastIndex(node, ":_"); colon > 0 {
		node = node[:colon]
	}
	return readAddress(node)
}

// readAddress reads an address, with a port or without.
func readAddress(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return normal(a), true
	}
	a, err := netip.ParseAddrPort(text)
	return normal(a.Addr()), err == nil
}
