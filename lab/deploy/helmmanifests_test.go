package deploytest

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// TestChartIsValid checks each release as a cluster would, and that its parts find each other.
func TestChartIsValid(t *testing.T) {
	t.Parallel()
	for name, values := range chartValues {
		r := render(t, values)
		for object, o := range r.objects {
			if errs := validate(t, o); len(errs) > 0 {
				t.Errorf("%s: %s: %v", name, object, errs.ToAggregate())
			}
		}
		pod, selector := serversOf(t, r)
		checkRestricted(t, pod)
		checkSelectors(t, r, pod.Labels, selector)
		checkFiles(t, r, pod.Spec)
		if !strings.Contains(r.notes, "cl.throttle laoqian:reply 15 30 60 1") || strings.Contains(r.notes, "no value") {
			t.Errorf("%s: the notes are\n%s", name, r.notes)
		}
	}
}

// serversOf returns the pods of servers, of a Deployment or a StatefulSet.
func serversOf(t *testing.T, r *release) (pod corev1.PodTemplateSpec, selector *metav1.LabelSelector) {
	t.Helper()
	for name, o := range r.objects {
		switch o := o.(type) {
		case *appsv1.Deployment:
			return o.Spec.Template, o.Spec.Selector
		case *appsv1.StatefulSet:
			if !strings.HasSuffix(name, sentinelSuffix) {
				return o.Spec.Template, o.Spec.Selector
			}
		}
	}
	t.Fatal("no servers")
	return pod, nil
}

// sentinelSuffix ends the names of a chart's objects that are about Sentinels.
const sentinelSuffix = "-sentinel"

// only returns the only object of a type.
func only[T any](t *testing.T, r *release) (found T) {
	t.Helper()
	n := 0
	for _, o := range r.objects {
		if typed, ok := o.(T); ok {
			found = typed
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%d objects of the type %T", n, found)
	}
	return found
}

// checkSelectors expects every selector to match this pod and no pod of another release.
func checkSelectors(t *testing.T, r *release, pod map[string]string, of *metav1.LabelSelector) {
	t.Helper()
	other := maps.Clone(pod)
	other["app.kubernetes.io/instance"] = "other"
	selectors := map[string]*metav1.LabelSelector{"the set of pods": of}
	for name, o := range r.objects {
		if strings.HasSuffix(name, sentinelSuffix) {
			continue
		}
		switch o := o.(type) {
		case *corev1.Service:
			selectors[name] = &metav1.LabelSelector{MatchLabels: o.Spec.Selector}
		case *networkingv1.NetworkPolicy:
			selectors[name] = &o.Spec.PodSelector
		case *policyv1.PodDisruptionBudget:
			selectors[name] = o.Spec.Selector
		}
	}
	if text, ok := r.custom["PodMonitor/cellserver"]; ok {
		selectors["PodMonitor"] = &parsed[monitoringv1.PodMonitor](t, text).Spec.Selector
	}
	for name, selector := range selectors {
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil || !s.Matches(labels.Set(pod)) || s.Matches(labels.Set(other)) {
			t.Errorf("%s does not select the pod, and only it: %v (%v)", name, s, err)
		}
	}
	if pod["app.kubernetes.io/name"] != "cellserver" {
		t.Error("the job would not be cellserver, which the alert rules select")
	}
}

func parsed[T any](t *testing.T, text []byte) *T {
	t.Helper()
	var o T
	if err := yaml.UnmarshalStrict(text, &o); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return &o
}

// settings returns the config file.
func (r *release) settings(t *testing.T) map[string]any {
	t.Helper()
	for name, o := range r.objects {
		if c, ok := o.(*corev1.ConfigMap); ok && configFile(name, c) != "" {
			return *parsed[map[string]any](t, []byte(configFile(name, c)))
		}
	}
	t.Fatal("no config file")
	return nil
}

// configFile returns the config file in a ConfigMap, of the first if there are two servers.
func configFile(name string, c *corev1.ConfigMap) (text string) {
	if text, ok := c.Data["cellserver.yaml"]; ok {
		return text
	}
	return c.Data[strings.TrimPrefix(name, "ConfigMap/")+"-0.yaml"]
}

// checkFiles expects every path in the settings to be below a volume.
func checkFiles(t *testing.T, r *release, pod corev1.PodSpec) {
	t.Helper()
	for name, value := range r.settings(t) {
		path, ok := value.(string)
		if !ok || !strings.HasPrefix(path, "/") {
			continue
		}
		if !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.MountPath == path || m.MountPath == filepath.Dir(path)
		}) {
			t.Errorf("no volume has %s: %s", name, path)
		}
	}
}

