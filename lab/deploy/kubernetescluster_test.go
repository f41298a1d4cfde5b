package deploytest

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"cellserver/lab/internal/built"
)

const clusterDir = "deploy/kubernetes/cluster"

func objectOf[T runtime.Object](t *testing.T, r *release, name string) T {
	t.Helper()
	object, ok := r.objects[name].(T)
	if !ok {
		t.Fatalf("no %s", name)
	}
	return object
}

func TestClusterManifestsAgree(t *testing.T) {
	all := readObjects(t, clusterDir)
	nodes := objectOf[*appsv1.StatefulSet](t, all, "StatefulSet/valkey").Spec
	job := objectOf[*batchv1.Job](t, all, "Job/valkey-init").Spec.Template
	servers := objectOf[*appsv1.Deployment](t, all, "Deployment/cellserver").Spec
	if *nodes.Replicas != 6 || *servers.Replicas != 3 || servers.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
		t.Errorf("%d nodes and %d servers, of which an update takes %v away", *nodes.Replicas, *servers.Replicas, servers.Strategy)
	}
	monitor := parsed[monitoringv1.PodMonitor](t, all.custom["PodMonitor/cellserver"])
	for _, pod := range []struct {
		template corev1.PodTemplateSpec
		name     string
	}{{nodes.Template, "valkey"}, {servers.Template, "cellserver"}} {
		budget := objectOf[*policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget/"+pod.name)
		policy := objectOf[*networkingv1.NetworkPolicy](t, all, "NetworkPolicy/"+pod.name)
		service := objectOf[*corev1.Service](t, all, "Service/"+pod.name)
		selectors := []*metav1.LabelSelector{budget.Spec.Selector, &policy.Spec.PodSelector, {MatchLabels: service.Spec.Selector}}
		if pod.name == "cellserver" {
			selectors = append(selectors, &monitor.Spec.Selector)
		}
		for _, s := range selectors {
			selector, err := metav1.LabelSelectorAsSelector(s)
			if err != nil || selector.Empty() || !selector.Matches(labels.Set(pod.template.Labels)) || selector.Matches(labels.Set(job.Labels)) {
				t.Errorf("%v does not select the pods of %s, and only them (%v)", s, pod.name, err)
			}
		}
		for _, p := range service.Spec.Ports {
			if !slices.ContainsFunc(pod.template.Spec.Containers[0].Ports, func(c corev1.ContainerPort) bool { return c.Name == p.TargetPort.StrVal }) {
				t.Errorf("the pods of %s have no port %s", pod.name, p.TargetPort.StrVal)
			}
		}
		if budget.Spec.MaxUnavailable.IntValue() != 1 {
			t.Errorf("%v of %s may be drained at once", budget.Spec.MaxUnavailable, pod.name)
		}
	}
	checkEntry(t, objectOf[*networkingv1.NetworkPolicy](t, all, "NetworkPolicy/valkey").Spec.Ingress[0], servers.Template.Labels, job.Labels, nodes.Template.Labels)
	if s := objectOf[*corev1.Service](t, all, "Service/valkey"); nodes.ServiceName != s.Name || s.Spec.ClusterIP != "None" || !s.Spec.PublishNotReadyAddresses {
		t.Errorf("the nodes have no names before they are ready: %+v", s.Spec)
	}
	checkSecrets(t, objectOf[*corev1.Secret](t, all, "Secret/valkey"), objectOf[*corev1.ConfigMap](t, all, "ConfigMap/cellserver").Data, servers.Template.Spec)
	checkImage(t, built.Server(t), servers.Template.Spec.Containers[0].Image)
}

// checkEntry expects a rule to let pods with each of these labels in.
func checkEntry(t *testing.T, rule networkingv1.NetworkPolicyIngressRule, pods ...map[string]string) {
	t.Helper()
	for _, pod := range pods {
		if !slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool {
			selector, err := metav1.LabelSelectorAsSelector(peer.PodSelector)
			return err == nil && selector.Matches(labels.Set(pod))
		}) {
			t.Errorf("%v may not enter", pod)
		}
	}
}

