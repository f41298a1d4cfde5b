package deploytest

import (
	"fmt"
	"maps"
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
)

// TestChartWithReplicationIsTheManifests checks that a release with a pair and the manifests differ only in
// labels, the form of the settings, and names that are known in other namespaces, too.
func TestChartWithReplicationIsTheManifests(t *testing.T) {
	t.Parallel()
	all, r := readObjects(t, pairDir), render(t, chartValues["pair"])
	longNames := strings.NewReplacer(".cellserver.limits.svc", ".cellserver", ".cellserver-sentinel.limits.svc", ".cellserver-sentinel")
	for _, name := range []string{"cellserver", "cellserver-sentinel"} {
		want := asYAML(t, setSpecOf(objectOf[*appsv1.StatefulSet](t, all, "StatefulSet/"+name)))
		got := asYAML(t, setSpecOf(objectOf[*appsv1.StatefulSet](t, r, "StatefulSet/"+name)))
		same(t, name, longNames.Replace(got), strings.ReplaceAll(want, "name: cellserver-pair\n", "name: cellserver\n"))
		same(t, "Service "+name, serviceSpecOf(t, r, name), serviceSpecOf(t, all, name))
		same(t, "NetworkPolicy "+name, policySpecOf(t, r, name), policySpecOf(t, all, name))
		same(t, "PodDisruptionBudget "+name, budgetSpecOf(t, r, name), budgetSpecOf(t, all, name))
	}
	monitor := parsed[monitoringv1.PodMonitor](t, r.custom["PodMonitor/cellserver"]).Spec
	want := parsed[monitoringv1.PodMonitor](t, all.custom["PodMonitor/cellserver"]).Spec
	monitor.Selector = want.Selector
	same(t, "PodMonitor", monitor, want)

	files := objectOf[*corev1.ConfigMap](t, r, "ConfigMap/cellserver").Data
	scripts := objectOf[*corev1.ConfigMap](t, all, "ConfigMap/cellserver-pair").Data
	for i := range 2 {
		file := fmt.Sprintf("cellserver-%d.yaml", i)
		settings := flagsOfVariables(objectOf[*corev1.ConfigMap](t, all, "ConfigMap/cellserver").Data)
		maps.Copy(settings, *parsed[map[string]string](t, []byte(scripts[file])))
		same(t, file, flagsOf(*parsed[map[string]any](t, []byte(longNames.Replace(files[file])))), settings)
	}
	same(t, "handover.sh", strings.TrimSpace(files["handover.sh"]), strings.TrimSpace(scripts["handover.sh"]))
	same(t, "sentinel.sh", strings.TrimSpace(objectOf[*corev1.ConfigMap](t, r, "ConfigMap/cellserver-sentinel").Data["sentinel.sh"]),
		strings.TrimSpace(objectOf[*corev1.ConfigMap](t, all, "ConfigMap/cellserver-sentinel").Data["sentinel.sh"]))
	secret := objectOf[*corev1.Secret](t, r, "Secret/cellserver-replication").StringData
	checkUsers(t, secret["users.acl"])
	for _, user := range []string{"replica", "sentinel"} {
		if len(secret[user]) != 48 || !strings.Contains(secret["users.acl"], "user "+user+" on >"+secret[user]+" ") {
			t.Errorf("the password of %s has %d characters, or is not that of the user", user, len(secret[user]))
		}
	}
	if !strings.Contains(read(t, chartDir+"/templates/replicationsecret.yaml"), `lookup "v1" "Secret" .Release.Namespace $name`) {
		t.Error("an upgrade makes new passwords")
	}
}

// setSpecOf returns a spec without labels and the source of the settings.
func setSpecOf(s *appsv1.StatefulSet) *appsv1.StatefulSetSpec {
	spec := s.DeepCopy().Spec
	spec.Selector, spec.Template.ObjectMeta = nil, metav1.ObjectMeta{}
	for i := range spec.VolumeClaimTemplates {
		spec.VolumeClaimTemplates[i].Labels = nil
	}
	pod := &spec.Template.Spec
	for i := range pod.TopologySpreadConstraints {
		pod.TopologySpreadConstraints[i].LabelSelector = nil
	}
	if pod.Affinity != nil {
		pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector = nil
	}
	first := &pod.Containers[0]
	if first.EnvFrom = nil; first.Env[0].Name == "CELLSERVER_ADDR" {
		first.Env = first.Env[1:]
	}
	return &spec
}

func serviceSpecOf(t *testing.T, r *release, name string) corev1.ServiceSpec {
	t.Helper()
	spec := objectOf[*corev1.Service](t, r, "Service/"+name).Spec
	spec.Selector = nil
	return spec
}

func budgetSpecOf(t *testing.T, r *release, name string) policyv1.PodDisruptionBudgetSpec {
	t.Helper()
	spec := objectOf[*policyv1.PodDisruptionBudget](t, r, "PodDisruptionBudget/"+name).Spec
	spec.Selector = nil
	return spec
}

