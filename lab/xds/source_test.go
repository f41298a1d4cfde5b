package xdstest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
)

// source is what others have written, which is fetched and not committed.
type source struct {
	variable string // of the environment, with the directory of a checkout
	module   string // without the variable, at the version of lab/go.mod or of what that requires
}

var (
	ratelimitSource = source{"ENVOY_RATELIMIT_DIR", "github.com/envoyproxy/ratelimit"}
	gatewaySource   = source{"ENVOY_GATEWAY_DIR", "github.com/envoyproxy/gateway"}
)

// dir returns where a source is, and skips the test where it cannot be fetched.
func (s source) dir(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv(s.variable); dir != "" {
		return dir
	}
	version, err := processtest.Command(t, "go", "list", "-m", "-f", "{{.Path}}@{{.Version}}", s.module).Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := processtest.Command(t, "go", "mod", "download", "-json", strings.TrimSpace(string(version)))
	cmd.Dir = t.TempDir() // no module's: it would write lab/go.sum
	out, err := cmd.Output()
	var downloaded struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &downloaded); jsonErr != nil || downloaded.Dir == "" {
		t.Logf("%s: %v %v %s", s.module, err, jsonErr, downloaded.Error)
		processtest.SkipWithout(t, s.module)
	}
	return downloaded.Dir
}

// glob returns files of a source.
func (s source) glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir(t), pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no %s: %v", s.module, pattern, err)
	}
	return files
}

// clone copies a source, in order to change it: modules are read-only.
func (s source) clone(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "clone")
	if err := os.CopyFS(dir, os.DirFS(s.dir(t))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// goIn runs a go command in a directory of a clone.
func goIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := processtest.Command(t, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod -pgo=off -trimpath")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
