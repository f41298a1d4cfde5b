package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/http1"
)

const (
	partNames  = "ip, ip:HEADER, header:NAME, method, path and host, and hash: before any of them"
	partHash   = "hash:"
	partIP     = "ip:"
	partHeader = "header:"
)

// appendBy appends the key that is composed of parts of the visitor's request.
func (a *API) appendBy(b []byte, x *Exchange, by string) ([]byte, error) {
	f := forwarded{&x.Request, x.Client, &a.Config}
	parts := make([]string, 0, namedlimit.MaxParts)
	for part := range strings.SplitSeq(by, ",") {
		if len(parts) == namedlimit.MaxParts {
			return nil, bad("by= has more than " + strconv.Itoa(namedlimit.MaxParts) + " parts")
		}
		source, isSecret := strings.CutPrefix(part, partHash)
		value, err := f.part(source)
		if err != nil {
			return nil, err
		}
		if isSecret {
			value = namedlimit.HashPart(value)
		}
		parts = append(parts, value)
	}
	return namedlimit.AppendKey(b, parts...), nil
}

// forwarded tells what a proxy says about its visitor's request.
type forwarded struct {
	*http1.Request
	client Client
	*Config
}

func (f *forwarded) part(part string) (string, error) {
	switch part {
	case "ip":
		return f.ip("")
	case "method":
		return f.told(part, source{"X-Forwarded-Method", methodOf}, source{"X-Original-Method", methodOf})
	case "path":
		return f.told(part, source{"X-Forwarded-Uri", pathOf}, source{"X-Original-Uri", pathOf}, source{"X-Original-Url", pathOf})
	case "host":
		return f.told(part, source{"X-Forwarded-Host", hostOf}, source{"X-Original-Url", hostOfURL})
	}
	name, isIP := strings.CutPrefix(part, partIP)
	name, isHeader := strings.CutPrefix(name, partHeader)
	if isIP == isHeader || !isToken(name) {
		return "", bad("by= has " + quote(part) + "; there are " + partNames)
	}
	if isIP {
		return f.ip(name)
	}
	value, ok, err := f.only(name)
	if err == nil && (!ok || value == "") {
		err = bad("the request has no header " + name + ", of which by= makes the key")
	}
	return value, err
}

// isToken reports whether text is a token, as names of headers and methods are.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// only returns a header that is not there twice, as each reader may mean another of two.
func (f *forwarded) only(name string) (value string, ok bool, err error) {
	value, n := f.Field(name)
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

// methodOf returns a method in upper case: there are servers to which get is GET.
func methodOf(value string) (string, bool) { return strings.ToUpper(value), isToken(value) }
