package deploytest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3" // named in the files
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3" // named in the files
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	upstreamsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networkingv1alpha3 "istio.io/api/networking/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	k8syaml "sigs.k8s.io/yaml"
)

// validated is what Envoy's messages have.
type validated interface {
	proto.Message
	ValidateAll() error
}

// readMessage reads a message of YAML or JSON strictly, and validates it as Envoy does.
func readMessage(t *testing.T, text string, m validated) {
	t.Helper()
	b, err := k8syaml.YAMLToJSONStrict([]byte(text))
	if err == nil {
		err = protojson.Unmarshal(b, m)
	}
	if err == nil {
		err = m.ValidateAll()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestEnvoyAsksCellserver checks the configurations of deploy/envoy, comments included, against Envoy's
// definitions.
func TestEnvoyAsksCellserver(t *testing.T) {
	t.Parallel()
	for i, text := range []string{read(t, "deploy/envoy/envoy.yaml"), read(t, "deploy/envoy/tokens.yaml"),
		strings.ReplaceAll(read(t, "deploy/envoy/envoy.yaml"), "# initial_metadata", "initial_metadata")} {
		var config bootstrapv3.Bootstrap
		readMessage(t, text, &config)
		manager := &managerv3.HttpConnectionManager{}
		if err := config.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(manager); err != nil {
			t.Fatal(err)
		}
		limits := &ratelimitv3.RateLimit{}
		if err := manager.GetHttpFilters()[0].GetTypedConfig().UnmarshalTo(limits); err != nil {
			t.Fatal(err)
		}
		for _, m := range []validated{manager, limits} {
			if err := m.ValidateAll(); err != nil {
				t.Error(err)
			}
		}
		named := limits.GetRateLimitService().GetGrpcService().GetEnvoyGrpc().GetClusterName()
		cluster := config.GetStaticResources().GetClusters()[1]
		if cluster.GetName() != named {
			t.Errorf("there is no cluster %s", named)
		}
		checkHealth(t, cluster)
		checkPings(t, cluster)
		asked := manager.GetRouteConfig().GetVirtualHosts()[0].GetRateLimits()
		checkDescriptors(t, limits.GetDomain(), asked)
		if budget := i == 1; budget != asked[1].GetApplyOnStreamDone() || budget != (asked[0].GetHitsAddend().GetNumber() != nil) {
			t.Errorf("file %d: a budget is asked for by 0 hits, and charged when a response has ended: %v", i, asked)
		}
	}
}

// checkHealth expects Envoy to ask for the health of the rate limit service by its name.
func checkHealth(t *testing.T, c *clusterv3.Cluster) {
	t.Helper()
	if checks := c.GetHealthChecks(); len(checks) != 1 || checks[0].GetGrpcHealthCheck().GetServiceName() != "ratelimit" || checks[0].ValidateAll() != nil {
		t.Errorf("the health checks are %v", checks)
	}
}

// checkPings expects Envoy to ping no more often than the gRPC door permits.
func checkPings(t *testing.T, c *clusterv3.Cluster) {
	t.Helper()
	const minPingTime = 5 * time.Second // of internal/edge/door
	options := &upstreamsv3.HttpProtocolOptions{}
	if err := c.GetTypedExtensionProtocolOptions()["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"].UnmarshalTo(options); err != nil {
		t.Fatal(err)
	}
	pings := options.GetExplicitHttpConfig().GetHttp2ProtocolOptions().GetConnectionKeepalive()
	if every := pings.GetInterval().AsDuration(); every < minPingTime {
		t.Errorf("there is a ping each %s; more often than each %s, the connection is closed", every, minPingTime)
	}
}

// checkDescriptors looks for the descriptors of a configuration in deploy/envoy/limits.yaml.
func checkDescriptors(t *testing.T, domain string, limits []*routev3.RateLimit) {
	t.Helper()
	text := read(t, "deploy/envoy/limits.yaml")
	if !strings.Contains(text, "\ndomain: "+domain+"\n") || len(limits) != 2 {
		t.Errorf("limits.yaml has no domain %s, or there are %d descriptors, not two", domain, len(limits))
	}
	for _, l := range limits {
		key := "masked_remote_address"
		if a := l.GetActions()[0].GetMaskedRemoteAddress(); a != nil && (a.GetV4PrefixMaskLen().GetValue() != 32 || a.GetV6PrefixMaskLen().GetValue() != 64) {
			t.Errorf("a key is of %v, not of an address of IPv4 or a /64 of IPv6", a)
		}
		if l.GetActions()[0].GetRemoteAddress() != nil {
			t.Error("each address of IPv6 has a key")
		}
		if l.GetActions()[0].GetRequestHeaders() != nil {
			t.Error("who invents a header has a key")
		}
		if known := l.GetActions()[0].GetHeaderValueMatch(); known != nil {
			key = known.GetDescriptorKey()
			if known.GetHeaders()[0].GetStringMatch().GetExact() == "" {
				t.Errorf("a customer has no API key: %v", known)
			}
		}
		if !strings.Contains(text, "- key: "+key+"\n") {
			t.Errorf("limits.yaml has no key %s", key)
		}
	}
}

// TestIstioAsksCellserver checks the EnvoyFilter against the definitions of Istio, and its patches against
// Envoy's.
func TestIstioAsksCellserver(t *testing.T) {
	t.Parallel()
	var object struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]string `json:"metadata"`
		Spec       json.RawMessage   `json:"spec"`
	}
	if err := k8syaml.UnmarshalStrict([]byte(read(t, "deploy/istio/envoyfilter.yaml")), &object); err != nil {
		t.Fatal(err)
	}
	if object.APIVersion != "networking.istio.io/v1alpha3" || object.Kind != "EnvoyFilter" {
		t.Errorf("the object is a %s of %s", object.Kind, object.APIVersion)
	}
	var filter networkingv1alpha3.EnvoyFilter
	if err := protojson.Unmarshal(object.Spec, &filter); err != nil {
		t.Fatal(err)
	}
	patch := func(i int, m validated) {
		b, err := protojson.Marshal(filter.GetConfigPatches()[i].GetPatch().GetValue())
		if err != nil {
			t.Fatal(err)
		}
		readMessage(t, string(b), m)
	}
	var added managerv3.HttpFilter
	patch(0, &added)
	limits := &ratelimitv3.RateLimit{}
	if err := added.GetTypedConfig().UnmarshalTo(limits); err != nil {
		t.Fatal(err)
	}
	if err := limits.ValidateAll(); err != nil {
		t.Error(err)
	}
	host := routev3.VirtualHost{}
	text, err := protojson.Marshal(filter.GetConfigPatches()[1].GetPatch().GetValue())
	if err == nil {
		err = protojson.Unmarshal(text, &host) // a part of one, so it lacks what Envoy requires
	}
	if err != nil {
		t.Fatal(err)
	}
	checkDescriptors(t, limits.GetDomain(), host.GetRateLimits())
	checkIstioCluster(t, filter.GetConfigPatches()[2], limits.GetRateLimitService().GetGrpcService().GetEnvoyGrpc().GetClusterName())
}

