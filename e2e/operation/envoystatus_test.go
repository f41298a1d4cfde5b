package operation

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/decide/envoyconfig/configpb"
	"cellserver/internal/edge/xds/xdstest"
	"cellserver/internal/test/patience"
)

// TestEnvoyStatus: CL.ENVOY, metrics and the page tell of limits over xDS, of a version that is refused, and
// of a server that goes away.
func TestEnvoyStatus(t *testing.T) {
	t.Parallel()
	xds := xdstest.New(t, "127.0.0.1:0")
	xds.Set(t, "one", xdstest.Limit("site", "customer", 1000))
	p := harness.StartServer(t, "--grpc-addr", "127.0.0.1:0", "--envoy-xds", xds.Addr)
	client := harness.GoRedis(t, redis.Options{Addr: p.Addr, Protocol: 3})
	status := func() map[any]any {
		st, err := client.Do(t.Context(), "CL.ENVOY", "STATUS").Result()
		if err != nil {
			t.Fatal(err)
		}
		return st.(map[any]any)
	}
	await := func(what string, isIt func(st map[any]any) bool) {
		t.Helper()
		if !patience.Until(func() bool { return isIt(status()) }) {
			t.Fatalf("it is never %s: %v", what, status())
		}
	}
	metrics := func(want ...string) {
		t.Helper()
		_, text := p.Fetch(t, "/metrics", "")
		for _, line := range want {
			if !strings.Contains(text, "\ncellserver_envoy_"+line+"\n") {
				t.Errorf("/metrics has no %s", line)
			}
		}
	}

	await("loaded", func(st map[any]any) bool {
		return st["version"] == "one" && st["connected"] == true && st["rules"] == int64(1) && st["server"] == xds.Addr && st["accepted"] == int64(1)
	})
	if limits, err := client.Do(t.Context(), "CL.ENVOY", "LIMITS", "site").Slice(); err != nil || len(limits[1].([]any)) != 1 {
		t.Errorf("%v, %v", limits, err)
	}
	metrics("domains 1", "rules 1", "xds_connected 1", "xds_stale 0", "xds_last_rejected 0", "xds_accepted_total 1", `xds_version_info{version="one"} 1`)

	xds.Set(t, "two", &configpb.RateLimitConfig{Name: "bad"})
	await("refused", func(st map[any]any) bool {
		why, _ := st["last_refusal"].(string)
		return st["version"] == "one" && st["rejected"] != int64(0) && strings.Contains(why, `resource "bad": domain is missing`)
	})
	metrics("rules 1", "xds_last_rejected 1")
	if _, page := p.Fetch(t, "/?lang=en", ""); !strings.Contains(page, `data-k="what-XDSRejected"`) || !strings.Contains(page, "<dt>Version</dt><dd>one</dd>") {
		t.Error("the page does not tell of it")
	}

	xds.Stop()
	await("away", func(st map[any]any) bool { return st["connected"] == false && st["last_failure"] != nil })
	metrics("rules 1", "xds_connected 0")
}
