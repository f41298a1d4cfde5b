package settings

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

// DoorOptions holds the settings of the protocols beside RESP.
type DoorOptions struct {
	HTTPAddr, HTTPTLSAddr, GRPCAddr, GRPCTLSAddr string

	HTTPHeaders               string
	httpTrusted, AllowedHosts []string
	IPv6PrefixBits            int
	TokensFile                string
	Envoy                     EnvoyOptions
}

// Bits of an IPv6 address that make a visitor's key.
const (
	MinIPv6PrefixBits     = 32
	DefaultIPv6PrefixBits = 64 // the smallest network that a site is given
)

func (o *DoorOptions) define(fs *pflag.FlagSet) {
	flagvalue.AddressVar(fs, &o.HTTPAddr, "http-addr", "", "127.0.0.1:6381", "`host:port` for HTTP (default none)")
	flagvalue.AddressVar(fs, &o.HTTPTLSAddr, "http-tls-addr", "", "127.0.0.1:6383", "`host:port` for HTTPS, with the certificates of --tls-cert and its siblings (default none)")
	flagvalue.ChoiceVar(fs, &o.HTTPHeaders, "http-headers", "draft", "headers of HTTP's answers about limits: `draft|legacy|both|none`: RateLimit and RateLimit-Policy, X-RateLimit-*, both, or none", "draft", "legacy", "both", "none")
	flagvalue.ListVar(fs, &o.httpTrusted, "http-trusted-proxies", "`addresses` or networks of proxies, separated by commas, whose X-Forwarded-For and similar headers are believed (default none)",
		"addresses and networks, such as 10.0.0.5,192.168.0.0/16", func(text string) bool { _, ok := network(text); return ok })
	flagvalue.NumberVar(fs, &o.IPv6PrefixBits, "http-ipv6-prefix", DefaultIPv6PrefixBits, MinIPv6PrefixBits, 128, "`bits` of a visitor's IPv6 address that make the key of by=ip, as a host has a whole network; 128 for each address by itself")
	flagvalue.ListVar(fs, &o.AllowedHosts, "http-allowed-hosts", "further host `names` for which HTTP answers requests without a token, separated by commas (default localhost and IP addresses, on loopback its own)",
		"names without a scheme and a port, such as cellserver,limits.example.com", isHostName)
	fs.StringVar(&o.TokensFile, "http-tokens-file", "", "`file` with a line TOKEN USER for each token of HTTP and gRPC; SIGHUP reloads it")
	flagvalue.AddressVar(fs, &o.GRPCAddr, "grpc-addr", "", "127.0.0.1:6382", "`host:port` for Envoy's rate limit service over gRPC without TLS (default none)")
	flagvalue.AddressVar(fs, &o.GRPCTLSAddr, "grpc-tls-addr", "", "127.0.0.1:6384", "`host:port` for the same with TLS (default none)")
	o.Envoy.define(fs)
}

func network(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		if v4 := p.Bits() - 96; v4 >= 0 && p.Addr().Is4In6() { // addresses are compared as IPv4
			p = netip.PrefixFrom(p.Addr().Unmap(), v4)
		}
		return p.Masked(), true
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), true
}

// TrustedProxies returns the networks of --http-trusted-proxies.
func (o *DoorOptions) TrustedProxies() []netip.Prefix {
	all := make([]netip.Prefix, len(o.httpTrusted))
	for i, text := range o.httpTrusted {
		all[i], _ = network(text) // checked by the flag
	}
	return all
}

// HasGRPC reports whether there is an address of gRPC.
func (o *DoorOptions) HasGRPC() bool {
	return o.GRPCAddr+o.GRPCTLSAddr+o.Envoy.Ratelimit.GRPCUnix != ""
}

func (o *Options) checkDoors() error {
	d := &o.Doors
	http, grpc := d.HTTPAddr+d.HTTPTLSAddr != "", d.HasGRPC()
	switch {
	case !http && (len(d.httpTrusted) > 0 || len(d.AllowedHosts) > 0 || d.HTTPHeaders != "draft" || d.IPv6PrefixBits != DefaultIPv6PrefixBits):
		return errors.New("--http-headers, --http-trusted-proxies, --http-ipv6-prefix and --http-allowed-hosts require --http-addr or --http-tls-addr; set one, such as --http-addr 127.0.0.1:6381")
	case !http && !grpc && d.TokensFile != "":
		return errors.New("--http-tokens-file requires a door for its tokens; set one, such as --http-addr 127.0.0.1:6381")
	case !grpc && d.Envoy.any():
		return errors.New("the flags that begin with --envoy require --grpc-addr or --grpc-tls-addr; set one, such as --grpc-addr 127.0.0.1:6382")
	}
	return d.Envoy.check()
}

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

// HasTLS reports whether clients are served over TLS with the certificates of --tls-cert and its siblings.
func (o *Options) HasTLS() bool {
	grpc := o.Doors.GRPCTLSAddr
	if o.Doors.Envoy.Ratelimit.GRPCCert != "" {
		grpc = ""
	}
	return o.TLSAddr+o.Doors.HTTPTLSAddr+grpc != ""
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
