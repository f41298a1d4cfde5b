package proxies

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/http1test"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/randtest"
)

// TestNothingIsSmuggled sends mutated requests through nginx, which keeps connections to cellserver: what is
// charged is what nginx has passed on, request by request.
func TestNothingIsSmuggled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts nginx")
	}
	t.Parallel()
	program, seed := processtest.Need(t, "nginx"), randtest.Seed(t, 1)
	p := harness.StartServer(t, "--http-addr", "127.0.0.1:0", "--http-allowed-hosts", "a.example", "--limits-file", harness.WriteFile(t, "limits:\n  api:\n    rules:\n    - algorithm: fixed_window\n      max_count: 1000000000\n      period: 365d\n"))
	dir := t.TempDir()
	s := &stack{t: t, front: processtest.FreeAddr(t), log: filepath.Join(dir, "access.log")}
	write(t, dir, "nginx.conf", ownNginx(dir)+`log_format upstream "$upstream_status $request";
access_log `+s.log+` upstream;
upstream cellserver { server `+p.HTTP+`; keepalive 4; }
server {
	listen `+s.front+`;
	merge_slashes off;
	location / {
		proxy_pass http://cellserver;
		proxy_http_version 1.1;
		proxy_set_header Connection "";
		proxy_set_header Host localhost;
		proxy_next_upstream off;
		proxy_ignore_client_abort on;
		proxy_request_buffering off;
	}
}
}
`)
	s.startProxy(t, nil, program, "-e", "stderr", "-c", filepath.Join(dir, "nginx.conf"))
	var all sync.WaitGroup
	for worker := range uint64(4) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, worker))
			for range 2500 {
				s.mutated(random)
			}
		})
	}
	all.Wait()
	passed := 0
	if !patience.Until(func() bool {
		log, _ := os.ReadFile(s.log)
		passed = strings.Count("\n"+string(log), "\n200 ")
		return passed == int(p.Metric(t, `cellserver_door_requests_total{door="http",outcome="allowed"}`))
	}) {
		t.Errorf("nginx passed %d requests on, and %s were allowed", passed, fmt.Sprint(p.Metric(t, `cellserver_door_requests_total{door="http",outcome="allowed"}`)))
	}
	if t.Logf("%d requests were allowed", passed); passed < 1000 {
		t.Error("too few of them")
	}
}

// mutated sends a mutated request and a last one, and waits for their answers for a while.
func (s *stack) mutated(random *rand.Rand) {
	nc, err := net.Dial("tcp", s.front)
	if err != nil {
		return
	}
	defer func() { _ = nc.Close() }()
	_ = nc.SetDeadline(time.Now().Add(20 * time.Millisecond))
	last := strings.Replace(http1test.Get, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)
	_, _ = nc.Write(append(http1test.Mutated(random), last...))
	_, _ = io.Copy(io.Discard, nc)
}
