package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"cellserver/internal/base/certs"
	"cellserver/internal/base/flagvalue"
	"cellserver/internal/base/often"
	"cellserver/internal/base/smallfile"
	"cellserver/internal/edge/metrics"
)

// maxWebConns bounds the connections to the metrics address, so that descriptors are left for clients. Who wants to keep a
// health check out has to open so many in the instant between its connection and its request.
const maxWebConns = 32

// requestTimeout is how long a request's header may take to arrive, and then its body.
const requestTimeout = 5 * time.Second

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

// web serves the metrics address.
type web struct {
	server *http.Server
	access *metrics.Access
	certs  *certs.Keeper // nil without TLS
}

func (o *options) newWeb(now func() int64, log *slog.Logger) (*web, error) {
	w := &web{access: &metrics.Access{Log: log, Now: now}}
	w.server = &http.Server{
		ReadHeaderTimeout: requestTimeout,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       10 * time.Second,
		ErrorLog:          newWebLog(now, log),
		ConnState:         (&webConns{most: maxWebConns, log: log, now: now, conns: map[net.Conn]webConn{}}).changed,
	}
	if err := o.readMetricsSecrets(w.access, log); err != nil {
		return nil, err
	}
	if o.metricsTLSCert == "" {
		return w, nil
	}
	var err error
	w.certs, err = certs.Open(certs.Files{Flags: "--metrics-tls", Cert: o.metricsTLSCert, Key: o.metricsTLSKey}, time.Now, log)
	return w, err
}

func (o *options) readMetricsSecrets(access *metrics.Access, log *slog.Logger) error {
	token, err := readSecret("--metrics-token-file", o.metricsTokenFile, "the token", log)
	if err != nil {
		return err
	}
	userPassword, err := readSecret("--metrics-password-file", o.metricsPasswordFile, "user:password", log)
	if err != nil {
		return err
	}
	if user, password, ok := strings.Cut(userPassword, ":"); userPassword != "" && (!ok || user == "" || password == "" || strings.ContainsAny(password, "\r\n")) {
		return fmt.Errorf("--metrics-password-file %s must be one line of the form user:password", o.metricsPasswordFile)
	}
	if strings.ContainsFunc(token, unicode.IsSpace) { // a header cannot carry them
		return fmt.Errorf("--metrics-token-file %s must be one line without spaces", o.metricsTokenFile)
	}
	access.Set(token, userPassword)
	return nil
}

// serve serves until the server is shut down.
func (w *web) serve(l net.Listener, h http.Handler) error {
	w.server.Handler = boundBodies(h)
	if w.certs != nil {
		l = tls.NewListener(l, w.certs.Config())
	}
	return w.server.Serve(l)
}

// boundBodies limits the time for reading a request's body: net/http reads the rest of it after the response. Its
// ReadTimeout would also stop long requests for profiles.
func boundBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(requestTimeout))
		}
		next.ServeHTTP(w, r)
	})
}

// reload reloads secrets and certificates. Invalid ones are logged, and the previous ones stay in use.
func (w *web) reload(o *options, log *slog.Logger) {
	if w.certs != nil {
		w.certs.Reload()
	}
	if err := o.readMetricsSecrets(w.access, log); err != nil {
		log.Error("cannot use the changed secrets of the metrics address; the previous ones stay in use", "error", err,
			"hint", "correct the file and send SIGHUP")
	}
}

// warnOfOtherHosts warns of an unprotected metrics address that other hosts can reach.
func (w *web) warnOfOtherHosts(l net.Listener, log *slog.Logger) {
	if l == nil || l.Addr().(*net.TCPAddr).IP.IsLoopback() {
		return
	}
	addr := l.Addr().String()
	switch {
	case w.access.IsOpen():
		log.Warn("other hosts can reach the metrics address and it requires no secret; set --metrics-token-file or "+
			"--metrics-password-file, or protect the port with a firewall", "metrics", addr)
	case w.certs == nil:
		log.Warn("the secrets of the metrics address cross the network unencrypted; set --metrics-tls-cert and "+
			"--metrics-tls-key, or protect the port with a firewall", "metrics", addr)
	}
}

// webLog logs the messages of net/http at a limited rate, because clients can cause any number of them.
type webLog struct {
	log   *slog.Logger
	now   func() int64
	lines often.Counter
}

func newWebLog(now func() int64, to *slog.Logger) *log.Logger {
	return log.New(&webLog{log: to, now: now}, "", 0)
}

// Write implements io.Writer.
func (w *webLog) Write(line []byte) (int, error) {
	if count := w.lines.Due(w.now()); count > 0 {
		w.log.Warn("a client of the metrics address caused a problem", "problem", string(bytes.TrimSpace(line)), "count", count)
	}
	return len(line), nil
}

// readSecret reads the file that a flag names, without a final newline. It returns "" if the flag is not set.
func readSecret(flag, path, what string, log *slog.Logger) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := smallfile.Read(path)
	if err != nil {
		return "", fmt.Errorf("cannot read %s %s: %w", flag, path, smallfile.Cause(err))
	}
	if line, cut := bytes.CutSuffix(b, []byte("\n")); cut {
		b = bytes.TrimSuffix(line, []byte("\r"))
	}
	if len(b) == 0 {
		return "", fmt.Errorf("%s %s is empty; write %s into it", flag, path, what)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 && runtime.GOOS != "windows" {
		log.Warn("every user of this machine can read this secret; revoke that with chmod o-r", strings.TrimPrefix(flag, "--"), path)
	}
	return string(b), nil
}
