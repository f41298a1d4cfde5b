package deploytest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // a cluster's kinds, with their defaults
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	podsecurity "k8s.io/pod-security-admission/api"
	podsecuritypolicy "k8s.io/pod-security-admission/policy"

	"cellserver/lab/internal/built"
)

// manifests holds the objects of deploy/kubernetes, with a cluster's defaults.
type manifests struct {
	deployment *appsv1.Deployment
	config     *corev1.ConfigMap
	service    *corev1.Service
	secret     *corev1.Secret
	claim      *corev1.PersistentVolumeClaim
	network    *networkingv1.NetworkPolicy
	budget     *policyv1.PodDisruptionBudget
	monitor    *monitoringv1.PodMonitor
}

func readManifests(t *testing.T) *manifests {
	t.Helper()
	r := readObjects(t, manifestsDir, "cluster", "pair")
	return &manifests{
		deployment: only[*appsv1.Deployment](t, r),
		config:     only[*corev1.ConfigMap](t, r),
		service:    only[*corev1.Service](t, r),
		secret:     only[*corev1.Secret](t, r),
		claim:      only[*corev1.PersistentVolumeClaim](t, r),
		network:    only[*networkingv1.NetworkPolicy](t, r),
		budget:     only[*policyv1.PodDisruptionBudget](t, r),
		monitor:    parsed[monitoringv1.PodMonitor](t, r.custom["PodMonitor/cellserver"]),
	}
}

const manifestsDir = "deploy/kubernetes"

// readObjects reads the files of a folder and its folders, except for some folders and files.
func readObjects(t *testing.T, dir string, except ...string) *release {
	t.Helper()
	r := &release{objects: map[string]runtime.Object{}, custom: map[string][]byte{}}
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains(except, e.Name()):
			return filepath.SkipDir
		case e.IsDir() || slices.Contains(except, e.Name()):
			return nil
		}
		b, err := os.ReadFile(path)
		r.add(t, path, b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// decode rejects unknown and duplicate fields.
func decode(b []byte) (runtime.Object, error) {
	codecs := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	object, _, err := codecs.UniversalDeserializer().Decode(b, nil, nil)
	if err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	accessor.SetNamespace("limits") // as kubectl -n does
	legacyscheme.Scheme.Default(object)
	return object, nil
}

// validate validates an object as the API server does before storing it.
func validate(t *testing.T, object runtime.Object) field.ErrorList {
	t.Helper()
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, runtime.InternalGroupVersioner)
	if err != nil {
		t.Fatal(err)
	}
	switch o := internal.(type) {
	case *apps.StatefulSet:
		return appsvalidation.ValidateStatefulSet(o, pod.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
	case *batch.Job:
		// The API server makes a Job select its pods by UID.
		manual := true
		o.Spec.ManualSelector, o.Spec.Selector = &manual, &metav1.LabelSelector{MatchLabels: o.Spec.Template.Labels}
		return batchvalidation.ValidateJob(o, batchvalidation.JobValidationOptions{
			PodValidationOptions: pod.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil)})
	case *apps.Deployment:
		return appsvalidation.ValidateDeployment(o, pod.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
	case *core.ConfigMap:
		return corevalidation.ValidateConfigMap(o)
	case *core.Service:
		// The API server sets these before validation.
		single := core.IPFamilyPolicySingleStack
		o.Spec.IPFamilyPolicy, o.Spec.IPFamilies = &single, []core.IPFamily{core.IPv4Protocol}
		if o.Spec.ClusterIP == core.ClusterIPNone {
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
		return corevalidation.ValidateServiceCreate(o)
	case *core.Secret:
		return corevalidation.ValidateSecret(o)
	case *core.PersistentVolumeClaim:
		return corevalidation.ValidatePersistentVolumeClaim(o, corevalidation.PersistentVolumeClaimSpecValidationOptions{})
	case *networking.NetworkPolicy:
		return networkingvalidation.ValidateNetworkPolicy(o, networkingvalidation.NetworkPolicyValidationOptions{})
	case *policy.PodDisruptionBudget:
		return policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{})
	}
	t.Fatalf("no validation for a %T", internal)
	return nil
}

// TestManifestsAreValid checks each object as a cluster would, and pods against the restricted Pod Security
// Standard.
func TestManifestsAreValid(t *testing.T) {
	for dir, want := range map[string]int{manifestsDir: 7, clusterDir: 12, pairDir: 12} {
		var except []string
		if dir == manifestsDir {
			except = []string{"cluster", "pair"}
		}
		r := readObjects(t, dir, except...)
		if len(r.objects) != want {
			t.Errorf("%s: got %d objects, want %d", dir, len(r.objects), want)
		}
		for name, o := range r.objects {
			if errs := validate(t, o); len(errs) > 0 {
				t.Errorf("%s: %v", name, errs.ToAggregate())
			}
			switch o := o.(type) {
			case *appsv1.Deployment:
				checkRestricted(t, o.Spec.Template)
			case *appsv1.StatefulSet:
				checkRestricted(t, o.Spec.Template)
			case *batchv1.Job:
				checkRestricted(t, o.Spec.Template)
			}
		}
	}
}

// TestValidationFindsMistakes checks the validation itself.
func TestValidationFindsMistakes(t *testing.T) {
	deployment := read(t, "deploy/kubernetes/deployment.yaml")
	tests := []struct{ old, new, want string }{
		{"readinessProbe:", "readynessProbe:", `unknown field "spec.template.spec.containers[0].readynessProbe"`},
		{"type: Recreate", "type: Recreated", "spec.strategy"},
		{"cpu: \"2\"", "cpu: 2 cores", "quantities must match"},
		{"matchLabels: *labels", "matchLabels: {a: b}", "`selector` does not match template `labels`"},
		{"name: requirepass\n              mountPath", "name: password\n              mountPath", "volumeMounts[0].name: Not found"},
	}
	for _, tt := range tests {
		text := strings.Replace(deployment, tt.old, tt.new, 1)
		if text == deployment {
			t.Fatalf("no %q to replace", tt.old)
		}
		o, err := decode([]byte(text))
		if err == nil {
			err = validate(t, o).ToAggregate()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.new, err, tt.want)
		}
	}
}

