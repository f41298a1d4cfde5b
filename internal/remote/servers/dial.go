package servers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// dialer connects to servers; with TLS, if config is not nil. It ends with its context, which go-redis's own does not over TLS.
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
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return dialer{}, fmt.Errorf("servers: read the store's certificate authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return dialer{}, fmt.Errorf("servers: %s has no certificate in PEM", c.CAFile)
		}
	}
	if c.CertFile != "" || c.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return dialer{}, fmt.Errorf("servers: read the certificate for the store: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return dialer{config}, nil
}

func (d dialer) context(ctx context.Context, network, addr string) (net.Conn, error) {
	if d.config == nil {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	return (&tls.Dialer{Config: d.config}).DialContext(ctx, network, addr)
}
