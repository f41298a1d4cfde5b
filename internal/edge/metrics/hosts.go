package metrics

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// hosts decides by the Host header whether a request is meant for this server. A web page whose name resolves
// to this address (DNS rebinding) could otherwise read it through a visitor's browser. The header is then the
// page's name, never an IP address.
type hosts struct {
	names    []string // in addition to localhost
	loopback bool     // the server listens on loopback only
}

// guard answers 403 to requests for other hosts.
func (a hosts) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.allows(r.Host) {
			http.Error(w, a.refusal(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (a hosts) refusal() string {
	if a.loopback {
		return "this address answers only to a loopback host, such as localhost, and to --metrics-allowed-hosts"
	}
	return "this address answers only to an IP address, localhost, and --metrics-allowed-hosts"
}

// allows checks a Host header, with or without a port.
func (a hosts) allows(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if ip := net.ParseIP(host); ip != nil {
		return !a.loopback || ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost") ||
		slices.ContainsFunc(a.names, func(name string) bool { return strings.EqualFold(host, name) })
}