// TestChartIsTheManifests checks that a release and the manifests differ only in names, labels and the form
// of the settings.
func TestChartIsTheManifests(t *testing.T) {
	t.Parallel()
	m, r := readManifests(t), render(t, "metrics: {podMonitor: {enabled: true}}")
	same(t, "Deployment", specOf(only[*appsv1.Deployment](t, r)), specOf(m.deployment))
	same(t, "settings", flagsOf(r.settings(t)), flagsOfVariables(m.config.Data))
	same(t, "claim", only[*corev1.PersistentVolumeClaim](t, r).Spec, m.claim.Spec)
	same(t, "Service", only[*corev1.Service](t, r).Spec.Ports, m.service.Spec.Ports)
	network, budget := only[*networkingv1.NetworkPolicy](t, r).Spec, only[*policyv1.PodDisruptionBudget](t, r).Spec
	network.PodSelector, budget.Selector = m.network.Spec.PodSelector, m.budget.Spec.Selector
	same(t, "NetworkPolicy", network, m.network.Spec)
	same(t, "PodDisruptionBudget", budget, m.budget.Spec)
	monitor := parsed[monitoringv1.PodMonitor](t, r.custom["PodMonitor/cellserver"]).Spec
	monitor.Selector = m.monitor.Spec.Selector
	same(t, "PodMonitor", monitor, m.monitor.Spec)
	if secret := only[*corev1.Secret](t, r); secret.Name != m.secret.Name || len(secret.Data["requirepass"]) != 48 {
		t.Errorf("the secret is %s with %d characters", secret.Name, len(secret.Data["requirepass"]))
	}
}

// TestChartWithStoreIsTheManifests is the same of servers over a cluster.
func TestChartWithStoreIsTheManifests(t *testing.T) {
	t.Parallel()
	all := readObjects(t, clusterDir)
	config := objectOf[*corev1.ConfigMap](t, all, "ConfigMap/cellserver").Data
	r := render(t, strings.NewReplacer("redis-cluster://valkey-0.valkey:6379,valkey-1.valkey:6379", config["CELLSERVER_STORE"],
		"{on-store-error: local, local-share: 0.33}", "{on-store-error: error}").Replace(chartValues["store"]))
	got := specOf(only[*appsv1.Deployment](t, r))
	got.Template.Spec.SecurityContext.FSGroupChangePolicy = nil // without a volume it says nothing
	text := strings.NewReplacer("/run/secrets/store", "/run/secrets/valkey", "name: store", "name: valkey").Replace(asYAML(t, got))
	same(t, "Deployment", text, asYAML(t, specOf(objectOf[*appsv1.Deployment](t, all, "Deployment/cellserver"))))
	config["CELLSERVER_STORE_PASSWORD_FILE"] = "/run/secrets/store/password"
	same(t, "settings", flagsOf(r.settings(t)), flagsOfVariables(config))
	network, want := only[*networkingv1.NetworkPolicy](t, r).Spec, objectOf[*networkingv1.NetworkPolicy](t, all, "NetworkPolicy/cellserver").Spec
	network.PodSelector = want.PodSelector
	same(t, "NetworkPolicy", network, want)
	budget, most := only[*policyv1.PodDisruptionBudget](t, r).Spec, objectOf[*policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget/cellserver").Spec
	budget.Selector = most.Selector
	same(t, "PodDisruptionBudget", budget, most)
	for name := range r.objects {
		if strings.HasPrefix(name, "PersistentVolumeClaim") {
			t.Error("there is a volume, which nothing uses")
		}
	}
}

// specOf returns a spec without names, labels and the source of the settings.
func specOf(d *appsv1.Deployment) *appsv1.DeploymentSpec {
	spec := d.DeepCopy().Spec
	spec.Selector, spec.Template.ObjectMeta = nil, metav1.ObjectMeta{}
	pod := &spec.Template.Spec
	for i := range pod.TopologySpreadConstraints {
		pod.TopologySpreadConstraints[i].LabelSelector = nil
	}
	pod.Containers[0].Env, pod.Containers[0].EnvFrom = nil, nil
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "config" })
	pod.Containers[0].VolumeMounts = slices.DeleteFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "config" })
	return &spec
}

