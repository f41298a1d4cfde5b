package operation

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/certtest"
	"cellserver/internal/test/processtest"
)

// grpcFiles are a server's certificate, and the authority that has issued it.
type grpcFiles struct {
	ca             *certtest.CA
	cert, key, all string
}

func newGRPCFiles(t *testing.T) *grpcFiles {
	t.Helper()
	dir := t.TempDir()
	f := &grpcFiles{certtest.NewCA(t), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")}
	certtest.Write(t, f.all, f.ca.PEM)
	f.issue(t, "envoy-ratelimit")
	return f
}

func (f *grpcFiles) issue(t *testing.T, name string) {
	t.Helper()
	cert, key := f.ca.Issue(t, name)
	certtest.Write(t, f.cert, cert)
	certtest.Write(t, f.key, key)
}

func (f *grpcFiles) env() []string {
	return []string{"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=" + f.cert, "GRPC_SERVER_TLS_KEY=" + f.key, "GRPC_SERVER_TLS_CA_CERT=" + f.all}
}

// client is one of gRPC over TLS, with certificates of its own.
func (f *grpcFiles) client(t *testing.T, addr string, own ...tls.Certificate) *grpcClient {
	t.Helper()
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: f.ca.Pool, ServerName: "localhost", Certificates: own}}
	t.Cleanup(transport.CloseIdleConnections)
	return &grpcClient{&http.Client{Transport: transport}, "https://" + addr}
}

// refused expects that a client is not served.
func (c *grpcClient) refused(t *testing.T) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+healthCheck, strings.NewReader(framed("", 0)))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/grpc")
	response, err := c.http.Do(q)
	if err == nil {
		_ = response.Body.Close()
		t.Errorf("served: %s", response.Status)
	}
}

// get returns a page's status and text, of the types that are accepted.
func get(t *testing.T, url string, accept ...string) (status int, text string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header["Accept"] = accept
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	b, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(b)
}

// TestRatelimitOfEnvoyGateway starts the program as Envoy Gateway's Deployment does, while nobody answers
// over xDS.
func TestRatelimitOfEnvoyGateway(t *testing.T) {
	t.Parallel()
	f := newGRPCFiles(t)
	p := harness.StartRatelimit(t, append(f.env(),
		"RUNTIME_ROOT=/data", "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_IGNOREDOTFILES=true", "RUNTIME_WATCH_ROOT=false", "LOG_LEVEL=info", "USE_STATSD=false",
		"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL="+processtest.FreeAddr(t), "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit",
		"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT="+f.cert, "CONFIG_GRPC_XDS_CLIENT_TLS_KEY="+f.key,
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT="+f.all, "FORCE_START_WITHOUT_INITIAL_CONFIG=true", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=redis.redis.svc:6379",
		"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0", "PROMETHEUS_MAPPER_YAML=/etc/statsd-exporter/conf.yaml",
		"CELLSERVER_ADDR=:6380", "CELLSERVER_ADDR=127.0.0.1:0",
	), "--not-known", "word")
	p.Eventually(t, "be healthy", func() bool {
		status, text := get(t, "http://"+p.Ratelimit.HealthAndJSON+"/healthcheck")
		return status == http.StatusOK && text == "OK"
	})
	client := f.client(t, p.GRPCS)
	p.Eventually(t, "be SERVING", func() bool {
		status, answer := client.call(t, rpc{path: healthCheck, body: framed("", 0)})
		return status == "0" && answer == framed("\x08\x01", 0)
	})
	if status, text := get(t, "http://"+p.Ratelimit.Prometheus+"/metrics"); status != http.StatusOK || !strings.Contains(text, "\ncellserver_") {
		t.Errorf("/metrics: %d", status)
	}
	if status, _ := get(t, "http://"+p.Ratelimit.Prometheus+"/"); status != http.StatusNotFound {
		t.Errorf("the live page beside the metrics: %d", status)
	}
	if status, _ := get(t, "http://"+p.Metrics+"/"); status != http.StatusOK {
		t.Errorf("the live page: %d", status)
	}
	log := p.Log.String()
	for _, want := range []string{
		"each replica counts alone; n replicas allow n times the limit", "no counterpart here have no effect: GRPC_SERVER_TLS_CA_CERT PROMETHEUS_MAPPER_YAML",
	} {
		if strings.Count(log, want) != 1 {
			t.Errorf("the log has not %q once", want)
		}
	}
	if strings.Contains(log, "unknown setting") {
		t.Error("a variable is unknown")
	}
}

