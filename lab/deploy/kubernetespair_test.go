package deploytest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"cellserver/lab/internal/built"
)

const pairDir = "deploy/kubernetes/pair"

func TestPairManifestsAgree(t *testing.T) {
	all := readObjects(t, pairDir)
	servers := objectOf[*appsv1.StatefulSet](t, all, "StatefulSet/cellserver").Spec
	sentinels := objectOf[*appsv1.StatefulSet](t, all, "StatefulSet/cellserver-sentinel").Spec
	if *servers.Replicas != 2 || *sentinels.Replicas != 3 || servers.PodManagementPolicy != appsv1.ParallelPodManagement {
		t.Errorf("%d servers and %d Sentinels, that start by %s", *servers.Replicas, *sentinels.Replicas, servers.PodManagementPolicy)
	}
	monitor := parsed[monitoringv1.PodMonitor](t, all.custom["PodMonitor/cellserver"])
	for _, set := range []struct {
		spec  appsv1.StatefulSetSpec
		other map[string]string
		name  string
	}{{servers, sentinels.Template.Labels, "cellserver"}, {sentinels, servers.Template.Labels, "cellserver-sentinel"}} {
		policy := objectOf[*networkingv1.NetworkPolicy](t, all, "NetworkPolicy/"+set.name)
		service := objectOf[*corev1.Service](t, all, "Service/"+set.name)
		selectors := []*metav1.LabelSelector{objectOf[*policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget/"+set.name).Spec.Selector,
			&policy.Spec.PodSelector, {MatchLabels: service.Spec.Selector}}
		if set.name == "cellserver" {
			selectors = append(selectors, &monitor.Spec.Selector)
		}
		for _, s := range selectors {
			selector, err := metav1.LabelSelectorAsSelector(s)
			if err != nil || selector.Empty() || !selector.Matches(labels.Set(set.spec.Template.Labels)) || selector.Matches(labels.Set(set.other)) {
				t.Errorf("%v does not select the pods of %s, and only them (%v)", s, set.name, err)
			}
		}
		if set.spec.ServiceName != service.Name || service.Spec.ClusterIP != "None" || !service.Spec.PublishNotReadyAddresses {
			t.Errorf("the pods of %s have no names before they are ready: %+v", set.name, service.Spec)
		}
		checkPorts(t, set.spec.Template.Spec, service, policy)
		checkEntry(t, policy.Spec.Ingress[0], map[string]string{"cellserver-client": "true"})
		checkEntry(t, policy.Spec.Ingress[1], servers.Template.Labels, sentinels.Template.Labels)
		checkPairSecrets(t, all, set.spec.Template.Spec)
	}
	checkPodNames(t, all)
	checkImage(t, built.Server(t), servers.Template.Spec.Containers[0].Image)
	if handover := servers.Template.Spec.Containers[1].Image; handover != sentinels.Template.Spec.Containers[0].Image {
		t.Errorf("there are two images of Redis, one of them %s", handover)
	}
	grace := *servers.Template.Spec.TerminationGracePeriodSeconds
	if wait := servers.Template.Spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds; wait < 10 || grace < wait+30 {
		t.Errorf("a server waits %d of %d seconds for a failover", wait, grace)
	}
}

// checkPorts expects a pod to have the ports of its Service and of its NetworkPolicy's first rules.
func checkPorts(t *testing.T, pod corev1.PodSpec, service *corev1.Service, policy *networkingv1.NetworkPolicy) {
	t.Helper()
	used := []string{service.Spec.Ports[0].TargetPort.StrVal}
	for _, rule := range policy.Spec.Ingress {
		used = append(used, rule.Ports[0].Port.StrVal)
	}
	for _, port := range used {
		if !slices.ContainsFunc(pod.Containers[0].Ports, func(c corev1.ContainerPort) bool { return c.Name == port }) {
			t.Errorf("the pods of %s have no port %s", service.Name, port)
		}
	}
}

// checkPairSecrets expects the files with passwords to be of the two secrets.
func checkPairSecrets(t *testing.T, all *release, pod corev1.PodSpec) {
	t.Helper()
	secret := objectOf[*corev1.Secret](t, all, "Secret/cellserver-replication").StringData
	config := objectOf[*corev1.ConfigMap](t, all, "ConfigMap/cellserver").Data
	paths := []string{config["CELLSERVER_REQUIREPASS_FILE"], config["CELLSERVER_ACLFILE"], config["CELLSERVER_REPL_PASSWORD_FILE"]}
	for i, c := range pod.Containers {
		files := map[string]bool{}
		for _, mount := range c.VolumeMounts {
			for _, v := range pod.Volumes {
				switch {
				case v.Name != mount.Name || v.Secret == nil:
				case v.Secret.SecretName == "cellserver":
					files[mount.MountPath+"/requirepass"] = true
				case v.Secret.SecretName == "cellserver-replication":
					for key := range secret {
						files[mount.MountPath+"/"+key] = true
					}
				}
			}
		}
		if i > 0 || c.Name == "sentinel" {
			paths = nil
		}
		for _, e := range c.Env {
			if strings.HasSuffix(e.Name, "_FILE") {
				paths = append(paths, e.Value)
			}
		}
		for _, path := range paths {
			if !files[path] {
				t.Errorf("%s reads %s, which no secret has", c.Name, path)
			}
		}
	}
	checkUsers(t, secret["users.acl"])
	for user, line := range map[string]string{"replica": "user replica on >%s ", "sentinel": "user sentinel on >%s "} {
		if !strings.Contains(secret["users.acl"], fmt.Sprintf(line, secret[user])) {
			t.Errorf("the user %s has not the password of the Secret", user)
		}
	}
}

// checkPodNames expects servers and Sentinels to be called by the names that their Services give them.
func checkPodNames(t *testing.T, all *release) {
	t.Helper()
	servers, sentinels := []string{"cellserver-0.cellserver", "cellserver-1.cellserver"}, ""
	for i := range 3 {
		sentinels += fmt.Sprintf(" cellserver-sentinel-%d.cellserver-sentinel", i)
	}
	for _, set := range []string{"cellserver", "cellserver-sentinel"} {
		for _, c := range objectOf[*appsv1.StatefulSet](t, all, "StatefulSet/"+set).Spec.Template.Spec.Containers {
			for _, e := range c.Env {
				if e.Name == "SERVERS" && e.Value != strings.Join(servers, " ") || e.Name == "SENTINELS" && e.Value != sentinels[1:] {
					t.Errorf("%s: %s is %q", c.Name, e.Name, e.Value)
				}
			}
		}
	}
	config := objectOf[*corev1.ConfigMap](t, all, "ConfigMap/cellserver-pair").Data
	for i, name := range servers {
		got := *parsed[map[string]string](t, []byte(config[fmt.Sprintf("cellserver-%d.yaml", i)]))
		if got["replica-announce-ip"] != name || got["peer"] != servers[1-i]+":6380" {
			t.Errorf("%s is told %v", name, got)
		}
	}
}

// TestPairScripts checks that the manifests, the chart and Compose have the same scripts.
func TestPairScripts(t *testing.T) {
	t.Parallel()
	all := readObjects(t, pairDir)
	for name, script := range map[string]string{
		objectOf[*corev1.ConfigMap](t, all, "ConfigMap/cellserver-sentinel").Data["sentinel.sh"]: composeDir + "/sentinel.sh",
		objectOf[*corev1.ConfigMap](t, all, "ConfigMap/cellserver-pair").Data["handover.sh"]:     chartDir + "/files/handover.sh",
	} {
		if text := read(t, script); name != text {
			t.Errorf("a ConfigMap has not the text of %s:\n%s", script, name)
		}
	}
	if read(t, composeDir+"/sentinel.sh") != read(t, chartDir+"/files/sentinel.sh") {
		t.Error("the chart has another script for Sentinels")
	}
}

// TestPairSecretOfReadme checks the command of deploy/README.md that creates the secret.
func TestPairSecretOfReadme(t *testing.T) {
	t.Parallel()
	printed := regexp.MustCompile(`(?s)\n    (replica=.*?\n    END\n)`).FindStringSubmatch(read(t, "deploy/README.md"))
	if printed == nil {
		t.Fatal("no command")
	}
	command := strings.NewReplacer("\n    ", "\n", "kubectl -n limits create -f -", "cat").Replace(printed[1])
	object, err := decode([]byte(run(t, root, "sh", "-c", command)))
	if err != nil {
		t.Fatal(err)
	}
	secret := object.(*corev1.Secret)
	checkUsers(t, secret.StringData["users.acl"])
	for _, user := range []string{"replica", "sentinel"} {
		if password := secret.StringData[user]; secret.Name != "cellserver-replication" || len(password) != 48 ||
			!strings.Contains(secret.StringData["users.acl"], "user "+user+" on >"+password+" ") {
			t.Errorf("%s: the password of %s is %q", secret.Name, user, password)
		}
	}
}

// TestKubernetesPairRuns runs what the pods run, with addresses in place of names. The leader's pod ends as
// an update or a drain ends it.
func TestKubernetesPairRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for failovers")
	}
	t.Parallel()
	all := readObjects(t, pairDir)
	p := newPair(t, rules(t))
	for i := range 2 {
		p.places = append(p.places, fmt.Sprintf("cellserver-%d.cellserver", i), p.server(i))
	}
	for i := range 3 {
		p.places = append(p.places, fmt.Sprintf("cellserver-sentinel-%d.cellserver-sentinel", i), p.sentinel(i))
	}
	p.runs = func(name string) container { return podContainer(t, all, p, name) }
	p.check(t, func(leader int) {
		pod := objectOf[*appsv1.StatefulSet](t, all, "StatefulSet/cellserver").Spec.Template.Spec
		probe := objectOf[*appsv1.StatefulSet](t, all, "StatefulSet/cellserver-sentinel").Spec.Template.Spec.Containers[0].ReadinessProbe
		places := []string{"/run/secrets/cellserver", p.dir, "/run/secrets/replication", p.dir, "localhost", p.server(leader)}
		if out, err := p.command(t, container{command: probe.Exec.Command, places: places}, p.sentinel(0)).CombinedOutput(); err != nil {
			t.Errorf("a Sentinel is not ready: %v: %s", err, out)
		}
		script := write(t, p.dir, "handover.sh", strings.NewReplacer(append(places, p.places...)...).Replace(
			objectOf[*corev1.ConfigMap](t, all, "ConfigMap/cellserver-pair").Data["handover.sh"]))
		c := container{command: pod.Containers[1].Command, env: map[string]string{}, places: append(places, "/etc/cellserver/handover.sh", script)}
		for _, e := range pod.Containers[1].Env {
			c.env[e.Name] = e.Value
		}
		handover := p.start(t, c, p.server(leader))
		handover.Logged(t, "waiting")
		if code := handover.Stop(t, syscall.SIGTERM); code != 0 {
			t.Errorf("it ended with %d: %s", code, handover.Log.String())
		}
		p.sentinels[0].Eventually(t, "have handed over", func() bool { return p.replication(t, leader, "role") == "slave" })
	})
}

