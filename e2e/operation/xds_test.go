package operation

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"cellserver/e2e/harness"
	"cellserver/internal/decide/envoyconfig/configpb"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/edge/xds/xdspb"
	"cellserver/internal/edge/xds/xdstest"
	"cellserver/internal/test/patience"
)

// twice is a domain with the same limit of the keys a and b.
func twice(perHour uint32) *configpb.RateLimitConfig {
	d := xdstest.Limit("d", "a", perHour)
	d.Descriptors = append(d.Descriptors, xdstest.Limit("d", "b", perHour).Descriptors...)
	return d
}

// limitsOf returns the limits of a and b by which a call is decided, 0 for none, or before the first ones.
func (c *grpcClient) limitsOf(t *testing.T) (a, b uint32) {
	t.Helper()
	both := field(1, "d") + field(2, entry("a", "1")) + field(2, entry("b", "1"))
	status, answer := c.call(t, rpc{path: shouldRateLimit, body: framed(both, 0)})
	response := &rlspb.RateLimitResponse{}
	if status == strconv.Itoa(int(codes.Unknown)) {
		return 0, 0
	}
	if status != "0" || len(answer) < 5 || proto.Unmarshal([]byte(answer[5:]), response) != nil || len(response.Statuses) != 2 {
		t.Errorf("status %s, answer %q", status, answer)
		return 0, 0
	}
	return response.Statuses[0].GetCurrentLimit().GetRequestsPerUnit(), response.Statuses[1].GetCurrentLimit().GetRequestsPerUnit()
}

func (c *grpcClient) awaitLimit(t *testing.T, want uint32) {
	t.Helper()
	if !patience.Until(func() bool { a, b := c.limitsOf(t); return a == want && b == want }) {
		t.Fatalf("the limit never is %d", want)
	}
}

// TestLimitsOverXDS: they change under calls, no call has two configurations, a refused one changes nothing,
// and the last ones survive the xDS server and a restart without it.
func TestLimitsOverXDS(t *testing.T) {
	t.Parallel()
	xds, dir := xdstest.New(t, "127.0.0.1:0"), t.TempDir()
	flags := []string{"--grpc-addr", "127.0.0.1:0", "--envoy-xds", xds.Addr, "--envoy-xds-node-id", "test-node", "--data-dir", dir}
	p := harness.StartServer(t, flags...)
	client := newGRPCClient(t, p)
	xds.Set(t, "first", twice(1))
	client.awaitLimit(t, 1)

	done := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		caller := newGRPCClient(t, p)
		callers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if a, b := caller.limitsOf(t); a != b {
					t.Errorf("a call with the limits %d and %d", a, b)
					return
				}
			}
		})
	}
	const changes = 10
	for i := range uint32(changes) {
		version := strconv.Itoa(int(i))
		xds.Set(t, version, twice(1_000_000+i))
		xds.Await(t, "that accepts "+version, func(q *xdspb.DiscoveryRequest) bool {
			return q.VersionInfo == version && q.ResponseNonce != "" && q.Node.Id == "test-node"
		})
	}
	close(done)
	callers.Wait()
	client.awaitLimit(t, 1_000_000+changes-1)

	xds.Set(t, "refused", twice(1), twice(2))
	xds.Await(t, "that refuses", func(q *xdspb.DiscoveryRequest) bool {
		return q.VersionInfo == strconv.Itoa(changes-1) && strings.Contains(q.GetErrorDetail().GetMessage(), `domain "d" is in resource "d" already`)
	})
	client.awaitLimit(t, 1_000_000+changes-1)
	if got := p.Metric(t, "cellserver_envoy_xds_last_rejected"); got != 1 {
		t.Errorf("cellserver_envoy_xds_last_rejected is %v", got)
	}
	xds.Set(t, "mended", twice(7))
	client.awaitLimit(t, 7)

	xds.Stop()
	p.Logged(t, "no xDS server gives limits for Envoy")
	client.awaitLimit(t, 7)
	p.Stop(t, syscall.SIGKILL)
	if code, out, errOut := harness.Call(t, nil, "check", dir); code != 0 || !strings.Contains(out, "ENVOY  ") {
		t.Errorf("check: %d, %q, %q", code, out, errOut)
	}

	p = harness.StartServer(t, flags...)
	newGRPCClient(t, p).awaitLimit(t, 7)
	again := xdstest.New(t, xds.Addr)
	again.Set(t, "") // all were removed meanwhile
	newGRPCClient(t, p).awaitLimit(t, 0)
	if first := again.Requests()[0]; first.VersionInfo != "mended" || first.ResponseNonce != "" {
		t.Errorf("the first request is %v", first)
	}
	p.Stop(t, syscall.SIGTERM)
}

// TestXDSWritesNothing without a data directory.
func TestXDSWritesNothing(t *testing.T) {
	t.Parallel()
	xds, dir := xdstest.New(t, "127.0.0.1:0"), t.TempDir()
	xds.Set(t, "1", twice(1))
	cmd := harness.Command(t, "--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--log-format", "json", "--grpc-addr", "127.0.0.1:0", "--envoy-xds", xds.Addr)
	cmd.Dir = dir
	p := harness.Start(t, cmd)
	p.Eventually(t, "be ready", p.ReadReady)
	xds.Await(t, "that accepts", func(q *xdspb.DiscoveryRequest) bool { return q.VersionInfo == "1" })
	newGRPCClient(t, p).awaitLimit(t, 1)
	p.Stop(t, syscall.SIGTERM)
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
}

// TestDamagedENVOY: check tells it, and a start awaits the server's, which replace it.
func TestDamagedENVOY(t *testing.T) {
	t.Parallel()
	xds, dir := xdstest.New(t, "127.0.0.1:0"), t.TempDir()
	file := filepath.Join(dir, "ENVOY")
	if err := os.WriteFile(file, []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := harness.Call(t, nil, "check", dir); code != 1 || !strings.Contains(out, "ENVOY  3 bytes  DAMAGED: ") {
		t.Errorf("check: %d, %q", code, out)
	}
	p := harness.StartServer(t, "--grpc-addr", "127.0.0.1:0", "--envoy-xds", xds.Addr, "--data-dir", dir)
	p.Logged(t, "cannot be used; those of the server are awaited")
	xds.Set(t, "1", twice(3))
	newGRPCClient(t, p).awaitLimit(t, 3)
	p.Stop(t, syscall.SIGTERM)
	if code, out, errOut := harness.Call(t, nil, "check", dir); code != 0 {
		t.Errorf("check: %d, %q, %q", code, out, errOut)
	}
}
