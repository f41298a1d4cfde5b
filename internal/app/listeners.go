package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"cellserver/internal/app/settings"
)

// listeners holds the server's listeners; nil for those not configured.
type listeners struct {
	TCP, TLS, Unix, Metrics, HTTP, HTTPTLS, GRPC, GRPCTLS net.Listener

	Ratelimit ratelimitListeners

	envoy atomic.Bool // those for Envoy may be read: late ones open while others are looked at
}

// hasLate reports whether those for Envoy open only once clients are served: envoyproxy/ratelimit, too,
// listens only when it is ready, and nothing there answers that it loads.
func hasLate(o *settings.Options) bool { return o.Doors.Envoy.Ratelimit.On }

// ratelimitListeners are those in place of envoyproxy/ratelimit.
type ratelimitListeners struct{ HTTP, Debug, Metrics net.Listener }

// open opens those that do not wait for the states. After an error none are open.
func (l *listeners) open(ctx context.Context, o *settings.Options) error {
	err := l.openFirst(ctx, o)
	if err == nil && !hasLate(o) {
		err = l.openEnvoy(ctx, o)
	}
	if err != nil {
		l.Close()
	}
	return err
}

func (l *listeners) openFirst(ctx context.Context, o *settings.Options) error {
	if err := l.openPrometheus(ctx, o); err != nil {
		return err
	}
	for _, one := range []struct {
		flag, addr string
		into       *net.Listener
	}{
		{"addr", o.Addr, &l.TCP}, {"tls-addr", o.TLSAddr, &l.TLS}, {"metrics-addr", o.MetricsAddr, &l.Metrics},
		{"http-addr", o.Doors.HTTPAddr, &l.HTTP}, {"http-tls-addr", o.Doors.HTTPTLSAddr, &l.HTTPTLS},
	} {
		if err := listen(ctx, choiceOf(o, one.flag), one.addr, one.into); err != nil {
			return err
		}
	}
	if o.UnixSocket == "" {
		return nil
	}
	var err error
	if l.Unix, err = listenUnix(ctx, o.UnixSocket, o.SocketMode); err != nil {
		return listenError(choiceOf(o, "unixsocket"), o.UnixSocket, err)
	}
	return nil
}

// listen listens on an address, if there is one, which setting can change.
func listen(ctx context.Context, setting, addr string, into *net.Listener) error {
	if addr == "" {
		return nil
	}
	opened, err := (&net.ListenConfig{}).Listen(ctx, network(addr), addr)
	if err != nil {
		return listenError(setting, addr, err)
	}
	*into = opened
	return nil
}

// choiceOf names what sets an address.
func choiceOf(o *settings.Options, flag string) string {
	if o.Doors.Envoy.Ratelimit.On { // which has no flags
		return cmp.Or(o.From[flag], settings.EnvName(flag))
	}
	return "--" + flag + " or " + settings.EnvName(flag)
}

// openEnvoy opens those for Envoy, which are late ones if hasLate.
func (l *listeners) openEnvoy(ctx context.Context, o *settings.Options) error {
	defer l.envoy.Store(true)
	if err := listen(ctx, choiceOf(o, "grpc-addr"), o.Doors.GRPCAddr, &l.GRPC); err != nil {
		return err
	}
	if err := listen(ctx, choiceOf(o, "grpc-tls-addr"), o.Doors.GRPCTLSAddr, &l.GRPCTLS); err != nil {
		return err
	}
	return l.openRatelimit(ctx, &o.Doors.Envoy.Ratelimit)
}

// openRatelimit opens those that envoyproxy/ratelimit's environment names.
func (l *listeners) openRatelimit(ctx context.Context, r *settings.RatelimitOptions) (err error) {
	if r.GRPCUnix != "" {
		into := &l.GRPC
		if r.GRPCCert != "" {
			into = &l.GRPCTLS
		}
		if *into, err = listenUnix(ctx, r.GRPCUnix, 0); err != nil {
			return listenError("GRPC_UDS", r.GRPCUnix, err)
		}
	}
	if err := listen(ctx, "HOST and PORT", r.HTTPAddr, &l.Ratelimit.HTTP); err != nil {
		return err
	}
	return listen(ctx, "DEBUG_HOST and DEBUG_PORT", r.DebugAddr, &l.Ratelimit.Debug)
}

// openPrometheus opens PROMETHEUS_ADDR, by which one can see that the server loads.
func (l *listeners) openPrometheus(ctx context.Context, o *settings.Options) error {
	if hasOneMetricsAddr(o) {
		return nil
	}
	return listen(ctx, "PROMETHEUS_ADDR", o.Doors.Envoy.Ratelimit.MetricsAddr, &l.Ratelimit.Metrics)
}

// network returns the network to listen on: with "tcp", Go would listen on 0.0.0.0 over IPv6 too.
func network(addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().Is4() {
		return "tcp4"
	}
	return "tcp"
}

func listenError(setting, addr string, err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err // drops the address, which the message has
	}
	return fmt.Errorf("cannot listen on %s: %w; choose another with %s", addr, err, setting)
}

// All yields the listeners that are open, by name.
func (l *listeners) All() iter.Seq2[string, net.Listener] {
	type named struct {
		name string
		l    net.Listener
	}
	return func(yield func(string, net.Listener) bool) {
		all := []named{{"tcp", l.TCP}, {"tls", l.TLS}, {"unix", l.Unix}, {"http", l.HTTP}, {"https", l.HTTPTLS}}
		late := l.envoy.Load()
		if late {
			all = append(all, named{"grpc", l.GRPC}, named{"grpcs", l.GRPCTLS})
		}
		all = append(all, named{"metrics", l.Metrics})
		if late {
			all = append(all, named{"ratelimit_http", l.Ratelimit.HTTP}, named{"ratelimit_debug", l.Ratelimit.Debug})
		}
		for _, on := range append(all, named{"ratelimit_metrics", l.Ratelimit.Metrics}) {
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
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > most {
		return nil, fmt.Errorf("the path is longer than %d bytes", most)
	}
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
		return nil, errors.New("a file that is not a socket is there")
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	return listen()
}