func flagsOf(settings map[string]any) map[string]string {
	flags := map[string]string{}
	for name, value := range settings {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		words := make([]string, len(list))
		for i, v := range list {
			words[i] = fmt.Sprint(v)
		}
		flags[name] = strings.Join(words, ",")
	}
	return flags
}

func flagsOfVariables(env map[string]string) map[string]string {
	flags := map[string]string{}
	for name, value := range env {
		flags[strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "CELLSERVER_"), "_", "-"))] = value
	}
	return flags
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := asYAML(t, got), asYAML(t, want); g != w {
		t.Errorf("%s: got\n%s\nwant\n%s", what, g, w)
	}
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	if text, ok := v.(string); ok {
		return text
	}
	b, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestChartMonitoring checks that the rules are those of deploy/prometheus with links, and that Prometheus
// has the token.
func TestChartMonitoring(t *testing.T) {
	t.Parallel()
	r := render(t, chartValues["tls and monitoring"])
	rules := parsed[monitoringv1.PrometheusRule](t, r.custom["PrometheusRule/cellserver"])
	var got []string
	for _, g := range rules.Spec.Groups {
		for _, rule := range g.Rules {
			got = append(got, rule.Record+rule.Alert+rule.Annotations["runbook_url"])
		}
	}
	var want []string
	for _, rule := range readRules(t) {
		url := rule.Annotations["runbook_url"]
		if url != "" {
			url = "https://git.example/limits/" + url
		}
		want = append(want, rule.Record+rule.Alert+url)
	}
	if !slices.Equal(got, want) || rules.Labels["release"] != "prometheus" {
		t.Errorf("got %q\nwant %q, labels %v", got, want, rules.Labels)
	}
	monitor := parsed[monitoringv1.PodMonitor](t, r.custom["PodMonitor/cellserver"])
	if a := monitor.Spec.PodMetricsEndpoints[0].Authorization; a == nil || a.Credentials.Name != "metrics" || a.Credentials.Key != "metrics-token" || monitor.Labels["release"] != "prometheus" {
		t.Errorf("%+v, labels %v", a, monitor.Labels)
	}
}