// podContainer returns the first container of a pod, sentinel-0 or cellserver-0.
func podContainer(t *testing.T, all *release, p *pair, name string) container {
	t.Helper()
	pod := name
	if strings.HasPrefix(name, "sentinel-") {
		pod = "cellserver-" + name
	}
	set := pod[:strings.LastIndex(pod, "-")]
	data := p.data(t, name)
	first := objectOf[*appsv1.StatefulSet](t, all, "StatefulSet/"+set).Spec.Template.Spec.Containers[0]
	c := container{command: first.Command, env: map[string]string{},
		places: []string{"/run/secrets/cellserver", p.dir, "/run/secrets/replication", p.dir, "/var/lib/cellserver", data}}
	for _, from := range first.EnvFrom {
		for variable, value := range objectOf[*corev1.ConfigMap](t, all, "ConfigMap/"+from.ConfigMapRef.Name).Data {
			c.env[variable] = value
		}
	}
	for _, e := range first.Env {
		c.env[e.Name] = strings.ReplaceAll(e.Value, "$(POD_NAME)", pod)
	}
	if set == "cellserver" {
		text := objectOf[*corev1.ConfigMap](t, all, "ConfigMap/cellserver-pair").Data[pod+".yaml"]
		write(t, data, pod+".yaml", strings.NewReplacer(p.places...).Replace(text))
		c.places = append(c.places, "/etc/cellserver", data)
		return c
	}
	c.places = append(c.places, "/data", data)
	text := objectOf[*corev1.ConfigMap](t, all, "ConfigMap/cellserver-sentinel").Data["sentinel.sh"]
	write(t, data, "sentinel.sh", strings.NewReplacer(append(c.places, p.places...)...).Replace(text))
	c.places = append(c.places, "/etc/sentinel", data)
	return c
}
