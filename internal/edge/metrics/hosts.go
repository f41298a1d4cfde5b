package metrics

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// hosts decides by a request's Host header whether it is meant for this server. A web page that had its own name resolve to
// this address (DNS rebinding) would otherwise read it by way of the reader's browser. The header is then the page's name,
// so an IP address in it is nobody's trick.
type hosts struct {
	names    []string // besides localhost
	loopback bool     // the server is reached on loopback only
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

// allows judges a Host header, with or without a port.
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