// policySpecOf returns a spec without the release in its selectors.
func policySpecOf(t *testing.T, r *release, name string) string {
	t.Helper()
	text := asYAML(t, objectOf[*networkingv1.NetworkPolicy](t, r, "NetworkPolicy/"+name).Spec)
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "app.kubernetes.io/instance: cellserver" {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// TestChartSentinels checks that what is about Sentinels selects their pods, and no server.
func TestChartSentinels(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"pair", "pair, all else"} {
		r := render(t, chartValues[values])
		pod, _ := serversOf(t, r)
		var sentinels *appsv1.StatefulSet
		selectors := map[string]*metav1.LabelSelector{}
		for name, o := range r.objects {
			if !strings.HasSuffix(name, sentinelSuffix) {
				continue
			}
			switch o := o.(type) {
			case *appsv1.StatefulSet:
				sentinels, selectors[name] = o, o.Spec.Selector
			case *corev1.Service:
				selectors[name] = &metav1.LabelSelector{MatchLabels: o.Spec.Selector}
			case *networkingv1.NetworkPolicy:
				selectors[name] = &o.Spec.PodSelector
			case *policyv1.PodDisruptionBudget:
				selectors[name] = o.Spec.Selector
			}
		}
		checkRestricted(t, sentinels.Spec.Template)
		for name, selector := range selectors {
			s, err := metav1.LabelSelectorAsSelector(selector)
			if err != nil || !s.Matches(labels.Set(sentinels.Spec.Template.Labels)) || s.Matches(labels.Set(pod.Labels)) {
				t.Errorf("%s: %s does not select the Sentinels, and only them: %v (%v)", values, name, s, err)
			}
		}
		if len(selectors) != 4 || !strings.Contains(r.notes, "sentinel get-master-addr-by-name cellserver") {
			t.Errorf("%s: %d objects, and the notes are\n%s", values, len(selectors), r.notes)
		}
	}
}

// TestChartOpensDoors checks that addresses for HTTP and gRPC that others can reach are ports of the pod and
// the Service, and that clients may use them.
func TestChartOpensDoors(t *testing.T) {
	t.Parallel()
	for values, want := range map[string][]string{
		"doors of the config": {"redis 6380", "grpc 8081", "http 6381"},
		"doors":               {"redis 6380", "redis-tls 6390", "grpc 6382", "grpcs 6384", "http 6381", "https 6383"},
		"xds":                 {"redis 6380", "grpc 6382"},
	} {
		r := render(t, chartValues[values])
		pod, _ := serversOf(t, r)
		var ports, open, allowed []string
		for _, p := range pod.Spec.Containers[0].Ports {
			ports = append(ports, fmt.Sprint(p.Name, " ", p.ContainerPort))
		}
		for _, p := range only[*corev1.Service](t, r).Spec.Ports {
			open = append(open, fmt.Sprint(p.TargetPort.StrVal, " ", p.Port))
			if p.Name != p.TargetPort.StrVal || p.AppProtocol == nil && !strings.HasPrefix(p.Name, "redis") {
				t.Errorf("%s: a mesh does not know what %s speaks", values, p.Name)
			}
		}
		for _, p := range only[*networkingv1.NetworkPolicy](t, r).Spec.Ingress[0].Ports {
			allowed = append(allowed, p.Port.StrVal)
		}
		same(t, values+": pod", ports, append(slices.Clone(want), "metrics 9380"))
		same(t, values+": Service", open, want)
		for i, name := range want {
			want[i], _, _ = strings.Cut(name, " ")
		}
		same(t, values+": NetworkPolicy", allowed, want)
	}
	if pod, _ := serversOf(t, render(t, "config: {http-addr: '127.0.0.1:6381'}")); len(pod.Spec.Containers[0].Ports) != 2 {
		t.Errorf("an address for the pod alone is open to others: %v", pod.Spec.Containers[0].Ports)
	}
}

// TestChartReachesXDS checks that the NetworkPolicy lets the pods ask the xDS server, and only it if its
// address is told.
func TestChartReachesXDS(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]int{
		chartValues["xds"]: 2, // and DNS
		"{doors: {grpc: 1}, xds: {addr: 'a:1'}, networkPolicy: {storeEgress: [{ports: [{port: 1}]}]}}": 2,
		"{replication: {enabled: true}, doors: {grpc: 1}, xds: {addr: 'a:1'}}":                         4,
		"{store: {url: 'redis://a:1'}, doors: {grpc: 1}, xds: {addr: 'a:1'}}":                          3,
		"doors: {grpc: 1}": 0,
	} {
		egress := objectOf[*networkingv1.NetworkPolicy](t, render(t, values), "NetworkPolicy/cellserver").Spec.Egress
		if len(egress) != want {
			t.Errorf("%s: %d rules, want %d: %+v", values, len(egress), want, egress)
		}
	}
	if rule := only[*networkingv1.NetworkPolicy](t, render(t, chartValues["xds"])).Spec.Egress[0]; rule.Ports[0].Port.IntVal != 18000 || len(rule.To) != 1 {
		t.Errorf("%+v", rule)
	}
}

// TestChartWithReplicationNeedsSleep checks that a pair is refused where a preStop cannot wait.
func TestChartWithReplicationNeedsSleep(t *testing.T) {
	t.Parallel()
	if _, err := renderFor(t, chartValues["pair"], "v1.29.9"); err == nil || !strings.Contains(err.Error(), "requires Kubernetes 1.30") {
		t.Errorf("got %v", err)
	}
}
