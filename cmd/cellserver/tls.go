package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/certs"
)

func (o *options) defineTLS(fs *pflag.FlagSet) {
	fs.StringVar(&o.tlsAddr, "tls-addr", "", "`host:port` for Redis clients that speak TLS 1.2 or 1.3 (default none)")
	fs.StringVar(&o.tlsCert, "tls-cert", "", "PEM `file` with the server's certificate and those between it and its authority")
	fs.StringVar(&o.tlsKey, "tls-key", "", "PEM `file` with the certificate's key")
	fs.StringVar(&o.tlsClientCA, "tls-client-ca", "", "PEM `file` with the authorities of clients' certificates")
	fs.StringVar(&o.tlsAuthClients, "tls-auth-clients", "", "whether clients must show a certificate: `yes|no|optional` (default yes with --tls-client-ca, else no)")
}

// checkTLS refuses flags that do not go together.
func (o *options) checkTLS() error {
	switch o.tlsAuthClients {
	case "", "yes", "no", "optional":
	default:
		return fmt.Errorf("--tls-auth-clients must be yes, no or optional, got %q", o.tlsAuthClients)
	}
	if o.tlsAddr == "" {
		if o.tlsCert+o.tlsKey+o.tlsClientCA+o.tlsAuthClients != "" {
			return errors.New("no --tls-addr to listen on, but other flags of TLS; give it, such as --tls-addr 127.0.0.1:6381")
		}
		return nil
	}
	if o.tlsCert == "" || o.tlsKey == "" {
		return errors.New("--tls-addr needs --tls-cert and --tls-key")
	}
	if o.tlsClientCA == "" && (o.tlsAuthClients == "yes" || o.tlsAuthClients == "optional") {
		return fmt.Errorf("--tls-auth-clients %s needs --tls-client-ca", o.tlsAuthClients)
	}
	return nil
}

// openCerts reads the files of TLS, if it is served at all.
func (o *options) openCerts(log *slog.Logger) (*certs.Keeper, error) {
	if o.tlsAddr == "" {
		return nil, nil
	}
	return certs.Open(certs.Files{Cert: o.tlsCert, Key: o.tlsKey, ClientCA: o.tlsClientCA, Clients: o.clientAuth()}, time.Now, log)
}

func (o *options) clientAuth() tls.ClientAuthType {
	switch {
	case o.tlsClientCA == "", o.tlsAuthClients == "no":
		return tls.NoClientCert
	case o.tlsAuthClients == "optional":
		return tls.VerifyClientCertIfGiven
	}
	return tls.RequireAndVerifyClientCert
}