// checkRestricted expects a pod to comply with the restricted Pod Security Standard.
func checkRestricted(t *testing.T, template corev1.PodTemplateSpec) {
	t.Helper()
	latest := podsecurity.LatestVersion()
	evaluator, err := podsecuritypolicy.NewEvaluator(podsecuritypolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range evaluator.EvaluatePod(podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: latest},
		&template.ObjectMeta, &template.Spec) {
		if !r.Allowed {
			t.Errorf("%s: %s", r.ForbiddenReason, r.ForbiddenDetail)
		}
	}
}

func TestManifestsAgree(t *testing.T) {
	m := readManifests(t)
	template := m.deployment.Spec.Template
	container := template.Spec.Containers[0]
	for what, selector := range map[string]*metav1.LabelSelector{
		"Service":             {MatchLabels: m.service.Spec.Selector},
		"NetworkPolicy":       &m.network.Spec.PodSelector,
		"PodDisruptionBudget": m.budget.Spec.Selector,
		"PodMonitor":          &m.monitor.Spec.Selector,
	} {
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil || s.Empty() || !s.Matches(labels.Set(template.Labels)) {
			t.Errorf("the %s does not select the pod (%v)", what, err)
		}
	}
	ports := map[string]bool{}
	for _, p := range container.Ports {
		ports[p.Name] = true
	}
	used := []string{m.service.Spec.Ports[0].TargetPort.StrVal, *m.monitor.Spec.PodMetricsEndpoints[0].Port}
	for _, rule := range m.network.Spec.Ingress {
		used = append(used, rule.Ports[0].Port.StrVal)
	}
	for _, port := range used {
		if !ports[port] {
			t.Errorf("the pod has no port %q", port)
		}
	}
	if job := template.Labels[m.monitor.Spec.JobLabel]; job != "cellserver" {
		t.Errorf("the job is %q, which the alert rules do not select", job)
	}
	volume := template.Spec.Volumes[0].Secret
	file := container.VolumeMounts[0].MountPath + "/requirepass"
	if volume.SecretName != m.secret.Name || m.secret.StringData["requirepass"] == "" || m.config.Data["CELLSERVER_REQUIREPASS_FILE"] != file {
		t.Errorf("the password is not where the server reads it: %s", m.config.Data["CELLSERVER_REQUIREPASS_FILE"])
	}
}

