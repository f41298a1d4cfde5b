package operation

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
)

// TestAddressesOfIPv4Alone: whoever has a firewall for IPv4 alone relies on 0.0.0.0 being no address of IPv6.
func TestAddressesOfIPv4Alone(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6:", err)
	}
	_ = l.Close()
	files, _ := harness.NewTLSFiles(t)
	for host, want := range map[string]struct {
		logged string
		v4, v6 error // of a connection to loopback
	}{
		"0.0.0.0":   {"0.0.0.0", nil, syscall.ECONNREFUSED},
		"127.0.0.1": {"127.0.0.1", nil, syscall.ECONNREFUSED},
		"":          {"::", nil, nil},
		"[::]":      {"::", nil, nil},
		"[::1]":     {"::1", syscall.ECONNREFUSED, nil},
	} {
		args := files.Flags()
		for _, flag := range []string{"addr", "tls-addr", "metrics-addr", "http-addr", "http-tls-addr", "grpc-addr", "grpc-tls-addr"} {
			_, port, _ := net.SplitHostPort(processtest.FreeAddr(t)) // port 0 may be another test's of the other version
			args = append(args, "--"+flag, host+":"+port)
		}
		p := harness.StartServer(t, args...)
		for door, listens := range map[string]string{
			"tcp": p.Addr, "tls": p.TLSAddr, "metrics": p.Metrics, "http": p.HTTP, "https": p.HTTPS, "grpc": p.GRPC, "grpcs": p.GRPCS,
		} {
			logged, port, _ := net.SplitHostPort(listens)
			if logged != want.logged {
				t.Errorf("%s on %q: the log has %s", door, host, listens)
			}
			for loopback, want := range map[string]error{"127.0.0.1": want.v4, "::1": want.v6} {
				nc, err := net.Dial("tcp", net.JoinHostPort(loopback, port))
				if !errors.Is(err, want) {
					t.Errorf("%s on %q: a connection to %s: %v, want %v", door, host, loopback, err, want)
				}
				if err == nil {
					_ = nc.Close()
				}
			}
		}
	}
}