// checkSecrets expects the files with passwords to be where the server reads them.
func checkSecrets(t *testing.T, secret *corev1.Secret, config map[string]string, pod corev1.PodSpec) {
	t.Helper()
	for variable, want := range map[string]string{"CELLSERVER_REQUIREPASS_FILE": "cellserver/requirepass", "CELLSERVER_STORE_PASSWORD_FILE": secret.Name + "/password"} {
		found := ""
		for _, v := range pod.Volumes {
			for _, mount := range pod.Containers[0].VolumeMounts {
				if mount.Name == v.Name && filepath.Dir(config[variable]) == mount.MountPath {
					found = v.Secret.SecretName + "/" + filepath.Base(config[variable])
				}
			}
		}
		if found != want {
			t.Errorf("%s is %q of a secret, want %q", variable, found, want)
		}
	}
	if secret.StringData["password"] == "" {
		t.Error("the example of a secret has no password")
	}
}

// TestKubernetesClusterRuns runs what the pods run: the nodes, the Job, three cellservers, and all nodes
// again at other addresses.
func TestKubernetesClusterRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster, twice")
	}
	t.Parallel()
	all := readObjects(t, clusterDir)
	config := objectOf[*corev1.ConfigMap](t, all, "ConfigMap/valkey").Data
	node := objectOf[*appsv1.StatefulSet](t, all, "StatefulSet/valkey").Spec.Template.Spec.Containers[0]
	job := objectOf[*batchv1.Job](t, all, "Job/valkey-init").Spec.Template.Spec.Containers[0]
	f := newFleet(t)
	passwords := filepath.Dir(write(t, t.TempDir(), "password", fleetPassword))
	places := func(conf string) *strings.Replacer {
		return strings.NewReplacer("/etc/valkey/valkey.conf", conf, "/etc/valkey", f.dir, "/run/secrets/valkey", passwords, "6379", f.port)
	}
	do := func(i int, command []string) {
		t.Helper()
		if out, err := f.command(t, i, slices.Clone(command)...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", command, err, out)
		}
	}
	f.places = places("")
	for _, name := range []string{"meet.sh", "create.sh"} {
		write(t, f.dir, name, f.places.Replace(config[name]))
	}
	// start starts the nodes at addresses from one on. Each finds those that were started before it.
	start := func(first int) {
		hosts := ""
		for i := range 6 {
			conf := f.config(t, first+i, config["valkey.conf"])
			f.places = places(conf)
			write(t, f.dir, "start.sh", f.places.Replace(config["start.sh"]))
			f.start(t, f.command(t, first+i, slices.Clone(node.Command)...))
			hosts += f.address(first+i) + " valkey-" + strconv.Itoa(i) + ".valkey\n"
			write(t, f.dir, "hosts", hosts)
			do(first+i, node.Lifecycle.PostStart.Exec.Command)
			do(first+i, node.ReadinessProbe.Exec.Command)
		}
	}
	start(11)
	for range 2 { // the second finds a cluster
		do(0, job.Command)
		f.checkCluster(t, 11)
	}
	f.checkSettings(t, 11)
	if err := f.clusterClient(t, 11, 12).Set(t.Context(), "kept", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	checkFleetOfServers(t, podEnvironment(t, all, f), map[string]string{
		"/run/secrets/cellserver/requirepass": serverPassword, "/run/secrets/valkey/password": fleetPassword})

	f.stop(t)
	start(21)
	f.checkCluster(t, 21)
	if got, err := f.clusterClient(t, 21, 22).Get(t.Context(), "kept").Result(); got != "1" {
		t.Errorf("after a restart of all nodes at other addresses there is %q (%v)", got, err)
	}
}

// podEnvironment returns the environment of cellserver's pods, with the addresses of nodes in place of their
// names.
func podEnvironment(t *testing.T, all *release, f *fleet) (env []string) {
	t.Helper()
	for name, value := range objectOf[*corev1.ConfigMap](t, all, "ConfigMap/cellserver").Data {
		switch name {
		case "CELLSERVER_ADDR", "CELLSERVER_METRICS_ADDR", "CELLSERVER_LOG_FORMAT": // the test's own
		default:
			env = append(env, name+"="+value)
		}
	}
	for i := range env {
		for node := range 6 {
			env[i] = strings.ReplaceAll(env[i], "valkey-"+strconv.Itoa(node)+".valkey", f.address(11+node))
		}
		env[i] = strings.ReplaceAll(env[i], "6379", f.port)
	}
	return env
}
