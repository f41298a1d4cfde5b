package settings

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

func (o *Options) defineTLS(fs *pflag.FlagSet) {
	flagvalue.AddressVar(fs, &o.TLSAddr, "tls-addr", "", "127.0.0.1:6390", "`host:port` for Redis clients that speak TLS 1.2 or 1.3 (default none)")
	fs.StringVar(&o.TLSCert, "tls-cert", "", "PEM `file` with the server's certificate and intermediate certificates")
	fs.StringVar(&o.TLSKey, "tls-key", "", "PEM `file` with the certificate's private key")
	fs.StringVar(&o.TLSClientCA, "tls-client-ca", "", "PEM `file` with the authorities that issue client certificates")
	flagvalue.ChoiceVar(fs, &o.tlsAuthClients, "tls-auth-clients", "", "whether clients must present a certificate: `yes|no|optional` (default yes with --tls-client-ca, else no)",
		"yes", "no", "optional")
}

func (o *Options) checkTLS() error {
	if !o.HasTLS() {
		if o.TLSCert+o.TLSKey+o.TLSClientCA+o.tlsAuthClients != "" {
			return errors.New("TLS flags require --tls-addr, --http-tls-addr or --grpc-tls-addr; set one, such as --tls-addr 127.0.0.1:6390")
		}
		return nil
	}
	if o.TLSCert == "" || o.TLSKey == "" {
		return errors.New("--tls-addr, --http-tls-addr and --grpc-tls-addr require --tls-cert and --tls-key")
	}
	if o.TLSClientCA == "" && (o.tlsAuthClients == "yes" || o.tlsAuthClients == "optional") {
		return fmt.Errorf("--tls-auth-clients %s requires --tls-client-ca", o.tlsAuthClients)
	}
	return nil
}

// HasTLS reports whether clients are served over TLS.
func (o *Options) HasTLS() bool { return o.TLSAddr+o.Doors.HTTPTLSAddr+o.Doors.GRPCTLSAddr != "" }

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

// DefineMetricsAddr defines the flag of the metrics address.
func DefineMetricsAddr(fs *pflag.FlagSet, addr *string) {
	flagvalue.AddressVar(fs, addr, "metrics-addr", "127.0.0.1:9380", "127.0.0.1:9380", "`host:port` of the live page, /healthz, /readyz and /metrics; empty disables them")
}

func (o *Options) defineMetrics(fs *pflag.FlagSet) {
	DefineMetricsAddr(fs, &o.MetricsAddr)
	fs.StringVar(&o.MetricsTokenFile, "metrics-token-file", "", "`file` with a token required for the live page and /metrics: as Authorization: Bearer, or as the password of any user")
	fs.StringVar(&o.MetricsTLSCert, "metrics-tls-cert", "", "PEM `file` with a certificate that enables HTTPS on the metrics address")
	fs.StringVar(&o.MetricsTLSKey, "metrics-tls-key", "", "PEM `file` with that certificate's private key")
	flagvalue.ListVar(fs, &o.MetricsHosts, "metrics-allowed-hosts", "host `names` of the metrics address, separated by commas; requests for other names, except health checks, are refused (default localhost on loopback, elsewhere any)",
		"names without a scheme and a port, such as cellserver,metrics.example.com", isHostName)
	flagvalue.BoolVar(fs, &o.NoDashboard, "no-dashboard", "disable the live page, which shows keys")
	flagvalue.BoolVar(fs, &o.PageActions, "page-actions", "let ACL users sign in on the live page to reset keys, refund units, set overrides, and turn limits into shadows; requires HTTPS or localhost")
	flagvalue.BoolVar(fs, &o.Pprof, "pprof", "serve profiles at /debug/pprof/ of the metrics address")
}

func (o *Options) checkMetrics() error {
	if o.MetricsAddr == "" {
		if o.MetricsTokenFile+o.MetricsTLSCert+o.MetricsTLSKey != "" || o.Pprof || o.PageActions || len(o.MetricsHosts) > 0 {
			return errors.New("--pprof, --page-actions and the flags that begin with --metrics require --metrics-addr; set it, such as --metrics-addr 127.0.0.1:9380")
		}
		return nil
	}
	if o.PageActions && o.NoDashboard {
		return errors.New("--page-actions requires the live page; leave out --no-dashboard")
	}
	if (o.MetricsTLSCert == "") != (o.MetricsTLSKey == "") {
		return errors.New("--metrics-tls-cert and --metrics-tls-key require each other; set both")
	}
	return nil
}

func isHostName(text string) bool { return text != "" && !strings.ContainsAny(text, ":/[]*@ ") }
