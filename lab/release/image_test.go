package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"cellserver/internal/base/buildinfo"
	"cellserver/internal/test/processtest"
)

// TestImageRuns: podman starts the image with a read-only root and without capabilities.
func TestImageRuns(t *testing.T) {
	t.Parallel()
	needRoot(t)
	processtest.Need(t, "podman")
	cli := processtest.Need(t, "redis-cli")
	archive := artifact(t, "cellserver_*_image.tar")
	dir := t.TempDir()
	podman := func(args ...string) []string {
		// crun refuses a mixture of both versions of cgroups; in the mount namespace there are only those of
		// version 2.
		return append([]string{"--mount", "sh", "-c", `umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && exec podman "$@"`, "podman",
			"--root=" + filepath.Join(dir, "root"), "--runroot=" + filepath.Join(dir, "run"), "--storage-driver=vfs", "--cgroup-manager=cgroupfs"}, args...)
	}
	must(t, "unshare", podman("load", "--input", archive)...)
	pidFile := filepath.Join(dir, "pid")
	began := time.Now()
	p := processtest.Start(t, processtest.Command(t, "unshare", podman("run", "--rm", "--pidfile="+pidFile, "--read-only", "--cap-drop=all",
		"--network=none", "--cgroups=disabled", "--ulimit=nofile=16384:16384", "--ulimit=nproc=1024:1024", published("IMAGE")+":"+imageVersion(t))...))
	var pid string
	p.Eventually(t, "start", func() bool {
		b, _ := os.ReadFile(pidFile)
		pid = strings.TrimSpace(string(b))
		return pid != "" || p.HasExited()
	})
	redis := func(args ...string) string {
		out, _ := processtest.Command(t, "nsenter", append([]string{"--target", pid, "--net", "--", cli, "-e", "-p", "6380"}, args...)...).CombinedOutput()
		return string(out)
	}
	p.Eventually(t, "answer", func() bool { return redis("PING") == "PONG\n" || p.HasExited() })
	t.Logf("from podman run to the first reply: %s", time.Since(began))
	if got := redis("CL.THROTTLE", "user123", "15", "30", "60"); got != firstReply {
		t.Errorf("the README's first call returns %q", got)
	}
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil || !strings.Contains(string(status), "\nUid:\t65532\t65532\t65532\t65532\n") {
		t.Errorf("not user 65532: %s, %v", status, err)
	}
}

func imageVersion(t *testing.T) string {
	t.Helper()
	var metadata struct{ Version string }
	if err := readJSON(filepath.Join(dist(t), "metadata.json"), &metadata); err != nil {
		t.Fatal(err)
	}
	return metadata.Version
}

// TestPush: a registry has the image for both architectures, and it is whole.
func TestPush(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/limits/cellserver"
	if err := pushImage(t.Context(), dist(t), repository); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(repository + ":" + imageVersion(t))
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Annotations["org.opencontainers.image.title"] != "cellserver" {
		t.Errorf("annotations %q", manifest.Annotations)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image)
	}
	if slices.Sort(platforms); !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("platforms %q", platforms)
	}
}

// checkImage compares an image with what the Dockerfile says, and looks at its layer.
func checkImage(t *testing.T, image v1.Image) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	dockerfile := string(b)
	for _, want := range []string{
		"USER " + config.Config.User,
		"ENV " + strings.Join(config.Config.Env, " "),
		"HEALTHCHECK --interval=" + config.Config.Healthcheck.Interval.String() + " --timeout=" + config.Config.Healthcheck.Timeout.String() +
			" --start-period=" + strings.TrimSuffix(config.Config.Healthcheck.StartPeriod.String(), "0s") + " CMD " + quoted(t, config.Config.Healthcheck.Test[1:]),
		"ENTRYPOINT " + quoted(t, config.Config.Entrypoint),
	} {
		if !strings.Contains(dockerfile, "\n"+want+"\n") {
			t.Errorf("the image has %s, and the Dockerfile not", want)
		}
	}
	for port := range config.Config.ExposedPorts {
		if !regexp.MustCompile(`(?m)^EXPOSE.* ` + strings.TrimSuffix(port, "/tcp") + `\b`).MatchString(dockerfile) {
			t.Errorf("the image exposes %s, and the Dockerfile does not", port)
		}
	}
	labels := config.Config.Labels
	if labels["org.opencontainers.image.title"] != "cellserver" || !strings.HasPrefix(labels["org.opencontainers.image.version"], buildinfo.Version) ||
		len(labels["org.opencontainers.image.revision"]) != 40 {
		t.Errorf("labels %q", labels)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var names []string
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	if want := []string{"cellserver", "bin/", "bin/ratelimit", "licenses/", "licenses/LICENSE", "licenses/THIRD_PARTY_LICENSES", "var/", "var/lib/", "var/lib/cellserver/"}; !slices.Equal(names, want) {
		t.Errorf("the layer has %q, not %q", names, want)
	}
}

func quoted(t *testing.T, words []string) string {
	t.Helper()
	b, err := json.Marshal(words)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), ",", ", ")
}
