package main

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// listeners holds the server's listeners; nil for those not configured.
type listeners struct{ tcp, tls, unix, metrics net.Listener }

func listen(ctx context.Context, o *options) (*listeners, error) {
	l := &listeners{}
	var config net.ListenConfig
	for _, one := range []struct {
		flag, addr string
		into       *net.Listener
	}{
		{"addr", o.addr, &l.tcp}, {"tls-addr", o.tlsAddr, &l.tls}, {"metrics-addr", o.metricsAddr, &l.metrics},
	} {
		if one.addr == "" {
			continue
		}
		listener, err := config.Listen(ctx, "tcp", one.addr)
		if err != nil {
			l.close()
			return nil, listenError(one.flag, one.addr, err)
		}
		*one.into = listener
	}
	if o.unixSocket == "" {
		return l, nil
	}
	var err error
	if l.unix, err = listenUnix(ctx, o.unixSocket, o.socketMode); err != nil {
		l.close()
		return nil, listenError("unixsocket", o.unixSocket, err)
	}
	return l, nil
}

func listenError(flag, addr string, err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err // without the address, which the message has already
	}
	return fmt.Errorf("cannot listen on %s: %w; choose another with --%s or %s", addr, err, flag, envName(flag))
}

func (l *listeners) close() {
	for _, one := range []net.Listener{l.tcp, l.tls, l.unix, l.metrics} {
		if one != nil {
			_ = one.Close()
		}
	}
}