// TestPodsShareAVolume checks that a new pod loads what the last one kept, and never runs beside it.
func TestPodsShareAVolume(t *testing.T) {
	m := readManifests(t)
	spec := m.deployment.Spec.Template.Spec
	if *m.deployment.Spec.Replicas != 1 || m.deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("%d replicas, replaced by %s", *m.deployment.Spec.Replicas, m.deployment.Spec.Strategy.Type)
	}
	mounted := ""
	for _, v := range spec.Volumes {
		if v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != m.claim.Name {
			continue
		}
		for _, mount := range spec.Containers[0].VolumeMounts {
			if mount.Name == v.Name && !mount.ReadOnly {
				mounted = mount.MountPath
			}
		}
	}
	if dir := m.config.Data["CELLSERVER_DATA_DIR"]; dir == "" || dir != mounted {
		t.Errorf("the data directory is %q, the volume at %q", dir, mounted)
	}
	// The volume belongs to root, and the server creates its files as this user.
	if s := spec.SecurityContext; s.FSGroup == nil || *s.FSGroup != *s.RunAsGroup {
		t.Error("the server cannot write to the volume")
	}
}

func TestPodMonitorWithToken(t *testing.T) {
	m := parsed[monitoringv1.PodMonitor](t, []byte(withAuthorization(t, read(t, "deploy/kubernetes/monitoring/podmonitor.yaml"))))
	a := m.Spec.PodMetricsEndpoints[0].Authorization
	if a == nil || a.Credentials == nil || a.Credentials.Name != readManifests(t).secret.Name || a.Credentials.Key == "" {
		t.Errorf("the token is not in the server's secret: %+v", a)
	}
}

// TestPrometheusRule checks the command of deploy/README.md that turns the rules into an object.
func TestPrometheusRule(t *testing.T) {
	printed := regexp.MustCompile(`(?s)    (\{ printf .*; \}) \| kubectl`).FindStringSubmatch(read(t, "deploy/README.md"))
	if printed == nil {
		t.Fatal("no command")
	}
	r := parsed[monitoringv1.PrometheusRule](t, []byte(run(t, root, "sh", "-c", printed[1])))
	rules := 0
	for _, g := range r.Spec.Groups {
		rules += len(g.Rules)
	}
	if want := len(readRules(t)); r.Kind != "PrometheusRule" || r.Name == "" || rules != want {
		t.Errorf("a %s named %q of %d rules, want %d", r.Kind, r.Name, rules, want)
	}
}

func TestConfigMapAndImage(t *testing.T) {
	m := readManifests(t)
	binary := built.Server(t)
	help := run(t, "", binary, "--help")
	for name := range m.config.Data {
		if !isFlagVariable(help, name) {
			t.Errorf("%s is not the variable of a flag", name)
		}
	}
	checkImage(t, binary, m.deployment.Spec.Template.Spec.Containers[0].Image)
}

// checkImage expects the image to have the server's version; where it is from, lab/release/names.env says.
func checkImage(t *testing.T, binary, image string) {
	t.Helper()
	version := regexp.MustCompile(`^cellserver (\S+) `).FindStringSubmatch(run(t, "", binary, "--version"))
	if version == nil || path.Base(image) != "cellserver:"+version[1] {
		t.Errorf("the image is %s, the server's version %v", image, version)
	}
}
