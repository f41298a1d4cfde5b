package settings

import (
	"errors"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

// EnvoyOptions holds the settings of Envoy's rate limit service.
type EnvoyOptions struct {
	Config            string // directory
	Headers, Metadata bool
	XDS               XDSOptions
	Ratelimit         RatelimitOptions
}

// XDSOptions says where limits come from over xDS.
type XDSOptions struct {
	Addr                   string // "" for files
	TLS                    bool
	CA, Cert, Key, TLSName string
	NodeID                 string
	NodeMetadata, Headers  []string // NAME=TEXT
	MaxMessageBytes        int

	FirstPause, LongestPause time.Duration // between tries to connect
}

// RatelimitOptions are set by the environment of envoyproxy/ratelimit alone (package ratelimit). The zero
// options are cellserver's own way.
type RatelimitOptions struct {
	On bool // started in its place

	HTTPAddr, DebugAddr string // of /healthcheck and /json; of /rlconfig
	GRPCUnix            string // socket in place of --grpc-addr

	GRPCCert, GRPCKey, GRPCClientCA, GRPCClientName string // of its door alone
	MaxConnectionAge, MaxConnectionAgeGrace         time.Duration

	MetricsAddr string            // of the metrics alone, beside --metrics-addr
	MetricsPath string            // beside /metrics
	ExtraTags   map[string]string // labels of its series

	NearRatio         float32   // 0 for 0.8
	HeaderNames       [3]string // of limit, remaining and reset; empty for their defaults
	Shadow, Quota     bool      // of all limits
	StopsWhenOver     bool      // what is denied is not counted
	MergeDomains      bool
	AwaitsConfig      bool // no listener opens before the first configuration
	HealthyWithConfig bool // only while a domain has one
	HealthyWithStore  bool // only while the store answers
	AllFiles          bool // whatever their extension; a missing directory is an empty configuration
	IgnoreDotFiles    bool

	Warnings []string // of the environment, for the log
}

// MaxXDSMessageBytes bounds the answer of an xDS server.
const MaxXDSMessageBytes = 1 << 30

// Defaults:
const (
	defaultNode            = "default"
	defaultXDSMessageBytes = 4 << 20
	defaultXDSFirstPause   = time.Second
	defaultXDSLongestPause = time.Minute
)

func (o *EnvoyOptions) define(fs *pflag.FlagSet) {
	fs.StringVar(&o.Config, "envoy-config", "", "`directory` with limits in the YAML of envoyproxy/ratelimit; changed files and SIGHUP reload it")
	flagvalue.BoolVar(fs, &o.Headers, "envoy-headers", "add RateLimit-Limit, -Remaining and -Reset, and x-ratelimit-near, to the answers that Envoy passes on")
	flagvalue.BoolVar(fs, &o.Metadata, "envoy-metadata", "add dynamic metadata to the answers for Envoy: the request's descriptors, and the metadata of limits that have some")
	o.XDS.define(fs)
}

func (o *XDSOptions) define(fs *pflag.FlagSet) {
	o.FirstPause, o.LongestPause = defaultXDSFirstPause, defaultXDSLongestPause
	flagvalue.AddressVar(fs, &o.Addr, "envoy-xds", "", "envoy-gateway:18001", "`host:port` of an xDS server that gives the limits for Envoy, in place of --envoy-config (default none)")
	flagvalue.BoolVar(fs, &o.TLS, "envoy-xds-tls", "speak TLS with the xDS server")
	fs.StringVar(&o.CA, "envoy-xds-tls-ca", "", "PEM `file` with the authorities of the xDS server's certificate (default the system's)")
	fs.StringVar(&o.Cert, "envoy-xds-tls-cert", "", "PEM `file` with the client's certificate for the xDS server")
	fs.StringVar(&o.Key, "envoy-xds-tls-key", "", "PEM `file` with that certificate's private key")
	fs.StringVar(&o.TLSName, "envoy-xds-tls-name", "", "`name` in the xDS server's certificate (default the host of --envoy-xds)")
	fs.StringVar(&o.NodeID, "envoy-xds-node-id", defaultNode, "`id` by which the xDS server knows this one")
	isPair := func(text string) bool { _, _, ok := pair(text); return ok }
	flagvalue.ListVar(fs, &o.NodeMetadata, "envoy-xds-node-metadata", "`metadata` of that node, NAME=TEXT, separated by commas (default none)", "NAME=TEXT, separated by commas", isPair)
	flagvalue.SecretListVar(fs, &o.Headers, "envoy-xds-headers", "`headers` for the xDS server, NAME=TEXT, separated by commas (default none)", "NAME=TEXT, separated by commas, each a header of HTTP/2", isHeader)
	flagvalue.NumberVar(fs, &o.MaxMessageBytes, "envoy-xds-max-message-bytes", defaultXDSMessageBytes, 1<<10, MaxXDSMessageBytes, "largest size of the xDS server's answer in bytes")
}

func (o *EnvoyOptions) any() bool {
	return o.Config != "" || o.Headers || o.Metadata || o.XDS.Addr != ""
}

func (o *EnvoyOptions) check() error {
	x := &o.XDS
	switch {
	case x.Addr != "" && o.Config != "":
		return errors.New("--envoy-config and --envoy-xds exclude each other; set only one")
	case x.Addr == "" && (x.TLS || x.CA+x.Cert+x.Key+x.TLSName != "" || len(x.NodeMetadata)+len(x.Headers) > 0):
		return errors.New("the flags that begin with --envoy-xds- require --envoy-xds; set it, such as --envoy-xds envoy-gateway:18001")
	case !x.TLS && x.CA+x.Cert+x.Key+x.TLSName != "":
		return errors.New("--envoy-xds-tls-ca, -cert, -key and -name require --envoy-xds-tls")
	case !utf8.ValidString(x.NodeID):
		return errors.New("--envoy-xds-node-id must be text in UTF-8")
	case (x.Cert == "") != (x.Key == ""):
		return errors.New("--envoy-xds-tls-cert and --envoy-xds-tls-key require each other; set both")
	}
	return nil
}

// pair splits NAME=TEXT.
func pair(text string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(text, "=")
	return name, value, ok && name != "" && utf8.ValidString(text)
}

var header = regexp.MustCompile(`^[0-9A-Za-z_.-]+=[ -~]*$`)

// isHeader reports whether gRPC would send NAME=TEXT as a header. It has those that begin with grpc- itself.
func isHeader(text string) bool {
	return header.MatchString(text) && !strings.HasPrefix(strings.ToLower(text), "grpc-")
}

// Pairs returns a list of NAME=TEXT as a map.
func Pairs(list []string) map[string]string {
	all := map[string]string{}
	for _, text := range list {
		name, value, _ := pair(text) // checked by the flag
		all[name] = value
	}
	return all
}
