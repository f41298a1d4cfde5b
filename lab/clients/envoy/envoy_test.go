// Package envoy calls the rate limit service with Envoy's own messages, over grpc-go.
package envoy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // so that it is offered to the server
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"cellserver/internal/test/patience"
	"cellserver/lab/internal/built"
)

func TestMain(m *testing.M) { os.Exit(built.Main(m)) }

const token = "0123456789abcdef"

// dial starts cellserver and connects to its door for Envoy.
func dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cmd := exec.Command(built.Server(t), "--addr", "127.0.0.1:0", "--metrics-addr", "", "--log-format", "json",
		"--grpc-addr", "127.0.0.1:0", "--envoy-config", filepath.Join("testdata", "config"), "--envoy-headers", "--envoy-metadata",
		"--http-tokens-file", write("tokens", token+" envoy\n0123456789other_ other\n"),
		"--aclfile", write("users.acl", "user default on nopass ~* +@all\nuser envoy on nopass ~rls:* +cl.quota\nuser other on nopass ~o:* +cl.quota\n"))
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	var said strings.Builder
	for lines := bufio.NewScanner(log); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		var ready struct{ Msg, GRPC string }
		if json.Unmarshal(lines.Bytes(), &ready) == nil && ready.Msg == "ready" {
			conn, err := grpc.NewClient(ready.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
	}
	t.Fatalf("cellserver ended:\n%s", &said)
	return nil
}

// of returns a descriptor of "key=value,key=value".
func of(text string) *descriptor.RateLimitDescriptor {
	d := &descriptor.RateLimitDescriptor{}
	for entry := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(entry, "=")
		d.Entries = append(d.Entries, &descriptor.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

func request(descriptors ...*descriptor.RateLimitDescriptor) *rls.RateLimitRequest {
	return &rls.RateLimitRequest{Domain: "shop", Descriptors: descriptors}
}

const (
	ok   = rls.RateLimitResponse_OK
	over = rls.RateLimitResponse_OVER_LIMIT
)

// TestClient calls as Envoy does, and expects exactly the allowed numbers.
func TestClient(t *testing.T) {
	conn := dial(t)
	client := rls.NewRateLimitServiceClient(conn)
	ask := func(t *testing.T, r *rls.RateLimitRequest) *rls.RateLimitResponse {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		response, err := client.ShouldRateLimit(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	t.Run("limits", func(t *testing.T) {
		for i, want := range []rls.RateLimitResponse_Code{ok, ok, ok, over, over} {
			got := ask(t, request(of("generic_key=checkout"), of("staff=1"), of("nothing=1")))
			s := got.Statuses
			if got.OverallCode != want || len(s) != 3 || s[0].Code != want || s[0].LimitRemaining != uint32(max(0, 2-i)) ||
				s[1].LimitRemaining != 1<<32-1 || s[2].CurrentLimit != nil {
				t.Errorf("%d: got %v", i, got)
			}
			l := s[0].CurrentLimit
			if l.Name != "checkouts" || l.RequestsPerUnit != 3 || l.Unit != rls.RateLimitResponse_RateLimit_DAY {
				t.Errorf("%d: got limit %v", i, l)
			}
			if reset := s[0].DurationUntilReset.AsDuration(); reset <= 0 || reset > 24*time.Hour {
				t.Errorf("%d: resets in %v", i, reset)
			}
			headers := 3
			if i == 2 { // the last that fits
				headers = 4
			}
			h := got.ResponseHeadersToAdd
			if len(h) != headers || h[0].Key != "RateLimit-Limit" || h[0].Value != "3" || headers == 4 && h[3].Value != `"checkouts"` {
				t.Errorf("%d: headers %v", i, h)
			}
		}
	})
	t.Run("shared", func(t *testing.T) {
		for i, want := range []rls.RateLimitResponse_Code{ok, ok, over} {
			if got := ask(t, request(of("remote_address=192.0.2.1,path=/api/"+string(rune('a'+i))))); got.OverallCode != want {
				t.Errorf("%d: got %v", i, got)
			}
		}
	})
	t.Run("shadow", func(t *testing.T) {
		for range 3 {
			if got := ask(t, request(of("user=1"))); got.OverallCode != ok {
				t.Errorf("got %v", got)
			}
		}
	})
	t.Run("hits and limits of the request", func(t *testing.T) {
		d := of("own=1")
		d.Limit = &descriptor.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 7, Unit: typev3.RateLimitUnit_YEAR}
		look := of("own=1")
		look.Limit, look.HitsAddend = d.Limit, wrapperspb.UInt64(0)
		r := request(d, look)
		r.HitsAddend = 5
		if s := ask(t, r).Statuses; s[0].LimitRemaining != 2 || s[1].LimitRemaining != 2 {
			t.Errorf("got %v", s)
		}
		if got := ask(t, r); got.OverallCode != over {
			t.Errorf("got %v", got)
		}
	})
	t.Run("metadata", func(t *testing.T) {
		fields := ask(t, request(of("plan=free"))).DynamicMetadata.AsMap()
		plan, _ := fields["metadata"].(map[string]any)["plan"].(map[string]any)
		if plan["name"] != "free" || fields["domain"] != "shop" {
			t.Errorf("got %v", fields)
		}
	})
	t.Run("users", func(t *testing.T) {
		for _, tt := range []struct {
			authorization string
			want          codes.Code
		}{
			{"Bearer " + token, codes.OK},
			{"Bearer 0123456789other_", codes.PermissionDenied},
			{"Bearer wrong", codes.Unauthenticated},
			{"Basic x", codes.Unauthenticated},
		} {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", tt.authorization)
			if _, err := client.ShouldRateLimit(ctx, request(of("plan=free"))); status.Code(err) != tt.want {
				t.Errorf("%s: got %v", tt.authorization, err)
			}
		}
	})
	t.Run("errors", func(t *testing.T) {
		for _, r := range []*rls.RateLimitRequest{{Descriptors: request(of("a=b")).Descriptors}, request()} {
			if _, err := client.ShouldRateLimit(t.Context(), r); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%v: got %v", r, err)
			}
		}
		if _, err := client.ShouldRateLimit(t.Context(), request(of("a="+strings.Repeat("x", 1<<19)))); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("a long message: got %v", err)
		}
		if _, err := client.ShouldRateLimit(t.Context(), request(of("plan=free")), grpc.UseCompressor("gzip")); status.Code(err) != codes.Unimplemented {
			t.Errorf("a compressed message: got %v", err)
		}
		many := of("a=b")
		for range 128 {
			many.Entries = append(many.Entries, many.Entries[0])
		}
		if _, err := client.ShouldRateLimit(t.Context(), request(many)); status.Code(err) != codes.InvalidArgument {
			t.Errorf("many entries: got %v", err)
		}
	})
	t.Run("health", func(t *testing.T) {
		r := &grpc_health_v1.HealthCheckRequest{Service: rls.RateLimitService_ServiceDesc.ServiceName}
		var got *grpc_health_v1.HealthCheckResponse
		var err error
		if !patience.Until(func() bool { // a busy machine may keep the health for a second
			got, err = grpc_health_v1.NewHealthClient(conn).Check(t.Context(), r)
			return err != nil || got.Status == grpc_health_v1.HealthCheckResponse_SERVING
		}) || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
	})
}
