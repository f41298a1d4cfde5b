// Package xdstest has cellserver get limits for Envoy from a real xDS server, started as other people start
// envoyproxy/ratelimit, and compares it with that.
package xdstest

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
	"cellserver/lab/internal/built"
)

func TestMain(m *testing.M) { os.Exit(built.Main(m)) }

// ratelimit returns the path of cellserver under the name ratelimit.
func ratelimit(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ratelimit")
	if err := os.Symlink(built.Server(t), path); err != nil {
		t.Fatal(err)
	}
	return path
}

// doors are addresses by what is served there.
type doors map[string]string

// freeDoors are free addresses on loopback.
func freeDoors(t *testing.T) doors {
	t.Helper()
	d := doors{}
	for _, door := range []string{"health", "gRPC", "debug", "Prometheus", "RESP", "metrics"} {
		d[door] = processtest.FreeAddr(t)
	}
	return d
}

// environment returns what has a program serve there.
func (d doors) environment() []string {
	env := []string{"PROMETHEUS_ADDR=" + d["Prometheus"], "CELLSERVER_ADDR=" + d["RESP"], "CELLSERVER_METRICS_ADDR=" + d["metrics"]}
	for prefix, door := range map[string]string{"": "health", "GRPC_": "gRPC", "DEBUG_": "debug"} {
		host, port, _ := net.SplitHostPort(d[door])
		env = append(env, prefix+"HOST="+host, prefix+"PORT="+port)
	}
	return env
}

// Open returns what is served.
func (d doors) Open() (open []string) {
	for door, addr := range d {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			open = append(open, door)
		}
	}
	return open
}

// service is a rate limit service under test.
type service struct {
	*processtest.Process
	doors doors
	conn  *grpc.ClientConn
}

// launch starts a program by envoyproxy/ratelimit's environment, with limits of a control plane.
func launch(t *testing.T, program string, p *controlPlane, env ...string) *service {
	t.Helper()
	d := freeDoors(t)
	cmd := processtest.Command(t, program)
	cmd.Dir = t.TempDir()
	cmd.Env = append(append(d.environment(), "LOG_FORMAT=json", "LOG_LEVEL=info", "USE_STATSD=false", "USE_PROMETHEUS=true",
		"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_NODE_ID=lab", "CONFIG_GRPC_XDS_SERVER_URL="+p.Addr,
		"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=1s", "XDS_CLIENT_BACKOFF_MAX_INTERVAL=5s"), env...)
	return serve(t, processtest.Start(t, cmd), d, nil)
}

// serve returns a process as a service, with TLS unless that is nil.
func serve(t *testing.T, process *processtest.Process, d doors, security *tls.Config) *service {
	t.Helper()
	credential := insecure.NewCredentials()
	if security != nil {
		credential = credentials.NewTLS(security)
	}
	conn, err := grpc.NewClient("passthrough:///"+d["gRPC"], grpc.WithTransportCredentials(credential))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &service{process, d, conn}
}

// start launches cellserver, and waits until it serves.
func start(t *testing.T, p *controlPlane, env ...string) *service {
	t.Helper()
	return launch(t, ratelimit(t), p, env...).Serving(t)
}

// Serving waits until it takes calls.
func (s *service) Serving(t *testing.T) *service {
	t.Helper()
	s.Becomes(t, "serve", func() bool { return doors{"": s.doors["gRPC"]}.Open() != nil })
	return s
}

// Becomes waits for cond, unless the process ends.
func (s *service) Becomes(t *testing.T, what string, cond func() bool) {
	t.Helper()
	s.Eventually(t, what, func() bool { return cond() || s.HasExited() })
	if s.HasExited() {
		t.Fatal("it ended")
	}
}

// ShouldRateLimit makes a call.
func (s *service) ShouldRateLimit(t *testing.T, r *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	t.Helper()
	ctx, cancel := patience.Context(t.Context())
	defer cancel()
	return rls.NewRateLimitServiceClient(s.conn).ShouldRateLimit(ctx, r)
}

// Ask makes a call, which must be answered.
func (s *service) Ask(t *testing.T, domain string, descriptors ...string) *rls.RateLimitResponse {
	t.Helper()
	got, err := s.ShouldRateLimit(t, call(domain, descriptors...))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Limits returns what a call's descriptors are limited to, 0 without a limit.
func (s *service) Limits(t *testing.T, domain string, descriptors ...string) (perUnit []uint32) {
	t.Helper()
	for _, status := range s.Ask(t, domain, descriptors...).Statuses {
		perUnit = append(perUnit, status.CurrentLimit.GetRequestsPerUnit())
	}
	return perUnit
}

// HasLimit expects a limit of the domain shop, 0 for none.
func (s *service) HasLimit(t *testing.T, when string, want uint32) {
	t.Helper()
	if got := s.Limits(t, "shop", "a=1"); !slices.Equal(got, []uint32{want}) {
		t.Errorf("%s the limit is %v, want %d", when, got, want)
	}
}

// Expect makes calls, and expects their codes or errors.
func (s *service) Expect(t *testing.T, when, domain, descriptor string, codes ...string) {
	t.Helper()
	for i, want := range codes {
		response, err := s.ShouldRateLimit(t, call(domain, descriptor))
		got := response.GetOverallCode().String()
		if err != nil {
			got = status.Code(err).String() + ": " + status.Convert(err).Message()
		}
		if got != want {
			t.Errorf("%s: call %d: got %s, want %s", when, i+1, got, want)
		}
	}
}

// Health returns the answer of grpc.health.v1 for a service.
func (s *service) Health(t *testing.T, name string) string {
	t.Helper()
	ctx, cancel := patience.Context(t.Context())
	defer cancel()
	got, err := grpc_health_v1.NewHealthClient(s.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: name})
	if err != nil {
		return err.Error()
	}
	return got.Status.String()
}

// Get returns a page, with status 0 where none is served.
func (s *service) Get(t *testing.T, door, path string) (status int, text string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.doors[door]+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(b)
}

// Shows waits until the metrics say whether cellserver is connected, and whether its limits are stale.
func (s *service) Shows(t *testing.T, connected, stale string) {
	t.Helper()
	s.Becomes(t, "show connected "+connected+" and stale "+stale, func() bool {
		_, text := s.Get(t, "Prometheus", "/metrics")
		return regexp.MustCompile(`(?m)^cellserver_envoy_xds_connected `+connected+"$").MatchString(text) &&
			regexp.MustCompile(`(?m)^cellserver_envoy_xds_stale `+stale+"$").MatchString(text)
	})
}

// call returns one with descriptors of "key=value,key=value".
func call(domain string, descriptors ...string) *rls.RateLimitRequest {
	r := &rls.RateLimitRequest{Domain: domain}
	for _, text := range descriptors {
		d := &descriptor.RateLimitDescriptor{}
		for entry := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(entry, "=")
			d.Entries = append(d.Entries, &descriptor.RateLimitDescriptor_Entry{Key: key, Value: value})
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}
