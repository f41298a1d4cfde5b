package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/pflag"
)

const healthTimeout = 3 * time.Second

// runHealth asks a running server's /healthz, for health checks where there is no shell and no curl.
func runHealth(ctx context.Context, args []string, stdout io.Writer) error {
	var addr, certFile string
	var help bool
	fs := pflag.NewFlagSet("cellserver health", pflag.ContinueOnError)
	metricsFlag(fs, &addr)
	fs.StringVar(&certFile, "metrics-tls-cert", "", "if given, as the server's `file` is, ask by HTTPS; the file is not read, nor the certificate checked")
	fs.BoolVarP(&help, "help", "h", false, "show this help")
	if err := parseFlags(fs, args, os.LookupEnv); err != nil {
		return err
	}
	if help {
		_, err := fmt.Fprintf(stdout, "Ask a running cellserver whether it is well: prints ok and ends with 0, or ends with 1.\n\n"+
			"Usage:\n  cellserver health [flags]\n\nFlags:\n%s", fs.FlagUsages())
		return err
	}
	if fs.NArg() > 0 {
		return usageError{fmt.Errorf("health takes no argument, got %q", fs.Arg(0))}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return usageError{fmt.Errorf("--metrics-addr: %w", err)}
	}
	// A server that is bound to all addresses is asked at the loopback one.
	switch ip := net.ParseIP(host); {
	case host == "", ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip.Equal(net.IPv6unspecified):
		host = "::1"
	}
	scheme := "http://"
	if certFile != "" {
		scheme = "https://"
	}
	if err := askHealth(ctx, scheme+net.JoinHostPort(host, port)+"/healthz"); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, "ok")
	return err
}

func askHealth(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	client := http.Client{Transport: &http.Transport{ // asks the server itself, not a proxy
		// A server that is asked at loopback seldom has a certificate for that. No secret is sent, and one that is not
		// ours could say ok without TLS as well.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New("health: " + url + " answered " + answer.Status)
	}
	return nil
}
