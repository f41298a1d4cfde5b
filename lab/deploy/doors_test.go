package deploytest

import (
	"encoding/json"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3" // named in the files
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3" // named in the files
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networkingv1alpha3 "istio.io/api/networking/v1alpha3"
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

// TestEnvoyAsksCellserver checks deploy/envoy/envoy.yaml, comments included, against Envoy's definitions.
func TestEnvoyAsksCellserver(t *testing.T) {
	t.Parallel()
	text := read(t, "deploy/envoy/envoy.yaml")
	for _, text := range []string{text, strings.ReplaceAll(text, "# initial_metadata", "initial_metadata")} {
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
		if clusters := config.GetStaticResources().GetClusters(); clusters[1].GetName() != named {
			t.Errorf("there is no cluster %s", named)
		}
		checkDescriptors(t, limits.GetDomain(), manager.GetRouteConfig().GetVirtualHosts()[0].GetRateLimits())
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
