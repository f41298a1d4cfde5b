package settings

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

// DefineMetricsAddr defines the flag of the metrics address.
func DefineMetricsAddr(fs *pflag.FlagSet, addr *string) {
	flagvalue.AddressVar(fs, addr, "metrics-addr", "127.0.0.1:9380", "127.0.0.1:9380", "`host:port` of the live page, /healthz, /readyz and /metrics; empty disables them")
}

func (o *Options) defineMetrics(fs *pflag.FlagSet) {
	DefineMetricsAddr(fs, &o.MetricsAddr)
	fs.StringVar(&o.MetricsTokenFile, "metrics-token-file", "", "`file` with a token required for the live page and /metrics (Authorization: Bearer)")
	fs.StringVar(&o.MetricsPasswordFile, "metrics-password-file", "", "`file` with user:password required for the live page and /metrics (basic authentication)")
	fs.StringVar(&o.MetricsTLSCert, "metrics-tls-cert", "", "PEM `file` with a certificate that enables HTTPS on the metrics address")
	fs.StringVar(&o.MetricsTLSKey, "metrics-tls-key", "", "PEM `file` with that certificate's private key")
	flagvalue.ListVar(fs, &o.MetricsHosts, "metrics-allowed-hosts", "host `names` of the metrics address, separated by commas; requests for other names, except health checks, are refused (default localhost on loopback, elsewhere any)",
		"names without a scheme and a port, such as cellserver,metrics.example.com", isHostName)
	flagvalue.BoolVar(fs, &o.NoDashboard, "no-dashboard", "disable the live page, which shows keys")
	flagvalue.BoolVar(fs, &o.Pprof, "pprof", "serve profiles at /debug/pprof/ of the metrics address")
}

func (o *Options) checkMetrics() error {
	if o.MetricsAddr == "" {
		if o.MetricsTokenFile+o.MetricsPasswordFile+o.MetricsTLSCert+o.MetricsTLSKey != "" || o.Pprof || len(o.MetricsHosts) > 0 {
			return errors.New("--pprof and the flags that begin with --metrics require --metrics-addr; set it, such as --metrics-addr 127.0.0.1:9380")
		}
		return nil
	}
	if (o.MetricsTLSCert == "") != (o.MetricsTLSKey == "") {
		return errors.New("--metrics-tls-cert and --metrics-tls-key require each other; set both")
	}
	return nil
}

func isHostName(text string) bool { return text != "" && !strings.ContainsAny(text, ":/[]*@ ") }
