package deploytest

import (
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	redisproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/redis_proxy/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/health_checkers/redis/v3" // named in the file
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"cellserver/internal/test/redistest"
	"cellserver/lab/internal/built"
)

// TestEnvoyKnowsItsFile checks the file, comments included, against Envoy's own definitions. No Envoy runs
// here.
func TestEnvoyKnowsItsFile(t *testing.T) {
	text := read(t, "deploy/sharding/envoy.yaml")
	proxy := envoyProxy(t, text)
	withPasswords := strings.NewReplacer("# downstream_auth", "downstream_auth", "# typed_ext", "typed_ext", "      #   ", "        ").Replace(text)
	if p := envoyProxy(t, withPasswords); len(p.GetDownstreamAuthPasswords()) != 1 {
		t.Error("the comments name no password")
	}

	s := startServer(t, built.Server(t), "127.0.0.1:0", "127.0.0.1:0")
	c := redistest.NewClient(t, redis.Options{Addr: s.addr})
	commands, err := c.Command(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range proxy.GetCustomCommands() {
		if commands[name] == nil || commands[name].FirstKeyPos != 1 || commands[name].LastKeyPos != 1 {
			t.Errorf("Envoy would take the first argument of %s for its key", name)
		}
	}
	if !slices.Contains(proxy.GetCustomCommands(), "cl.throttle") {
		t.Error("Envoy would not pass CL.THROTTLE on")
	}
}

// envoyProxy reads and validates a file as Envoy does, and returns its filter for Redis.
func envoyProxy(t *testing.T, text string) *redisproxyv3.RedisProxy {
	t.Helper()
	b, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var config bootstrapv3.Bootstrap
	if err := protojson.Unmarshal(b, &config); err != nil {
		t.Fatal(err)
	}
	if err := config.ValidateAll(); err != nil {
		t.Fatal(err)
	}
	proxy := &redisproxyv3.RedisProxy{}
	if err := config.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(proxy); err != nil {
		t.Fatal(err)
	}
	if err := proxy.ValidateAll(); err != nil {
		t.Fatal(err)
	}
	return proxy
}
