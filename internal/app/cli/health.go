package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	neturl "net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cellserver/internal/app/settings"
	"cellserver/internal/app/usage"
)

// healthTimeout exceeds the server's own timeout for its readiness probe.
const healthTimeout = settings.ProbeTimeout + 2*time.Second

const healthHelp = `Check that a running cellserver serves clients. It prints ok, and a line that begins with degraded for each of disk, memory
and store that is impaired; or it says why not.

With --json it prints {"ready": true, "degraded": ["...", ...], "problem": ""}; if ready is false, problem says why.`

// healthCommand serves health checks in containers without a shell or curl.
func healthCommand() *cobra.Command {
	var addr, certFile string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "health [flags]", Short: "check the health of a running server", Args: usage.NoArguments,
		Long: healthHelp, Annotations: usage.Exits("the server serves clients, degraded or not", "it does not, or does not answer"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return checkHealth(cmd.Context(), addr, certFile != "", asJSON, cmd.OutOrStdout())
		},
	}
	settings.DefineMetricsAddr(cmd.Flags(), &addr)
	cmd.Flags().String("config", "", "the server's config `file`, which may set these flags")
	cmd.Flags().StringVar(&certFile, "metrics-tls-cert", "", "the server's certificate `file`; if set, use HTTPS without verifying the certificate or reading the file")
	jsonFlag(cmd.Flags(), &asJSON)
	return cmd
}

func checkHealth(ctx context.Context, addr string, overTLS, asJSON bool, stdout io.Writer) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return usage.Errorf("health: --metrics-addr is empty, so there is no server to ask")
	}
	// A server on all addresses is reached on loopback.
	switch ip := net.ParseIP(host); {
	case host == "", ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip.Equal(net.IPv6unspecified):
		host = "::1"
	}
	scheme := "http://"
	if overTLS {
		scheme = "https://"
	}
	text, err := requestHealth(ctx, scheme+net.JoinHostPort(host, port)+"/readyz")
	var printed error
	switch {
	case asJSON:
		printed = printJSON(stdout, healthOf(text, err))
	case err == nil:
		_, printed = fmt.Fprintln(stdout, text)
	}
	return cmp.Or(err, printed)
}

type healthDocument struct {
	Ready    bool     `json:"ready"`
	Degraded []string `json:"degraded"`
	Problem  string   `json:"problem"`
}

func healthOf(text string, err error) healthDocument {
	if err != nil {
		return healthDocument{Degraded: []string{}, Problem: strings.TrimPrefix(err.Error(), "health: ")}
	}
	d := healthDocument{Ready: true, Degraded: []string{}}
	for line := range strings.Lines(text) {
		if reason, ok := strings.CutPrefix(strings.TrimSpace(line), "degraded: "); ok {
			d.Degraded = append(d.Degraded, reason)
		}
	}
	return d
}

const (
	maxHealthBytes       = 1 << 10 // of a reply
	maxHealthHeaderBytes = 64 << 10
)

// requestHealth returns a ready server's text: ok, and a line for each degradation.
func requestHealth(ctx context.Context, at string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return "", fmt.Errorf("health: %w", err)
	}
	client := http.Client{Transport: &http.Transport{ // without a proxy
		// Certificates are rarely valid for loopback. No secret is sent, and an impostor could answer without
		// TLS as well.
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: true},
		MaxResponseHeaderBytes: maxHealthHeaderBytes,
	}}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("health: no answer from %s: %w; is that the server's --metrics-addr? It is another than that of Redis clients",
			request.Host, withoutGo(err))
	}
	defer response.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(response.Body, maxHealthBytes))
	text := string(bytes.TrimSpace(b))
	if response.StatusCode != http.StatusOK {
		return "", errors.New("health: " + at + " answered " + response.Status + ": " + text)
	}
	return text, nil
}

// withoutGo strips the names of Go's calls from a system error.
func withoutGo(err error) error {
	var request *neturl.Error
	var call *os.SyscallError
	var name *net.DNSError
	switch {
	case errors.As(err, &call):
		return call.Err
	case errors.As(err, &name):
		return errors.New(name.Err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("it took longer than %s", healthTimeout)
	case errors.As(err, &request):
		return request.Err
	}
	return err
}
