package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"cellserver/internal/edge/http1"
)

const (
	tokenHeader = "X-Cellserver-Token"
	tokenPath   = "/t/"
)

// admit sets the user of a request, and refuses strangers before anything of theirs is read or looked up. A
// token in the path comes from a proxy's configuration, and goes before one in a header, which may be its
// visitor's.
func (a *API) admit(x *Exchange) (err error) {
	token := ""
	if rest, ok := strings.CutPrefix(x.path, tokenPath); ok {
		var slash bool
		if token, x.path, slash = strings.Cut(rest, "/"); token == "" || !slash {
			return &refusal{status: http.StatusUnauthorized, detail: "the path has no token; it must be /t/TOKEN/v1/..."}
		}
		x.path = "/" + x.path
	} else if value, n := x.Request.Field(tokenHeader); n > 0 {
		if token = value; n > 1 || token == "" {
			return &refusal{status: http.StatusUnauthorized, detail: tokenHeader + " must be there once and not be empty; " + needsToken}
		}
	}
	if x.User, err = x.Client.User(token); err != nil || x.User != nil {
		return err
	}
	if err := a.admitBrowser(&x.Request); err != nil {
		return err
	}
	if x.Client.IsStranger(nil) {
		return &refusal{status: http.StatusUnauthorized, detail: needsToken}
	}
	return nil
}

// admitBrowser refuses requests that a browser makes for a page, which could else use it to reach a server
// that trusts its host or its network. Pages of another port count as the same site, and may be anybody's.
func (a *API) admitBrowser(r *http1.Request) error {
	forbid := func(detail string) error {
		return &refusal{status: http.StatusForbidden, detail: detail + ", or send a token: see --http-tokens-file"}
	}
	if _, n := r.Field("Origin"); n > 0 {
		return forbid("a request with Origin comes from a web page; have the proxy clear that header")
	}
	if site, n := r.Field("Sec-Fetch-Site"); n > 1 || site == "cross-site" || site == "same-site" {
		return forbid("a request with this Sec-Fetch-Site comes from a web page; have the proxy clear that header")
	}
	if !a.allows(r.Host) {
		return forbid("the host " + quote(r.Host) + " is not allowed, as a web page's name may resolve to this address; use an IP address or localhost, add the host to --http-allowed-hosts")
	}
	return nil
}

// allows checks a Host header, with or without a port. A page that resolves its name to this address (DNS
// rebinding) sends its name, never an IP address.
func (a *API) allows(host string) bool {
	name := host
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 && !strings.HasSuffix(host, "]") {
		name = host[:colon]
	}
	if bare, ok := strings.CutPrefix(name, "["); ok {
		name, _ = strings.CutSuffix(bare, "]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		if ip.Unmap().IsUnspecified() { // this machine, and no site of its own to a browser, which says less of its pages
			return false
		}
		tcp, ok := a.BoundTo.(*net.TCPAddr)
		return !ok || !tcp.IP.IsLoopback() || ip.Unmap().IsLoopback()
	}
	return slices.ContainsFunc(a.AllowedHosts, func(allowed string) bool {
		return strings.EqualFold(name, allowed) || strings.EqualFold(host, allowed)
	})
}
