package dashboard

import (
	"net"
	"slices"
	"strconv"
	"strings"
)

// hosts is the Host headers that are answered; nil answers all.
type hosts []string

// hostsOf names a loopback address in each way that a browser on this machine may.
func hostsOf(boundTo net.Addr) hosts {
	tcp, ok := boundTo.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return nil
	}
	var h hosts
	port := ":" + strconv.Itoa(tcp.Port)
	for _, host := range []string{"localhost", "127.0.0.1", "[::1]", strings.TrimSuffix(tcp.String(), port)} {
		h = append(h, host+port)
		if tcp.Port == 80 { // browsers leave it out
			h = append(h, host)
		}
	}
	return h
}

func (h hosts) allow(host string) bool { return h == nil || slices.Contains(h, strings.ToLower(host)) }

func (h hosts) refusal() string {
	return "this page answers only to a browser of its own machine: open http://" + h[0] + "/ (through a tunnel, on the same port)"
}
