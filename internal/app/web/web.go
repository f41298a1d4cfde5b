package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"

	"cellserver/internal/base/certs"
	"cellserver/internal/base/often"
	"cellserver/internal/edge/metrics"
)

// maxWebConns bounds the connections to the metrics address, so that descriptors are left for clients. Who wants to keep a
// health check out has to open so many in the instant between its connection and its request.
const maxWebConns = 32

// requestTimeout is how long a request's header may take to arrive, and then its body.
const requestTimeout = 5 * time.Second

// web serves the metrics address.
type web struct {
	server *http.Server
	access *metrics.Access
	certs  *certs.Keeper // nil without TLS
}

func newWeb(o *options, now func() int64, log *slog.Logger) (*web, error) {
	w := &web{access: &metrics.Access{Log: log, Now: now}}
	w.server = &http.Server{
		ReadHeaderTimeout: requestTimeout,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       10 * time.Second,
		ErrorLog:          newWebLog(now, log),
		ConnState:         (&webConns{most: maxWebConns, log: log, now: now, conns: map[net.Conn]webConn{}}).changed,
	}
	if err := readMetricsSecrets(o, w.access, log); err != nil {
		return nil, err
	}
	if o.metricsTLSCert == "" {
		return w, nil
	}
	var err error
	w.certs, err = certs.Open(certs.Files{Flags: "--metrics-tls", Cert: o.metricsTLSCert, Key: o.metricsTLSKey}, time.Now, log)
	return w, err
}

func readMetricsSecrets(o *options, access *metrics.Access, log *slog.Logger) error {
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

// shutdown ends the server: gracefully until ctx is done, and then at once.
func (w *web) shutdown(ctx context.Context) {
	if w.server.Shutdown(ctx) != nil {
		_ = w.server.Close()
	}
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
	if err := readMetricsSecrets(o, w.access, log); err != nil {
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
