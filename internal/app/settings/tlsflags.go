package settings

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

func (o *Options) defineTLS(fs *pflag.FlagSet) {
	flagvalue.AddressVar(fs, &o.TLSAddr, "tls-addr", "", "127.0.0.1:6381", "`host:port` for Redis clients that speak TLS 1.2 or 1.3 (default none)")
	fs.StringVar(&o.TLSCert, "tls-cert", "", "PEM `file` with the server's certificate and intermediate certificates")
	fs.StringVar(&o.TLSKey, "tls-key", "", "PEM `file` with the certificate's private key")
	fs.StringVar(&o.TLSClientCA, "tls-client-ca", "", "PEM `file` with the authorities that issue client certificates")
	flagvalue.ChoiceVar(fs, &o.tlsAuthClients, "tls-auth-clients", "", "whether clients must present a certificate: `yes|no|optional` (default yes with --tls-client-ca, else no)",
		"yes", "no", "optional")
}

func (o *Options) checkTLS() error {
	if o.TLSAddr == "" {
		if o.TLSCert+o.TLSKey+o.TLSClientCA+o.tlsAuthClients != "" {
			return errors.New("TLS flags require --tls-addr; set it, such as --tls-addr 127.0.0.1:6381")
		}
		return nil
	}
	if o.TLSCert == "" || o.TLSKey == "" {
		return errors.New("--tls-addr requires --tls-cert and --tls-key")
	}
	if o.TLSClientCA == "" && (o.tlsAuthClients == "yes" || o.tlsAuthClients == "optional") {
		return fmt.Errorf("--tls-auth-clients %s requires --tls-client-ca", o.tlsAuthClients)
	}
	return nil
}

// ClientAuth returns what clients over TLS must present.
func (o *Options) ClientAuth() tls.ClientAuthType {
	switch {
	case o.TLSClientCA == "", o.tlsAuthClients == "no":
		return tls.NoClientCert
	case o.tlsAuthClients == "optional":
		return tls.VerifyClientCertIfGiven
	}
	return tls.RequireAndVerifyClientCert
}