// checkIstioCluster checks the patch of the cluster that the filter asks, and that the chart's Service has
// its port.
func checkIstioCluster(t *testing.T, p *networkingv1alpha3.EnvoyFilter_EnvoyConfigObjectPatch, asked string) {
	t.Helper()
	var cluster clusterv3.Cluster
	text, err := protojson.Marshal(p.GetPatch().GetValue())
	if err == nil {
		err = protojson.Unmarshal(text, &cluster) // a part of one
	}
	if err != nil {
		t.Fatal(err)
	}
	checkHealth(t, &cluster)
	match := p.GetMatch().GetCluster()
	r := render(t, read(t, "deploy/istio/values.yaml"))
	service := only[*corev1.Service](t, r)
	host := service.Name + ".limits.svc.cluster.local"
	if want := fmt.Sprintf("outbound|%d||%s", match.GetPortNumber(), match.GetService()); asked != want || match.GetService() != host {
		t.Errorf("the filter asks %s, the patch is of %s, the Service is %s", asked, want, host)
	}
	if !slices.ContainsFunc(service.Spec.Ports, func(port corev1.ServicePort) bool {
		return port.Port == int32(match.GetPortNumber()) && *cmp.Or(port.AppProtocol, new(string)) == "grpc"
	}) {
		t.Errorf("the Service has %v", service.Spec.Ports)
	}
}

// traefik has the fields of Traefik's dynamic configuration that the file uses.
type traefik struct {
	HTTP struct {
		Routers map[string]struct {
			Rule, Service string
			Priority      int
			Middlewares   []string
		}
		Middlewares map[string]struct {
			ForwardAuth *struct {
				Address            string
				AuthRequestHeaders []string `yaml:"authRequestHeaders"`
			} `yaml:"forwardAuth"`
			IPAllowList *struct {
				SourceRange      []string `yaml:"sourceRange"`
				RejectStatusCode int      `yaml:"rejectStatusCode"`
			} `yaml:"ipAllowList"`
			BasicAuth *struct {
				UsersFile   string `yaml:"usersFile"`
				HeaderField string `yaml:"headerField"`
			} `yaml:"basicAuth"`
		}
		Services map[string]struct {
			LoadBalancer struct {
				Servers []struct{ URL string }
			} `yaml:"loadBalancer"`
		}
	}
}

// TestTraefikKnowsItsFile reads the file strictly: no unknown fields, and no names that do not exist.
func TestTraefikKnowsItsFile(t *testing.T) {
	t.Parallel()
	var config traefik
	d, err := yaml.NewLoader(strings.NewReader(read(t, "deploy/traefik/dynamic.yml")), yaml.WithKnownFields())
	if err == nil {
		err = d.Load(&config)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range config.HTTP.Routers {
		if _, ok := config.HTTP.Services[r.Service]; !ok || r.Rule == "" {
			t.Errorf("the router %s has no service or rule: %+v", name, r)
		}
		for _, m := range r.Middlewares {
			if _, ok := config.HTTP.Middlewares[m]; !ok {
				t.Errorf("there is no middleware %s", m)
			}
		}
	}
	limits := 0
	for name, m := range config.HTTP.Middlewares {
		if m.ForwardAuth == nil {
			continue
		}
		limits++
		if !strings.HasPrefix(m.ForwardAuth.Address, "http://127.0.0.1:6381/v1/check/"+name+"?by=") || len(m.ForwardAuth.AuthRequestHeaders) == 0 {
			t.Errorf("the middleware %s asks %+v", name, m.ForwardAuth)
		}
	}
	if limits != 3 {
		t.Errorf("%d middlewares ask cellserver, not three", limits)
	}
}
