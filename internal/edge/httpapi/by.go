package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
)

const (
	partNames  = "ip, ip:HEADER, header:NAME, method, path and host, and hash: before any of them"
	partHash   = "hash:"
	partIP     = "ip:"
	partHeader = "header:"
)

// appendBy appends the key that is composed of parts of the visitor's request.
func (a *API) appendBy(b []byte, x *Exchange, by string) (_ []byte, err error) {
	f := forwarded{&x.Request, x.Client, &a.Config}
	var ends [namedlimit.MaxParts]int
	n, text := 0, x.values[:0]
	for by, more := by, true; more; n++ {
		var part string
		if part, by, more = strings.Cut(by, ","); n == len(ends) {
			return b, bad("by= has more than " + strconv.Itoa(namedlimit.MaxParts) + " parts")
		}
		source, isSecret := strings.CutPrefix(part, partHash)
		from := len(text)
		if text, err = f.append(text, source); err != nil {
			return b, err
		}
		if isSecret {
			text = namedlimit.AppendHash(text[:from], text[from:])
		}
		ends[n] = len(text)
	}
	x.values = text
	var parts [namedlimit.MaxParts][]byte
	from := 0
	for i, end := range ends[:n] {
		parts[i], from = text[from:end], end
	}
	return namedlimit.AppendKey(b, parts[:n]...), nil
}

// forwarded tells what a proxy says about its visitor's request.
type forwarded struct {
	*Request
	client Client
	*Config
}

// append appends a part.
func (f *forwarded) append(b []byte, part string) ([]byte, error) {
	switch part {
	case "ip":
		return f.appendIP(b, "")
	case "method":
		return f.appendTold(b, part, source{"X-Forwarded-Method", methodOf}, source{"X-Original-Method", methodOf})
	case "path":
		return f.appendTold(b, part, source{"X-Forwarded-Uri", pathOf}, source{"X-Original-Uri", pathOf}, source{"X-Original-Url", pathOf})
	case "host":
		return f.appendTold(b, part, source{"X-Forwarded-Host", hostOf}, source{"X-Original-Url", hostOfURL})
	}
	name, isIP := strings.CutPrefix(part, partIP)
	name, isHeader := strings.CutPrefix(name, partHeader)
	if isIP == isHeader || !isToken(name) {
		return b, bad("by= has " + quote(part) + "; there are " + partNames)
	}
	if isIP {
		return f.appendIP(b, name)
	}
	value, ok, err := f.only(name)
	if err == nil && (!ok || value == "") {
		err = bad("the request has no header " + name + ", of which by= makes the key")
	}
	return append(b, value...), err
}

// isToken reports whether text is a token, as names of headers and methods are.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// only returns a header that is not there twice, as each reader may mean another of two.
func (f *forwarded) only(name string) (value string, ok bool, err error) {
	value, n := f.field(name)
	if n > 1 {
		return "", false, bad("the header " + http.CanonicalHeaderKey(name) + " is there more than once, and makes no key")
	}
	return value, n == 1, nil
}

// source is a header in which a proxy tells something, by its canonical name.
type source struct {
	header string
	read   func(value string) (part string, ok bool)
}

// appendTold appends what the proxy tells. Headers that do not agree are refused: the visitor has sent one of
// them.
func (f *forwarded) appendTold(b []byte, part string, sources ...source) ([]byte, error) {
	peer, ok := f.peer()
	if !ok || !f.trusts(peer) {
		return b, bad("by=" + part + " requires that the proxy's address is in --http-trusted-proxies")
	}
	found, told := "", ""
	for _, s := range sources {
		value, ok, err := f.only(s.header)
		if err != nil {
			return b, err
		}
		if !ok {
			continue
		}
		read, ok := s.read(value)
		switch {
		case !ok && part == "host": // a URL without a host
		case !ok || read == "":
			return b, bad("the header " + s.header + " has no " + part)
		case found != "" && read != told:
			return b, bad("the headers " + found + " and " + s.header + " differ about the " + part + "; have the proxy clear the one that it does not set")
		default:
			found, told = s.header, read
		}
	}
	if found == "" {
		return b, bad("by=" + part + " requires that the proxy sends " + sources[0].header)
	}
	return append(b, told...), nil
}

// methodOf returns a method in upper case: there are servers to which get is GET.
func methodOf(value string) (string, bool) { return strings.ToUpper(value), isToken(value) }
