package httpapi

import (
	"net/netip"
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
func normalPath(path string) string {
	if isNormalPath(path) {
		return path
	}
	b := make([]byte, 0, len(path)+16)
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch v, ok := unhex(path[i:]); {
		case c == '%' && ok && isUnreserved(v):
			b, i = append(b, v), i+2
		case c == '%' && ok:
			b, i = appendPercent(b, v), i+2
		case c == '/' && len(b) > 0 && b[len(b)-1] == '/':
		case isUnreserved(c) || strings.IndexByte(pathReserved, c) >= 0:
			b = append(b, c)
		default: // also a percent sign that escapes nothing
			b = appendPercent(b, c)
		}
	}
	return withoutDots(b)
}

// pathReserved are the characters that a path may have and that differ from their escapes.
const pathReserved = "/:@!$&'()*+,;="

// isNormalPath reports whether a path needs no change; most do not.
func isNormalPath(path string) bool {
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '/' && i+1 < len(path) && (path[i+1] == '/' || path[i+1] == '.'):
			return false
		case !isUnreserved(c) && strings.IndexByte(pathReserved, c) < 0:
			return false
		}
	}
	return true
}

// withoutDots removes dot segments, as RFC 3986, 5.2.4, in a path without doubled slashes.
func withoutDots(path []byte) string {
	kept := path[:0]
	for rest := path; len(rest) > 0; {
		end := 1
		for end < len(rest) && rest[end] != '/' {
			end++
		}
		segment := rest[:end] // with the slash before it
		rest = rest[end:]
		switch string(segment) {
		case "/.":
		case "/..":
			for n := len(kept); n > 0; {
				n--
				if kept[n] == '/' {
					kept = kept[:n]
					break
				}
			}
		default:
			kept = append(kept, segment...)
			continue
		}
		if len(rest) == 0 {
			kept = append(kept, '/')
		}
	}
	return string(kept)
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// unhex reads the two digits after a percent sign.
func unhex(escape string) (v byte, ok bool) {
	if len(escape) < len("%XX") {
		return 0, false
	}
	high, low := strings.IndexByte(hexDigits, upper(escape[1])), strings.IndexByte(hexDigits, upper(escape[2]))
	return byte(high<<4 | low), high >= 0 && low >= 0
}

const hexDigits = "0123456789ABCDEF"

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

func appendPercent(b []byte, v byte) []byte {
	return append(b, '%', hexDigits[v>>4], hexDigits[v&15])
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