// TestChartRefuses checks that invalid values fail before anything changes, and say what to do.
func TestChartRefuses(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"replicas: 2": "more than one requires store.url",
		"store: {url: 'redis://user:secret@redis.example:6379/0'}":                          "put it into a Secret",
		"store: {url: 'redis.example:6379'}":                                                "store",
		"store: {existingSecret: a}":                                                        "set store.url",
		"store: {url: 'redis://a:1', caSecret: a}":                                          "such as rediss://",
		"tls: {only: true}":                                                                 "require tls.existingSecret",
		"tls: {clientCA: true}":                                                             "require tls.existingSecret",
		"config: {store: 'redis://a:1'}":                                                    "use store.url",
		"config: {requirepass: secret}":                                                     "use auth.existingSecret",
		"config: {addr: ':6379'}":                                                           "use service.port",
		"config: {maxclients: {a: b}}":                                                      "maxclients",
		"config: {MaxClients: 1}":                                                           "MaxClients",
		"replica: 2":                                                                        "replica",
		"persistence: {size: 8 gigabytes}":                                                  "size",
		"persistence: {enable: true}":                                                       "enable",
		"image: {pullPolicy: Sometimes}":                                                    "pullPolicy",
		"image: {digest: latest}":                                                           "digest",
		"replicas: -1":                                                                      "replicas",
		"podDisruptionBudget: {maxUnavailable: some}":                                       "maxUnavailable",
		"tls: {existingSecret: a, port: 70000}":                                             "port",
		"tls: {existingSecret: a, port: 6380}":                                              "the port without TLS",
		"config: {http-addr: ':6380'}":                                                      "a port that is taken",
		"config: {http-addr: ':81', grpc-addr: ':81'}":                                      "a port that is taken",
		"config: {http-addr: '0.0.0.0'}":                                                    "a port that is taken, or none",
		"doors: {http: 9380}":                                                               "a port that is taken",
		"doors: {http: 81, grpc: 81}":                                                       "a port that is taken",
		"doors: {http: 70000}":                                                              "http",
		"{doors: {http: 81}, config: {http-addr: ':82'}}":                                   "set it only once",
		"{doors: {http: 81, existingSecret: a}, config: {http-tokens-file: b}}":             "set it only once",
		"doors: {https: 81}":                                                                "require tls.existingSecret",
		"doors: {existingSecret: a}":                                                        "set one of their ports",
		"xds: {addr: 'a:1'}":                                                                "set the port that Envoy asks",
		"{xds: {addr: 'a:1'}, doors: {http: 81}}":                                           "set the port that Envoy asks",
		"{xds: {addr: a}, doors: {grpc: 81}}":                                               "addr",
		"xds: {nodeId: a}":                                                                  "require xds.addr",
		"{xds: {addr: 'a:1'}, doors: {grpc: 81}, config: {envoy-xds: 'a:1'}}":               "set it only once",
		"{replication: {enabled: true}, replicas: 3}":                                       "leave replicas out",
		"{replication: {enabled: true}, replicas: 0}":                                       "leave replicas out",
		"{replication: {enabled: true}, store: {url: 'redis://a:1'}}":                       "choose one of the two",
		"{replication: {enabled: true}, tls: {existingSecret: a}}":                          "leave tls.existingSecret out",
		"{replication: {enabled: true}, persistence: {existingClaim: a}}":                   "leave it out",
		"{replication: {enabled: true}, service: {type: LoadBalancer}}":                     "clients ask the Sentinels",
		"{replication: {enabled: true}, service: {port: 6379}}":                             "clients ask the Sentinels",
		"{replication: {enabled: true}, config: {aclfile: a}}":                              "replication.enabled sets it",
		"{replication: {enabled: true}, config: {peer: 'a:1'}}":                             "replication.enabled sets it",
		"{replication: {enabled: true}, fullnameOverride: " + strings.Repeat("a", 44) + "}": "43 characters",
		"replication: {maxLag: long}":                                                       "maxLag",
		"replication: {sentinel: {image: ''}}":                                              "image",
	} {
		if _, err := tryRender(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", values, err, want)
		}
	}
	for _, values := range []string{"replicas: 0", "store: {url: 'redis://user@redis.example:6379/0'}", "podDisruptionBudget: {maxUnavailable: 50%}"} {
		render(t, values)
	}
}

// TestChartLetsNobodyIn checks empty lists, which in a NetworkPolicy would mean everyone.
func TestChartLetsNobodyIn(t *testing.T) {
	t.Parallel()
	policy := only[*networkingv1.NetworkPolicy](t, render(t, "networkPolicy: {clients: [], monitoring: []}"))
	if len(policy.Spec.Ingress) > 0 {
		t.Errorf("%+v", policy.Spec.Ingress)
	}
}

// TestChartPasswordIsKept checks that an upgrade keeps the password and that an existing Secret replaces it.
func TestChartPasswordIsKept(t *testing.T) {
	t.Parallel()
	template := read(t, chartDir+"/templates/secret.yaml")
	if !regexp.MustCompile(`lookup "v1" "Secret" .Release.Namespace`).MatchString(template) {
		t.Error("it is not looked up")
	}
	for name, o := range render(t, "auth: {existingSecret: mine}").objects {
		if _, ok := o.(*corev1.Secret); ok {
			t.Errorf("there is a %s, too", name)
		}
	}
}
