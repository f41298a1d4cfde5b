package deploytest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"github.com/envoyproxy/gateway/api/v1alpha1/validation"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"cellserver/lab/internal/built"
)

const (
	gatewayDir   = "deploy/envoy-gateway"
	aiGatewayDir = "deploy/envoy-ai-gateway"
)

// envoyGatewayOf returns what Envoy Gateway reads after a helm install with files of deploy/envoy-gateway, as
// it validates it.
func envoyGatewayOf(t *testing.T, files ...string) *egv1a1.EnvoyGateway {
	t.Helper()
	dir := filepath.Join(moduleDir(t, "github.com/envoyproxy/gateway"), "charts/gateway-helm")
	chart, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defaults, err := os.ReadFile(filepath.Join(dir, "values.tmpl.yaml")) // a release fills its names in
	if err != nil {
		t.Fatal(err)
	}
	chart.Values = *parsed[map[string]any](t, regexp.MustCompile(`\$\{\w+\}`).ReplaceAll(defaults, []byte("example/gateway:1")))
	given := map[string]any{}
	for _, file := range files {
		given = util.MergeTables(*parsed[map[string]any](t, []byte(read(t, gatewayDir+"/"+file))), given)
	}
	options := common.ReleaseOptions{Name: "eg", Namespace: "envoy-gateway-system", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, given, options, common.DefaultCapabilities.Copy())
	if err != nil {
		t.Fatal(err)
	}
	texts, err := engine.Engine{}.RenderWithContext(t.Context(), chart, all)
	if err != nil {
		t.Fatal(err)
	}
	config := parsed[corev1.ConfigMap](t, []byte(texts["gateway-helm/templates/envoy-gateway-config.yaml"]))
	gateway := parsed[egv1a1.EnvoyGateway](t, []byte(config.Data["envoy-gateway.yaml"]))
	gateway.SetEnvoyGatewayDefaults()
	if err := validation.ValidateEnvoyGateway(gateway); err != nil {
		t.Errorf("%v: %v", files, err)
	}
	return gateway
}

// TestEnvoyGatewayStartsCellserver checks the values with the chart and the types of Envoy Gateway, and that
// several pods share what they count.
func TestEnvoyGatewayStartsCellserver(t *testing.T) {
	t.Parallel()
	binary := built.Server(t)
	for _, files := range [][]string{{"values.yaml"}, {"values.yaml", "values-data.yaml"}, {"values.yaml", "values-redis.yaml"}} {
		provider := envoyGatewayOf(t, files...).Provider.Kubernetes
		d := provider.RateLimitDeployment
		checkImage(t, binary, *d.Container.Image)
		shares := slices.ContainsFunc(d.Container.Env, func(e corev1.EnvVar) bool {
			return e.Name == "CELLSERVER_USE_REDIS" && e.Value == "true"
		})
		if one := *d.Replicas == 1 && d.Strategy.Type == appsv1.RecreateDeploymentStrategyType; one == shares || provider.RateLimitHpa != nil {
			t.Errorf("%v: %d pods, replaced by %s, that share their counts: %v", files, *d.Replicas, d.Strategy.Type, shares)
		}
		for _, m := range d.Container.VolumeMounts {
			if !slices.ContainsFunc(d.Container.Env, func(e corev1.EnvVar) bool { return e.Value == m.MountPath }) ||
				!slices.ContainsFunc(d.Pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				t.Errorf("%v: %s is no volume that the server uses", files, m.MountPath)
			}
		}
	}
	claim := parsed[corev1.PersistentVolumeClaim](t, []byte(read(t, gatewayDir+"/persistentvolumeclaim.yaml")))
	data := envoyGatewayOf(t, "values.yaml", "values-data.yaml").Provider.Kubernetes.RateLimitDeployment.Pod
	if data.Volumes[0].PersistentVolumeClaim.ClaimName != claim.Name || *data.SecurityContext.FSGroup != 65534 {
		t.Errorf("the volume is %+v, of the group %d", data.Volumes[0], *data.SecurityContext.FSGroup)
	}
}

