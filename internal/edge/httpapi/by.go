package httpapi

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

const (
	maxParts   = 8 // of by=
	partNames  = "ip, header:NAME, method, path and host"
	partHeader = "header:"
)

// appendBy appends the key that is composed of parts of the visitor's request. Each has its length in front,
// as in 9:192.0.2.1,3:GET, so that no two different lists make one key.
func (a *api) appendBy(b []byte, q *request, by string) ([]byte, error) {
	f := forwarded{request: q, trusted: a.TrustedProxies}
	n := 0
	for part := range strings.SplitSeq(by, ",") {
		if n++; n > maxParts {
			return nil, bad("by= has more than " + strconv.Itoa(maxParts) + " parts")
		}
		value, err := f.part(part)
		if err != nil {
			return nil, err
		}
		if n > 1 {
			b = append(b, ',')
		}
		b = append(append(strconv.AppendInt(b, int64(len(value)), 10), ':'), value...)
	}
	return b, nil
}

// forwarded tells what a proxy says about its visitor's request.
type forwarded struct {
	*request
	trusted []netip.Prefix
}

func (f *forwarded) part(part string) (string, error) {
	switch part {
	case "ip":
		return f.ip()
	case "method":
		return f.told(part, source{"X-Forwarded-Method", asIs}, source{"X-Original-Method", asIs})
	case "path":
		return f.told(part, source{"X-Forwarded-Uri", pathOf}, source{"X-Original-Uri", pathOf}, source{"X-Original-Url", pathOf})
	case "host":
		return f.told(part, source{"X-Forwarded-Host", hostOf}, source{"X-Original-Url", hostOfURL})
	}
	name, ok := strings.CutPrefix(part, partHeader)
	if !ok || name == "" || strings.ContainsFunc(name, isNoToken) {
		return "", bad("by= has " + quote(part) + "; there are " + partNames)
	}
	value, ok, err := f.only(http.CanonicalHeaderKey(name))
	if err == nil && (!ok || value == "") {
		err = bad("the request has no header " + name + ", of which by= makes the key")
	}
	return value, err
}

// isNoToken reports what no header's name has.
func isNoToken(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// only returns a header that is not there twice, as each reader may mean another of two.
func (f *forwarded) only(canonical string) (value string, ok bool, err error) {
	switch values := f.Header[canonical]; len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	default:
		return "", false, bad("the header " + canonical + " is there more than once, and makes no key")
	}
}

// source is a header in which a proxy tells something, by its canonical name.
type source struct {
	header string
	read   func(value string) (part string, ok bool)
}

// told returns what the proxy tells. Headers that do not agree are refused: the visitor has sent one of them.
func (f *forwarded) told(part string, sources ...source) (told string, err error) {
	peer, ok := f.peer()
	if !ok || !f.trusts(peer) {
		return "", bad("by=" + part + " requires that the proxy's address is in --http-trusted-proxies")
	}
	found := ""
	for _, s := range sources {
		value, ok, err := f.only(s.header)
		if err != nil {
			return "", err
		}
		if !ok {
			continue
		}
		read, ok := s.read(value)
		switch {
		case !ok && part == "host": // a URL without a host
		case !ok || read == "":
			return "", bad("the header " + s.header + " has no " + part)
		case found != "" && read != told:
			return "", bad("the headers " + found + " and " + s.header + " differ about the " + part + "; have the proxy clear the one that it does not set")
		default:
			found, told = s.header, read
		}
	}
	if found == "" {
		return "", bad("by=" + part + " requires that the proxy sends " + sources[0].header)
	}
	return told, nil
}

func asIs(value string) (string, bool) { return value, true }

// pathOf returns the path of a URI or URL as the visitor has sent it, without the query.
func pathOf(value string) (string, bool) {
	if !strings.HasPrefix(value, "/") {
		_, after, ok := strings.Cut(value, "://")
		slash := strings.IndexByte(after, '/')
		if !ok || slash < 0 {
			return "", false
		}
		value = after[slash:]
	}
	if end := strings.IndexAny(value, "?#"); end >= 0 {
		value = value[:end]
	}
	return value, true
}

// hostOf returns a host's name in lower case, without the port.
func hostOf(value string) (string, bool) {
	if colon := strings.LastIndexByte(value, ':'); colon >= 0 && !strings.HasSuffix(value, "]") {
		value = value[:colon]
	}
	value = strings.ToLower(strings.TrimSuffix(value, "."))
	return value, value != "" && !strings.ContainsAny(value, " ,/")
}

func hostOfURL(value string) (string, bool) {
	_, after, ok := strings.Cut(value, "://")
	if !ok {
		return "", false
	}
	if end := strings.IndexAny(after, "/?#"); end >= 0 {
		after = after[:end]
	}
	return hostOf(after)
}

// peer returns the address of the connection.
func (f *forwarded) peer() (netip.Addr, bool) {
	p := f.conn.Peer()
	from, err := netip.ParseAddrPort(p.Addr)
	return normal(from.Addr()), err == nil && !p.Unix
}

func normal(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func (f *forwarded) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(f.trusted, func(p netip.Prefix) bool { return p.Contains(a) })
}

// ip returns the visitor's address: the connection's, or what a trusted proxy tells.
func (f *forwarded) ip() (string, error) {
	peer, ok := f.peer()
	if !ok {
		return "", bad("by=ip requires a connection over TCP")
	}
	if !f.trusts(peer) {
		return peer.String(), nil
	}
	visitor, err := f.hop()
	if err != nil {
		return "", err
	}
	text, ok, err := f.only("X-Real-Ip")
	if err != nil {
		return "", err
	}
	if !ok {
		if !visitor.IsValid() {
			return "", bad("by=ip requires that the trusted proxy sends X-Forwarded-For or X-Real-IP")
		}
		return visitor.String(), nil
	}
	last, ok := readAddress(text)
	switch {
	case !ok:
		return "", bad("X-Real-IP is not an address")
	case !visitor.IsValid():
		return last.String(), nil
	case last != visitor && !f.trusts(last): // else it is that of a proxy before this one
		return "", bad("X-Forwarded-For and X-Real-IP differ; have the proxy clear the one that it does not set")
	}
	return visitor.String(), nil
}

// hop returns the last address of X-Forwarded-For that is not a trusted proxy's, or the first if all are.
// What is before it the visitor may have made up.
func (f *forwarded) hop() (visitor netip.Addr, err error) {
	values := f.Header["X-Forwarded-For"]
	for i := len(values) - 1; i >= 0; i-- {
		for rest := values[i]; rest != ""; {
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

// readAddress reads an address, with a port or without.
func readAddress(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return normal(a), true
	}
	a, err := netip.ParseAddrPort(text)
	return normal(a.Addr()), err == nil
}
