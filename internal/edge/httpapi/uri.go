package httpapi

import (
	"net/netip"
	"path"
	"strconv"
	"strings"

	"cellserver/internal/wire/glob"
)

// pathOf returns the path of a URI or URL in its normal form, without the query.
func pathOf(value string) (string, bool) {
	if end := strings.IndexAny(value, "?#"); end >= 0 {
		value = value[:end]
	}
	if !strings.HasPrefix(value, "/") {
		_, after, ok := strings.Cut(value, "://")
		if !ok || after == "" {
			return "", false
		}
		slash := strings.IndexByte(after, '/')
		if slash < 0 {
			return "/", true
		}
		value = after[slash:]
	}
	return normalPath(value), true
}

// normalPath returns the form that equivalent paths share by RFC 3986, 6.2.2: unreserved characters are
// plain, all that a path cannot have is escaped, in upper case, and there are no dot segments. Slashes that
// follow each other are one, as to most servers. path begins with a slash.
func normalPath(p string) string {
	if isNormalPath(p) {
		return p
	}
	b := make([]byte, 0, len(p)+16)
	for i := 0; i < len(p); i++ {
		c, escaped := p[i], false
		if c == '%' { // one that escapes nothing is a character
			var v byte
			if v, escaped = escapedByte(p[i:]); escaped {
				c, i = v, i+2
			}
		}
		if isUnreserved(c) || !escaped && strings.IndexByte(pathReserved, c) >= 0 {
			b = append(b, c)
		} else {
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return withoutDots(string(b))
}

const upperHex = "0123456789ABCDEF"

// pathReserved are the characters that a path may have and that differ from their escapes.
const pathReserved = "/:@!$&'()*+,;="

// isNormalPath reports whether a path needs no change; most do not.
func isNormalPath(p string) bool {
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '/' && i+1 < len(p) && (p[i+1] == '/' || p[i+1] == '.'):
			return false
		case !isUnreserved(c) && strings.IndexByte(pathReserved, c) < 0:
			return false
		}
	}
	return true
}

// withoutDots removes dot segments, as RFC 3986, 5.2.4, and doubled slashes.
func withoutDots(p string) string {
	clean := path.Clean(p)
	if last := p[strings.LastIndexByte(p, '/')+1:]; clean != "/" && (last == "" || last == "." || last == "..") {
		clean += "/" // which Clean drops
	}
	return clean
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// escapedByte reads the two digits after a percent sign.
func escapedByte(escape string) (c byte, ok bool) {
	if len(escape) < len("%XX") {
		return 0, false
	}
	n, err := strconv.ParseUint(escape[1:len("%XX")], 16, 8)
	return byte(n), err == nil
}

// hostOf returns a host in lower case, without the port and the last dot, or an address in brackets.
func hostOf(value string) (string, bool) {
	name, port := value, ""
	bare, bracketed := strings.CutPrefix(value, "[")
	if bracketed {
		var closed bool
		if name, port, closed = strings.Cut(bare, "]"); !closed {
			return "", false
		}
	} else if colon := strings.IndexByte(value, ':'); colon >= 0 && strings.Count(value, ":") == 1 {
		name, port = value[:colon], value[colon:]
	}
	if port != "" && (port[0] != ':' || strings.Trim(port[1:], "0123456789") != "") {
		return "", false
	}
	if a, err := netip.ParseAddr(name); err == nil && a.Is6() && a.Zone() == "" {
		return "[" + a.String() + "]", true
	}
	name = glob.Fold([]byte(strings.TrimRight(name, ".")))
	return name, name != "" && !bracketed && !strings.ContainsAny(name, " ,/:@[]%?#\\")
}

func hostOfURL(value string) (string, bool) {
	_, after, ok := strings.Cut(value, "://")
	if !ok {
		return "", false
	}
	if end := strings.IndexAny(after, "/?#"); end >= 0 {
		after = after[:end]
	}
	return hostOf(after[strings.LastIndexByte(after, '@')+1:])
}
