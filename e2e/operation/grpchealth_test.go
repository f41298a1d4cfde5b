package operation

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
)

// watch returns what is told of a service's health.
func (c *grpcClient) watch(t *testing.T, service string) io.Reader {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/grpc.health.v1.Health/Watch", strings.NewReader(framed(field(1, service), 0)))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/grpc")
	q.Header.Set("Te", "trailers")
	response, err := c.http.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response.Body
}

// TestWatchersLearnOfTheEnd: from SIGTERM on the service is NOT_SERVING, which its watchers are told, and
// none of them delays the end.
func TestWatchersLearnOfTheEnd(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--grpc-addr", "127.0.0.1:0", "--shutdown-timeout", "1h")
	client := newGRPCClient(t, p)
	watched := map[string]io.Reader{"ratelimit": client.watch(t, "ratelimit"), "nosuch": client.watch(t, "nosuch")}
	next := func(service string) string {
		b := make([]byte, len("\x00\x00\x00\x00\x02\x08\x01"))
		if _, err := io.ReadFull(watched[service], b); err != nil {
			return err.Error()
		}
		return map[byte]string{1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}[b[len(b)-1]]
	}
	expect := func(service, want string) {
		t.Helper()
		if got := next(service); got != want {
			t.Errorf("%s: got %s, want %s", service, got, want)
		}
	}
	// A busy machine may be NOT_SERVING for a second.
	until := func(want string) (before string) {
		t.Helper()
		for got := next("ratelimit"); got != want; got = next("ratelimit") {
			if before = got; !strings.HasSuffix(got, "SERVING") {
				t.Fatalf("ratelimit: got %s, want %s", got, want)
			}
		}
		return before
	}
	until("SERVING")
	expect("nosuch", "SERVICE_UNKNOWN")
	p.Signal(t, syscall.SIGTERM)
	if got := until(io.EOF.Error()); got != "NOT_SERVING" {
		t.Errorf("at the end it is %s", got)
	}
	expect("nosuch", io.EOF.Error())
	if code := p.Await(t); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
}
