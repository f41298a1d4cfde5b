package main

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

func (o *options) defineTLS(fs *pflag.FlagSet) {
	flagvalue.AddressVar(fs, &o.tlsAddr, "tls-addr", "", "127.0.0.1:6381", "`host:port` for Redis clients that speak TLS 1.2 or 1.3 (default none)")
	fs.StringVar(&o.tlsCert, "tls-cert", "", "PEM `file` with the server's certificate and intermediate certificates")
	fs.StringVar(&o.tlsKey, "tls-key", "", "PEM `file` with the certificate's private key")
	fs.StringVar(&o.tlsClientCA, "tls-client-ca", "", "PEM `file` with the authorities that issue client certificates")
	flagvalue.ChoiceVar(fs, &o.tlsAuthClients, "tls-auth-clients", "", "whether clients must present a certificate: `yes|no|optional` (default yes with --tls-client-ca, else no)",
		"yes", "no", "optional")
}

// checkTLS refuses inconsistent flags.
func (o *options) checkTLS() error {
	if o.tlsAddr == "" {
		if o.tlsCert+o.tlsKey+o.tlsClientCA+o.tlsAuthClients != "" {
			return errors.New("TLS flags require --tls-addr; set it, such as --tls-addr 127.0.0.1:6381")
		}
		return nil
	}
	if o.tlsCert == "" || o.tlsKey == "" {
		return errors.New("--tls-addr requires --tls-cert and --tls-key")
	}
	if o.tlsClientCA == "" && (o.tlsAuthClients == "yes" || o.tlsAuthClients == "optional") {
		return fmt.Errorf("--tls-auth-clients %s requires --tls-client-ca", o.tlsAuthClients)
	}
	return nil
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
