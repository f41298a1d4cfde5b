package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"cellserver/internal/base/certs"
	"cellserver/internal/resp"
)

// dialer connects to servers, with TLS if config is not nil. Unlike go-redis's, it respects its context over TLS.
type dialer struct{ config *tls.Config }

func newDialer(useTLS bool, c Config) (dialer, error) {
	if !useTLS {
		if c.CAFile != "" || c.CertFile != "" || c.KeyFile != "" || c.ServerName != "" {
			return dialer{}, errors.New("servers: certificates for the store need a URL that begins with rediss")
		}
		return dialer{}, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	if c.CAFile != "" {
		var err error
		if config.RootCAs, err = certs.Authorities(c.CAFile); err != nil {
			return dialer{}, fmt.Errorf("servers: read the store's certificate authorities: %w", err)
		}
	}
	if c.CertFile != "" || c.KeyFile != "" {
		var err error
		if config.Certificates, err = certs.Pair(c.CertFile, c.KeyFile); err != nil {
			return dialer{}, fmt.Errorf("servers: read the certificate for the store: %w", err)
		}
	}
	return dialer{config}, nil
}

func (d dialer) context(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr == surplusAddr {
		return nil, fmt.Errorf("the cluster names more than %d servers", maxServers)
	}
	dial := (&net.Dialer{}).DialContext
	if d.config != nil {
		dial = (&tls.Dialer{Config: d.config}).DialContext
	}
	return replyBounds().Bounded(dial)(ctx, network, addr)
}

// replyBounds are twice the largest reply to our pipelines, and allow for a cluster's map of 16,384 parts with three servers each.
func replyBounds() resp.ReplyBounds {
	return resp.ReplyBounds{BulkBytes: 4 << 20, Bytes: 32 << 20, Elements: 1 << 19}
}
