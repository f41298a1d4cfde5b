package deploytest

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
	"cellserver/lab/internal/built"
)

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, dir, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run returns the output of a command, which must succeed.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := processtest.Command(t, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestMain(m *testing.M) {
	slog.SetLogLoggerLevel(slog.LevelWarn) // Helm logs every link in a chart
	os.Exit(built.Main(m))
}

type server struct {
	*processtest.Process
	addr, metrics string
}

func startServer(t *testing.T, binary, addr, metrics string, env ...string) *server {
	t.Helper()
	cmd := processtest.Command(t, binary)
	cmd.Env = append(append(os.Environ(), "CELLSERVER_ADDR="+addr, "CELLSERVER_METRICS_ADDR="+metrics, "CELLSERVER_MAXMEMORY=900mb"), env...)
	s := &server{Process: processtest.Start(t, cmd)}
	ready := regexp.MustCompile(`msg=ready .*tcp=(\S+) (?:.* )?metrics=(\S+)`)
	s.Eventually(t, "be ready", func() bool {
		if m := ready.FindStringSubmatch(s.Log.String()); m != nil {
			s.addr, s.metrics = m[1], m[2]
		}
		return s.addr != "" || s.HasExited()
	})
	if s.HasExited() {
		t.Fatalf("cellserver ended: %s", s.Log.String())
	}
	return s
}

// isFlagVariable reports whether a variable sets a flag in the server's --help.
func isFlagVariable(help, name string) bool {
	flag, ours := strings.CutPrefix(name, "CELLSERVER_")
	flag = strings.ToLower(strings.ReplaceAll(flag, "_", "-"))
	return ours && regexp.MustCompile(`(?m)^ .*--`+regexp.QuoteMeta(flag)+`\b[^-]`).MatchString(help)
}
