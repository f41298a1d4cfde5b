package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"cellserver/internal/app/settings"
)

// listeners holds the server's listeners; nil for those not configured.
type listeners struct{ TCP, TLS, Unix, Metrics, HTTP, HTTPTLS, GRPC, GRPCTLS net.Listener }

func openListeners(ctx context.Context, o *settings.Options) (*listeners, error) {
	l := &listeners{}
	var config net.ListenConfig
	for _, one := range []struct {
		flag, addr string
		into       *net.Listener
	}{
		{"addr", o.Addr, &l.TCP}, {"tls-addr", o.TLSAddr, &l.TLS}, {"metrics-addr", o.MetricsAddr, &l.Metrics},
		{"http-addr", o.Doors.HTTPAddr, &l.HTTP}, {"http-tls-addr", o.Doors.HTTPTLSAddr, &l.HTTPTLS},
		{"grpc-addr", o.Doors.GRPCAddr, &l.GRPC}, {"grpc-tls-addr", o.Doors.GRPCTLSAddr, &l.GRPCTLS},
		{"unixsocket", o.UnixSocket, &l.Unix},
	} {
		var err error
		switch {
		case one.addr == "":
		case one.into == &l.Unix:
			l.Unix, err = listenUnix(ctx, one.addr, o.SocketMode)
		default:
			*one.into, err = config.Listen(ctx, network(one.addr), one.addr)
		}
		if err != nil {
			l.Close()
			return nil, listenError(one.flag, one.addr, err)
		}
	}
	return l, nil
}

// network returns the network to listen on: with "tcp", Go would listen on 0.0.0.0 over IPv6 too.
func network(addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().Is4() {
		return "tcp4"
	}
	return "tcp"
}

func listenError(flag, addr string, err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err // drops the address, which the message has
	}
	return fmt.Errorf("cannot listen on %s: %w; choose another with --%s or %s", addr, err, flag, settings.EnvName(flag))
}

// All yields the listeners that are open, by name.
func (l *listeners) All() iter.Seq2[string, net.Listener] {
	return func(yield func(string, net.Listener) bool) {
		for _, on := range []struct {
			name string
			l    net.Listener
		}{
			{"tcp", l.TCP}, {"tls", l.TLS}, {"unix", l.Unix}, {"http", l.HTTP}, {"https", l.HTTPTLS},
			{"grpc", l.GRPC}, {"grpcs", l.GRPCTLS}, {"metrics", l.Metrics},
		} {
			if on.l != nil && !yield(on.name, on.l) {
				return
			}
		}
	}
}

// Close closes all that are open.
func (l *listeners) Close() {
	for _, one := range l.All() {
		_ = one.Close()
	}
}

// listenUnix listens on a unix socket with the given permissions, or the umask's if mode is 0. It replaces a
// stale socket, as a killed process leaves behind, but no other file.
func listenUnix(ctx context.Context, path string, mode fs.FileMode) (net.Listener, error) {
	listen := func() (net.Listener, error) {
		if mode != 0 {
			return listenWithMode(path, mode)
		}
		return (&net.ListenConfig{}).Listen(ctx, "unix", path)
	}
	l, err := listen()
	if !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	if nc, dialErr := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path); dialErr == nil {
		_ = nc.Close()
		return nil, err
	} else if !errors.Is(dialErr, syscall.ECONNREFUSED) {
		return nil, err
	}
	if info, statErr := os.Lstat(path); statErr != nil || info.Mode()&os.ModeSocket == 0 {
		return nil, err
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	return listen()
}