// TestEnvoyGatewayLua checks the comment in tokens.yaml: without what it says to add, there are no scripts.
func TestEnvoyGatewayLua(t *testing.T) {
	t.Parallel()
	gateway := envoyGatewayOf(t, "values.yaml")
	setting := regexp.MustCompile(`(?m)^#     (extensionApis: .*)$`).FindStringSubmatch(read(t, gatewayDir+"/tokens.yaml"))
	if setting == nil || !gateway.ExtensionAPIs.LuaDisabled() {
		t.Fatalf("%q is what scripts require", setting)
	}
	if err := yaml.UnmarshalStrict([]byte(setting[1]), gateway); err != nil || gateway.ExtensionAPIs.LuaDisabled() {
		t.Errorf("scripts are off: %v", err)
	}
}

// TestEnvoyGatewaysPod checks what is beside the pod with one that Envoy Gateway has rendered itself.
func TestEnvoyGatewaysPod(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(moduleDir(t, "github.com/envoyproxy/gateway"),
		"internal/infrastructure/kubernetes/ratelimit/testdata/deployments/default.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rendered := parsed[appsv1.Deployment](t, text)
	container := rendered.Spec.Template.Spec.Containers[0]
	if *container.SecurityContext.RunAsUser != 65534 || container.Command[0] != "/bin/ratelimit" {
		t.Errorf("the container is %v of user %d", container.Command, *container.SecurityContext.RunAsUser)
	}
	r := readObjects(t, gatewayDir, "README.md", "values.yaml", "values-data.yaml", "values-redis.yaml", "gateway.yaml", "requests.yaml", "tokens.yaml")
	checkBeside(t, r, rendered.Namespace, rendered.Spec.Template)
	readme := read(t, gatewayDir+"/README.md")
	for _, name := range []string{"CONFIG_GRPC_XDS_SERVER_URL", "CONFIG_GRPC_XDS_NODE_ID"} {
		if value := environment(container)[name]; !strings.Contains(readme, "`"+value+"`") {
			t.Errorf("the README has no %s", value)
		}
	}
}

func environment(c corev1.Container) map[string]string {
	all := map[string]string{}
	for _, e := range c.Env {
		all[e.Name] = e.Value
	}
	return all
}

// checkBeside validates objects beside a pod, which they have to select.
func checkBeside(t *testing.T, r *release, namespace string, pod corev1.PodTemplateSpec) {
	t.Helper()
	ports := map[string]bool{}
	for _, p := range pod.Spec.Containers[0].Ports {
		ports[p.Name] = true
	}
	for name, o := range r.objects {
		if errs := validate(t, o); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs.ToAggregate())
		}
		policy, ok := o.(*networkingv1.NetworkPolicy)
		if !ok {
			continue
		}
		checkSelects(t, name, policy.Spec.PodSelector.MatchLabels, pod.Labels)
		for _, rule := range policy.Spec.Ingress {
			if !ports[rule.Ports[0].Port.StrVal] {
				t.Errorf("%s: the pod has no port %s", name, rule.Ports[0].Port.StrVal)
			}
		}
	}
	if len(r.custom) != 1 {
		t.Fatalf("%d PodMonitors", len(r.custom))
	}
	for name, text := range r.custom {
		m := parsed[monitoringv1.PodMonitor](t, text)
		checkSelects(t, name, m.Spec.Selector.MatchLabels, pod.Labels)
		endpoint := m.Spec.PodMetricsEndpoints[0]
		if !ports[*endpoint.Port] || endpoint.RelabelConfigs[0].TargetLabel != "job" || *endpoint.RelabelConfigs[0].Replacement != "cellserver" || m.Namespace != namespace {
			t.Errorf("%s: the alert rules would not select %+v", name, endpoint)
		}
	}
}

