package xdstest

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"cellserver/internal/test/redistest"
)

const (
	noRules     = "Unknown: no rate limit configuration loaded"
	deployments = "internal/infrastructure/kubernetes/ratelimit/testdata/deployments/*.yaml"
)

// TestEnvoyGatewayDeployments starts each Deployment that Envoy Gateway's own tests expect it to render; the
// default one alone with -short.
func TestEnvoyGatewayDeployments(t *testing.T) {
	t.Parallel()
	for _, file := range gatewaySource.glob(t, deployments) {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if testing.Short() && name != "default" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			p := readPod(t, file)
			if name == "default" && (p.user() != 65534 || !*p.container.SecurityContext.ReadOnlyRootFilesystem || p.value("GRPC_SERVER_USE_TLS") != "true") {
				t.Errorf("the Deployment is another one: user %d, %v", p.user(), p.container.Env)
			}
			checkPod(t, p, "default/eg/http")
		})
	}
}

// TestEnvoyGatewayDeploymentWithData adds values-data.yaml of deploy/envoy-gateway to the default Deployment.
func TestEnvoyGatewayDeploymentWithData(t *testing.T) {
	t.Parallel()
	p := readPod(t, filepath.Join(filepath.Dir(gatewaySource.glob(t, deployments)[0]), "default.yaml"))
	text, err := os.ReadFile("../../deploy/envoy-gateway/values-data.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Config struct {
			EnvoyGateway struct {
				Provider struct {
					Kubernetes struct {
						RateLimitDeployment struct {
							Pod       corev1.PodSpec
							Container corev1.Container
						}
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	more := values.Config.EnvoyGateway.Provider.Kubernetes.RateLimitDeployment
	p.container.Env = append(p.container.Env, more.Container.Env...)
	p.container.VolumeMounts = append(p.container.VolumeMounts, more.Container.VolumeMounts...)
	p.spec.Volumes = append(p.spec.Volumes, more.Pod.Volumes...)
	checkPod(t, p, "default/eg/http")
	checkKeeps(t, p)
}

// TestAIGatewayDeployment starts the Deployment of deploy/envoy-ai-gateway, which keeps limits.
func TestAIGatewayDeployment(t *testing.T) {
	t.Parallel()
	p := readPod(t, "../../deploy/envoy-ai-gateway/deployment.yaml")
	checkPod(t, p, "ai-gateway-quota")
	checkKeeps(t, p)
}

// TestAIGatewayDeploymentOverAStore starts it with the environment that its README names for several pods.
func TestAIGatewayDeploymentOverAStore(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/envoy-ai-gateway/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, named, _ := strings.Cut(string(text), "\n- Several pods need a Redis")
	named, _, _ = strings.Cut(named, "in place of `CELLSERVER_DATA_DIR`")
	p, on := readPod(t, "../../deploy/envoy-ai-gateway/deployment.yaml"), redistest.Server(t)
	p.container.Env = slices.DeleteFunc(p.container.Env, func(e corev1.EnvVar) bool { return e.Name == "CELLSERVER_DATA_DIR" })
	p.container.VolumeMounts = nil
	for _, v := range regexp.MustCompile("`([A-Z_]+)=?(.*?)`").FindAllStringSubmatch(named, -1) {
		p.container.Env = append(p.container.Env, corev1.EnvVar{Name: v[1], Value: cmp.Or(v[2], on.Addr)})
	}
	checkPod(t, p, "ai-gateway-quota")
	client := redistest.NewClient(t, redis.Options{Addr: on.Addr})
	if keys, err := client.DBSize(t.Context()).Result(); keys == 0 || err != nil {
		t.Errorf("the store has %d keys, %v", keys, err)
	}
}

func checkKeeps(t *testing.T, p *pod) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(p.root, p.value("CELLSERVER_DATA_DIR"), "ENVOY")); err != nil {
		t.Errorf("limits are not kept on the volume: %v", err)
	}
}

// checkPod starts a pod, and expects that it is ready before there are limits, and decides by them once they
// come.
func checkPod(t *testing.T, p *pod, domain string) {
	t.Helper()
	p.fill(t)
	server := p.controlPlane(t)
	s := p.start(t, server.Addr)
	ready := func(when string) {
		t.Helper()
		s.Becomes(t, "be ready, alive and SERVING "+when, func() bool {
			return p.passes(t, s, p.container.ReadinessProbe) && p.passes(t, s, p.container.LivenessProbe) &&
				s.Health(t, "ratelimit") == "SERVING" && s.Health(t, "") == "SERVING"
		})
	}
	s.Becomes(t, "pass the startup probe", func() bool { return p.passes(t, s, p.container.StartupProbe) })
	ready("after the start")
	s.Expect(t, "without limits", domain, "user=1", noRules)
	limited := limits(domain, 2, "user")
	limited.Descriptors[0].RateLimit.Unit = config.RateLimitUnit_YEAR
	server.Give(t, "1", limited)
	s.Expect(t, "with limits", domain, "user=1", "OK", "OK", "OVER_LIMIT")
	ready("with limits")
	if p.value("USE_PROMETHEUS") == "true" {
		if door := podPorts[strings.TrimPrefix(p.value("PROMETHEUS_ADDR"), ":")]; door != "Prometheus" {
			t.Errorf("the metrics are at the port of %s", door)
		}
		s.Shows(t, "1", "0")
	}
	if log := s.Log.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("it logs an error: %s", log)
	}
}
