package deploytest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	corev1 "k8s.io/api/core/v1"

	"cellserver/internal/base/buildinfo"
	"cellserver/internal/test/certtest"
	"cellserver/lab/internal/built"
)

// TestChartValuesAreExplained checks that each value has a comment, and builds the table in the chart's
// README from them. UPDATE_DOCS=1 rewrites it.
func TestChartValuesAreExplained(t *testing.T) {
	t.Parallel()
	var values yaml.Node
	if err := yaml.Unmarshal([]byte(read(t, chartDir+"/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	table := "| value | default | |\n| --- | --- | --- |\n" + valueRows(t, "", values.Content[0])
	readme := read(t, chartDir+"/README.md")
	head, _, found := strings.Cut(readme, "| value | default |")
	if !found && os.Getenv("UPDATE_DOCS") == "" {
		t.Fatal("the README has no table")
	}
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(filepath.Join(root, chartDir, "README.md"), []byte(head+table), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if head+table != readme {
		t.Error("the table in the chart's README is not that of values.yaml; update it with UPDATE_DOCS=1")
	}
}

// valueRows has a row for each value. A mapping with a comment of its own is one value, others are groups.
func valueRows(t *testing.T, group string, mapping *yaml.Node) string {
	t.Helper()
	var rows strings.Builder
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name := group + key.Value
		if key.HeadComment == "" {
			if value.Kind != yaml.MappingNode || len(value.Content) == 0 {
				t.Errorf("%s has no comment", name)
			}
			rows.WriteString(valueRows(t, name+".", value))
			continue
		}
		words := strings.Fields(strings.ReplaceAll(key.HeadComment, "#", ""))
		rows.WriteString("| `" + name + "` | " + initial(t, value) + " | " + strings.ReplaceAll(strings.Join(words, " "), "|", `\|`) + " |\n")
	}
	return rows.String()
}

// initial returns a default that fits into a line.
func initial(t *testing.T, value *yaml.Node) string {
	t.Helper()
	if value.Kind == yaml.ScalarNode && value.Value == "" {
		return ""
	}
	if value.Kind != yaml.ScalarNode && value.Style != yaml.FlowStyle {
		return "see values.yaml"
	}
	plain := *value
	plain.HeadComment, plain.LineComment, plain.FootComment = "", "", ""
	b, err := yaml.Marshal(&plain)
	if err != nil {
		t.Fatal(err)
	}
	return "`" + string(bytes.TrimSpace(b)) + "`"
}

func TestChartHasTheVersion(t *testing.T) {
	t.Parallel()
	var chart struct {
		Version    string `yaml:"version"`
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal([]byte(read(t, chartDir+"/Chart.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	if chart.Version != buildinfo.Version || chart.AppVersion != buildinfo.Version {
		t.Errorf("the chart is %+v, the server %s", chart, buildinfo.Version)
	}
}

// TestChartSettings checks that the server accepts the config file of each release, with its files.
func TestChartSettings(t *testing.T) {
	t.Parallel()
	binary := built.Server(t)
	for name, values := range chartValues {
		dir := t.TempDir()
		r := render(t, values)
		config := placeFiles(t, dir, r)
		pod, _ := serversOf(t, r)
		run(t, dir, binary, append([]string{"config", "check", "--config", config}, pod.Spec.Containers[0].Args...)...)
		if name != "defaults" {
			continue
		}
		s := startServer(t, binary, "127.0.0.1:0", "127.0.0.1:0", "CELLSERVER_CONFIG="+config, "CELLSERVER_LOG_FORMAT=text")
		host, port, _ := strings.Cut(s.addr, ":")
		got := run(t, dir, "redis-cli", "-h", host, "-p", port, "--no-auth-warning", "-a", serverPassword, "cl.throttle", "laoqian:reply", "15", "30", "60", "1")
		if strings.Join(strings.Fields(got), " ") != "0 16 15 -1 2" {
			t.Errorf("the call of the notes got %s", got)
		}
	}
}

// placeFiles writes the files of a pod, and returns the path of the config file.
func placeFiles(t *testing.T, dir string, r *release) string {
	t.Helper()
	ca := certtest.NewCA(t)
	cert, key := ca.Issue(t, "cellserver")
	files := map[string]string{
		"cellserver/requirepass": serverPassword, "cellserver/redis.password": serverPassword, "store/password": "x", "metrics/metrics-token": "x",
		"tls/tls.crt": string(cert), "tls/tls.key": string(key), "tls/ca.crt": string(ca.PEM), "store-ca/ca.crt": string(ca.PEM), "users/users.acl": "user default on nopass ~* +@all\n",
		"tokens/all": "0123456789abcdef default\n", "xds/tls.crt": string(cert), "xds/tls.key": string(key), "xds/ca.crt": string(ca.PEM),
		"replication/replica": replicaPassword, "replication/users.acl": rules(t),
	}
	for name, o := range r.objects {
		if c, ok := o.(*corev1.ConfigMap); ok && strings.HasSuffix(name, "-limits") {
			files["cellserver-limits/limits.yaml"] = c.Data["limits.yaml"]
		} else if ok && configFile(name, c) != "" {
			files["config.yaml"] = strings.NewReplacer("/run/secrets/", dir+"/", "/etc/", dir+"/", "/var/lib/", dir+"/lib-").Replace(configFile(name, c))
		}
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, text)
	}
	return filepath.Join(dir, "config.yaml")
}