func checkSelects(t *testing.T, name string, selector, pod map[string]string) {
	t.Helper()
	if s := labels.SelectorFromSet(selector); s.Empty() || !s.Matches(labels.Set(pod)) {
		t.Errorf("%s does not select the pod: %v", name, selector)
	}
}

// TestAIGatewayAsksCellserver checks the Deployment and the Service, and their names with Envoy AI Gateway's
// source.
func TestAIGatewayAsksCellserver(t *testing.T) {
	t.Parallel()
	r := readObjects(t, aiGatewayDir, "README.md", "quota.yaml")
	d, service := only[*appsv1.Deployment](t, r), only[*corev1.Service](t, r)
	pod := d.Spec.Template
	checkRestricted(t, pod)
	checkBeside(t, r, "envoy-gateway-system", pod)
	checkSelects(t, "the Service", service.Spec.Selector, pod.Labels)
	checkImage(t, built.Server(t), pod.Spec.Containers[0].Image)
	if *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("%d replicas, replaced by %s", *d.Spec.Replicas, d.Spec.Strategy.Type)
	}
	if c := only[*corev1.PersistentVolumeClaim](t, r); pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != c.Name ||
		pod.Spec.Containers[0].VolumeMounts[0].MountPath != environment(pod.Spec.Containers[0])["CELLSERVER_DATA_DIR"] {
		t.Error("the data directory is on no volume")
	}

	source := func(file, pattern string) string {
		text, err := os.ReadFile(filepath.Join(moduleDir(t, "github.com/envoyproxy/ai-gateway"), file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		return string(found[1])
	}
	env := environment(pod.Spec.Containers[0])
	const runner = "internal/ratelimit/runner/runner.go"
	if node := source(runner, `NodeID = "(.*)"`); env["CONFIG_GRPC_XDS_NODE_ID"] != node {
		t.Errorf("the node is %s", node)
	}
	if at := source("manifests/charts/ai-gateway-helm/values.yaml", `fullnameOverride: "(.*)"`) + ".envoy-ai-gateway-system:" +
		source(runner, `DefaultPort = (\d+)`); env["CONFIG_GRPC_XDS_SERVER_URL"] != at {
		t.Errorf("the limits are at %s", at)
	}
	text := read(t, aiGatewayDir+"/service.yaml")
	name := regexp.MustCompile(`(?m)^  name: (\S+)\n  namespace: (\S+)$`).FindStringSubmatch(text)
	at := source("manifests/charts/ai-gateway-helm/values.yaml", `quotaRateLimitServiceAddr: "(.*)"`)
	if name == nil || name[1]+"."+name[2] != at || service.Spec.Ports[0].Port != 8081 ||
		source("internal/extensionserver/quota_ratelimit.go", `defaultQuotaRateLimitServicePort = (\d+)`) != "8081" {
		t.Errorf("the service is expected at %s, and is %v", at, name)
	}
	domain := source("internal/ratelimit/translator/translator.go", `QuotaDomain = "(.*)"`)
	if !strings.Contains(read(t, aiGatewayDir+"/README.md"), "`"+domain+"`") {
		t.Errorf("the README has no domain %s", domain)
	}
}

// TestGatewayNamespaces checks that what is about the rate limit service is where Envoy Gateway runs it.
func TestGatewayNamespaces(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{gatewayDir, aiGatewayDir} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			var object struct {
				APIVersion string
				Metadata   struct{ Namespace string }
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal(documents(b)[0], &object); err != nil {
				t.Fatal(err)
			}
			core := slices.Contains([]string{"v1", "apps/v1", "networking.k8s.io/v1"}, object.APIVersion)
			if core && object.Metadata.Namespace != "envoy-gateway-system" {
				t.Errorf("%s is in the namespace %q", file, object.Metadata.Namespace)
			}
		}
	}
}
