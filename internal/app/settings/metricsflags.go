package main

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

func metricsFlag(fs *pflag.FlagSet, addr *string) {
	flagvalue.AddressVar(fs, addr, "metrics-addr", "127.0.0.1:9380", "127.0.0.1:9380", "`host:port` of the live page, /healthz, /readyz and /metrics; empty disables them")
}

func (o *options) defineMetrics(fs *pflag.FlagSet) {
	metricsFlag(fs, &o.metricsAddr)
	fs.StringVar(&o.metricsTokenFile, "metrics-token-file", "", "`file` with a token required for the live page and /metrics (Authorization: Bearer)")
	fs.StringVar(&o.metricsPasswordFile, "metrics-password-file", "", "`file` with user:password required for the live page and /metrics (basic authentication)")
	fs.StringVar(&o.metricsTLSCert, "metrics-tls-cert", "", "PEM `file` with a certificate that enables HTTPS on the metrics address")
	fs.StringVar(&o.metricsTLSKey, "metrics-tls-key", "", "PEM `file` with that certificate's private key")
	flagvalue.ListVar(fs, &o.metricsHosts, "metrics-allowed-hosts", "`names` of the metrics address, separated by commas: requests for other host names are refused, but for the health checks (default on loopback localhost, elsewhere any)",
		"names without a scheme and a port, such as cellserver,metrics.example.com", isHostName)
	flagvalue.BoolVar(fs, &o.noDashboard, "no-dashboard", "disable the live page, which shows keys")
	flagvalue.BoolVar(fs, &o.pprof, "pprof", "serve profiles at /debug/pprof/ of the metrics address")
}

// checkMetrics refuses inconsistent flags.
func (o *options) checkMetrics() error {
	if o.metricsAddr == "" {
		if o.metricsTokenFile+o.metricsPasswordFile+o.metricsTLSCert+o.metricsTLSKey != "" || o.pprof || len(o.metricsHosts) > 0 {
			return errors.New("--pprof and the flags that begin with --metrics require --metrics-addr; set it, such as --metrics-addr 127.0.0.1:9380")
		}
		return nil
	}
	if (o.metricsTLSCert == "") != (o.metricsTLSKey == "") {
		return errors.New("--metrics-tls-cert and --metrics-tls-key require each other; set both")
	}
	return nil
}

func isHostName(text string) bool { return text != "" && !strings.ContainsAny(text, ":/[]*@ ") }