// TestRatelimitKnowsItsClients: clients of gRPC need a certificate of the authority, and of the name, and the
// server's own is read again.
func TestRatelimitKnowsItsClients(t *testing.T) {
	t.Parallel()
	f := newGRPCFiles(t)
	p := harness.StartRatelimit(t, append(f.env(), "RUNTIME_ROOT=/nosuch", "GRPC_CLIENT_TLS_CACERT="+f.all, "GRPC_CLIENT_TLS_SAN=localhost"))
	health := rpc{path: healthCheck, body: framed("", 0)}
	if status, _ := f.client(t, p.GRPCS, f.ca.Pair(t, "envoy")).call(t, health); status != "0" {
		t.Errorf("with a certificate: %s", status)
	}
	f.client(t, p.GRPCS).refused(t)
	f.client(t, p.GRPCS, certtest.NewCA(t).Pair(t, "envoy")).refused(t)
	named := harness.StartRatelimit(t, append(f.env(), "RUNTIME_ROOT=/nosuch", "GRPC_CLIENT_TLS_CACERT="+f.all, "GRPC_CLIENT_TLS_SAN=envoy.example"))
	f.client(t, named.GRPCS, f.ca.Pair(t, "envoy")).refused(t)

	f.issue(t, "renewed")
	p.Reload(t, "using new TLS files")
	nc, err := tls.Dial("tcp", p.GRPCS, &tls.Config{RootCAs: f.ca.Pool, ServerName: "localhost", Certificates: []tls.Certificate{f.ca.Pair(t, "envoy")}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	if name := nc.ConnectionState().PeerCertificates[0].Subject.CommonName; name != "renewed" {
		t.Errorf("the certificate is %s's", name)
	}
}

// TestRatelimitMistakes: a start that fails has one line, which names the variable.
func TestRatelimitMistakes(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"GRPC_SERVER_USE_TLS=maybe": "GRPC_SERVER_USE_TLS takes true or false",
		"PORT=x":                    "PORT takes a whole number",
	} {
		code, _, stderr := harness.Call(t, []string{env}, "ratelimit")
		if code != 2 || !strings.HasPrefix(stderr, "cellserver: "+want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: %d, %s", env, code, stderr)
		}
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close() }()
	_, port, _ := net.SplitHostPort(busy.Addr().String())
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "")
	for _, tt := range []struct{ env, want string }{
		{"PORT=" + port, "address already in use; choose another with HOST and PORT"},
		{"DEBUG_PORT=" + port, "address already in use; choose another with DEBUG_HOST and DEBUG_PORT"},
		{"GRPC_PORT=" + port, "address already in use; choose another with GRPC_HOST and GRPC_PORT"},
		{"USE_PROMETHEUS=true PROMETHEUS_ADDR=127.0.0.1:" + port, "address already in use; choose another with PROMETHEUS_ADDR"},
		{"CELLSERVER_ADDR=127.0.0.1:" + port, "address already in use; choose another with CELLSERVER_ADDR"},
		{"GRPC_UDS=" + dir, "cannot listen on " + dir + ": a file that is not a socket is there; choose another with GRPC_UDS"},
		{"GRPC_UDS=" + dir + strings.Repeat("/long", 40), ": the path is longer than 107 bytes; choose another with GRPC_UDS"},
		{"RUNTIME_ROOT=" + file, "RUNTIME_ROOT: envoy-config: cannot read the directory: open " + file + "/config: not a directory"},
		// Files are read before an xDS server is awaited:
		{"CONFIG_TYPE=GRPC_XDS_SOTW GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT=/nosuch GRPC_SERVER_TLS_KEY=/nosuch", "read GRPC_SERVER_TLS_CERT /nosuch"},
		{"CONFIG_TYPE=GRPC_XDS_SOTW CONFIG_GRPC_XDS_SERVER_USE_TLS=true CONFIG_GRPC_XDS_SERVER_TLS_CACERT=/nosuch", "CONFIG_GRPC_XDS_SERVER_TLS_CACERT: envoy-xds-tls-ca: open /nosuch"},
	} {
		code, _, stderr := harness.Call(t, append([]string{
			"HOST=127.0.0.1", "PORT=0", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0", "GRPC_HOST=127.0.0.1", "GRPC_PORT=0", "CELLSERVER_ADDR=127.0.0.1:0",
			"CELLSERVER_METRICS_ADDR=127.0.0.1:0", "RUNTIME_ROOT=/nosuch", "LOG_LEVEL=error",
		}, strings.Fields(tt.env)...), "ratelimit")
		if code != 1 || !strings.HasPrefix(stderr, "cellserver: ") || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: %d, %s", tt.env, code, stderr)
		}
	}
}
