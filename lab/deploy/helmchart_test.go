package deploytest

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const chartDir = "deploy/helm/cellserver"

// release holds objects by kind and name, in their declared versions with a cluster's defaults; those of the
// Prometheus operator as text; and a chart's notes.
type release struct {
	objects map[string]runtime.Object
	custom  map[string][]byte
	notes   string
}

// tryRender renders the chart as helm install does, with values in YAML.
func tryRender(t *testing.T, values string) (*release, error) {
	t.Helper()
	return renderFor(t, values, "v1.30.0")
}

func renderFor(t *testing.T, values, kubernetes string) (*release, error) {
	t.Helper()
	chart, err := loader.LoadDir(filepath.Join(root, chartDir))
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	options := common.ReleaseOptions{Name: "cellserver", Namespace: "limits", Revision: 1, IsInstall: true}
	cluster := common.DefaultCapabilities.Copy()
	cluster.KubeVersion = common.KubeVersion{Version: kubernetes, Major: "1", Minor: "30"}
	all, err := util.ToRenderValues(chart, given, options, cluster)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Engine{Strict: true}.RenderWithContext(t.Context(), chart, all)
	if err != nil {
		return nil, err
	}
	r := &release{objects: map[string]runtime.Object{}, custom: map[string][]byte{}}
	for path, text := range texts {
		if strings.HasSuffix(path, "NOTES.txt") {
			r.notes = text
			continue
		}
		for _, document := range bytes.Split([]byte(text), []byte("\n---\n")) {
			r.add(t, path, document)
		}
	}
	for name, object := range r.objects {
		if accessor, err := meta.Accessor(object); err != nil || accessor.GetLabels()["helm.sh/chart"] == "" {
			t.Errorf("%s lacks the chart's labels (%v)", name, err)
		}
	}
	return r, nil
}

func (r *release) add(t *testing.T, path string, document []byte) {
	t.Helper()
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, document)
	}
	name := head.Kind + "/" + head.Metadata.Name
	switch {
	case head.Kind == "": // only white space and comments
		return
	case strings.HasPrefix(head.APIVersion, "monitoring.coreos.com/"):
		r.custom[name] = document
		return
	}
	object, err := decode(document)
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, document)
	}
	r.objects[name] = object
}

func render(t *testing.T, values string) *release {
	t.Helper()
	r, err := tryRender(t, values)
	if err != nil {
		t.Fatalf("%v, of\n%s", err, values)
	}
	return r
}

// chartValues are releases as people make them.
var chartValues = map[string]string{
	"defaults": "",
	"store": `
replicas: 3
store: {url: "redis-cluster://valkey-0.valkey:6379,valkey-1.valkey:6379", existingSecret: valkey}
config: {on-store-error: local, local-share: 0.33}
networkPolicy: {storeEgress: [{to: [{podSelector: {matchLabels: {app.kubernetes.io/name: valkey}}}], ports: [{port: valkey}]}]}
resources: {requests: {cpu: "1", memory: 512Mi}, limits: {cpu: "2", memory: 512Mi}}
terminationGracePeriodSeconds: 30
`,
	"store over tls": `
replicas: 2
store: {url: "rediss://cellserver@redis.example:6379/0", existingSecret: redis, caSecret: redis-ca}
`,
	"tls and monitoring": `
tls: {existingSecret: cellserver-tls, clientCA: true}
auth: {existingSecret: passwords, secretKey: redis.password}
metrics:
  existingSecret: metrics
  allowedHosts: [localhost, cellserver.limits]
  podMonitor: {enabled: true, labels: {release: prometheus}}
  prometheusRule: {enabled: true, labels: {release: prometheus}, runbookBase: https://git.example/limits/}
limits:
  login: {windows: [{max_burst: 4, count: 5, period: 1m}, {max_burst: 99, count: 100, period: 24h}]}
  export: {windows: [{capacity: 1, count: 1, period: 3600}], shadow: true}
`,
	"only tls, nothing kept": `
fullnameOverride: limiter
tls: {existingSecret: cellserver-tls, port: 6379, only: true}
persistence: {enabled: false}
service: {type: LoadBalancer, annotations: {example.com/internal: "true"}}
networkPolicy: {enabled: false}
podDisruptionBudget: {enabled: false}
`,
	"all else": `
image: {repository: registry.example/cellserver, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
imagePullSecrets: [{name: registry}]
config: {maxclients: 20000, maxmemory-policy: noeviction, max-command-bytes: 1048576, aclfile: /etc/users/users.acl, log-format: text, no-dashboard: true}
extraArgs: [--log-level=debug]
extraEnv: [{name: GOGC, value: "50"}]
extraVolumes: [{name: users, secret: {secretName: users, defaultMode: 288}}]
extraVolumeMounts: [{name: users, mountPath: /etc/users, readOnly: true}]
persistence: {size: 20Gi, storageClass: fast}
podDisruptionBudget: {maxUnavailable: 1}
podLabels: {team: limits}
podAnnotations: {example.com/note: "yes"}
priorityClassName: high
nodeSelector: {disk: ssd}
tolerations: [{key: limits, operator: Exists}]
affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: b}}}]}}
topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}]
`,
	"a claim that is there": "persistence: {existingClaim: kept}",
	"doors of the config":   "config: {http-addr: '0.0.0.0:6381', grpc-addr: ':8081'}",
	"doors": `
tls: {existingSecret: cellserver-tls, clientCA: true}
doors: {http: 6381, https: 6383, grpc: 6382, grpcs: 6384, existingSecret: tokens, secretKey: all}
`,
	"xds": `
doors: {grpc: 6382}
xds: {addr: "control-plane.mesh:18000", nodeId: cellserver, existingSecret: cellserver-xds}
networkPolicy: {xdsEgress: [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: mesh}}}], ports: [{port: 18000}]}]}
`,
	"pair": "{replication: {enabled: true}, metrics: {podMonitor: {enabled: true}}}",
	"pair, all else": `
fullnameOverride: limiter
replicas: 2
replication: {enabled: true, existingSecret: replication, maxLag: 5s, sentinel: {image: "registry.example/redis:7.0.15", resources: {requests: {memory: 32Mi}, limits: {memory: 32Mi}}}}
auth: {existingSecret: passwords, secretKey: redis.password}
config: {min-replicas-to-write: 1, min-replicas-max-lag: 2s, http-addr: "0.0.0.0:6381"}
limits: {login: {windows: [{max_burst: 4, count: 5, period: 1m}]}}
persistence: {enabled: false}
networkPolicy: {clients: []}
imagePullSecrets: [{name: registry}]
priorityClassName: high
nodeSelector: {disk: ssd}
tolerations: [{key: limits, operator: Exists}]
affinity: {nodeAffinity: {}}
podDisruptionBudget: {maxUnavailable: 1}
`,
}

func TestChartLint(t *testing.T) {
	t.Parallel()
	for name, values := range chartValues {
		given := map[string]any{}
		if err := yaml.Unmarshal([]byte(values), &given); err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.RunAll(filepath.Join(root, chartDir), given, "limits").Messages {
			if m.Err.Error() != "icon is recommended" {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}
