package check

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/redistest"
)

// TestTuningTranscripts runs the commands of docs/TUNING.md on real servers.
func TestTuningTranscripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster and sentinels")
	}
	processtest.Need(t, "redis-cli", "bash")
	t.Setenv("CELLSERVER_STORE_TIMEOUT", "30s") // the default may be too short on a busy machine
	binary := build(t)
	stores := map[string]func() string{
		"redis":          func() string { return "redis://127.0.0.1:" + redisOnTCP(t) },
		"redis-cluster":  func() string { return redistest.Cluster(t).URL() },
		"redis-sentinel": func() string { return redistest.Sentinels(t).URL() },
	}
	url := regexp.MustCompile(`--store (redis[a-z-]*)://\S+`)
	for _, f := range fences(t, "docs/TUNING.md") {
		if f.language != "console" {
			continue
		}
		first, rest, _ := strings.Cut(f.text, "\n")
		command, ok := strings.CutSuffix(strings.TrimPrefix(first, "$ "), " &")
		m := url.FindStringSubmatch(command)
		if !ok || m == nil || stores[m[1]] == nil {
			t.Fatalf("%s starts no server over a store that is not shown yet", first)
		}
		command = url.ReplaceAllString(command, "--store "+stores[m[1]]())
		delete(stores, m[1])
		s := start(t, "bash", "-c", "cd "+filepath.Dir(binary)+" && exec "+command)
		awaitReady(t, s)
		if got := transcript(t, t.TempDir(), rest, s.ports); got != rest {
			t.Errorf("over %s got\n%s\nwant\n%s", m[1], got, rest)
		}
	}
	if len(stores) > 0 {
		t.Errorf("not shown: %v", stores)
	}
}

// TestTuningSettings: the settings with which docs/TUNING.md begins are those of a server.
func TestTuningSettings(t *testing.T) {
	binary, checked := build(t), 0
	for _, f := range fences(t, "docs/TUNING.md") {
		if f.language == "yaml" {
			checked++
			dir := t.TempDir()
			text := strings.ReplaceAll(f.text, "/var/lib/cellserver", filepath.Join(dir, "data"))
			run(t, dir, binary, "config", "check", "--config", write(t, dir, "cellserver.yaml", text))
		}
	}
	if checked != 1 {
		t.Errorf("checked %d blocks, want one", checked)
	}
}

func awaitReady(t *testing.T, s server) {
	t.Helper()
	var err error
	if !patience.Until(func() bool {
		var response *http.Response
		if response, err = http.Get("http://127.0.0.1:" + s.metricsPort + "/readyz"); err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}) {
		t.Fatalf("the server is not ready: %v", err)
	}
}
