package cellserver_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cellserver/adapters/go/internal/servertest"
)

// times are those of headers, which depend on how fast a test runs.
var times = regexp.MustCompile(`(;t=|Retry-After: )\d+`)

func statusLine(status int, headers string) string {
	return fmt.Sprint(status, " ", times.ReplaceAllString(headers, "${1}T"))
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func fences(t *testing.T, language string) (texts []string) {
	t.Helper()
	block := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$")
	for _, m := range block.FindAllStringSubmatch(read(t, "README.md"), -1) {
		texts = append(texts, m[1])
	}
	if len(texts) == 0 {
		t.Fatalf("README.md has no %s", language)
	}
	return texts
}

// TestReadmeCode compares the README's code with the program and the examples, which compile.
func TestReadmeCode(t *testing.T) {
	for i, code := range fences(t, "go") {
		in := read(t, "example_test.go") + read(t, "cellgrpc/example_test.go")
		if i == 0 {
			in = read(t, "example/main.go")
		} else {
			code = strings.TrimPrefix(strings.ReplaceAll("\n"+code, "\n", "\n\t"), "\n")
		}
		if !strings.Contains(in, strings.TrimRight(code, "\n\t")) {
			t.Errorf("no example has\n%s", code)
		}
	}
}

// TestReadmeRuns runs the first example as printed, apart from the ports.
func TestReadmeRuns(t *testing.T) {
	servertest.Need(t, "redis-cli", "curl", "bash")
	s := servertest.Start(t, binary)
	_, port, _ := net.SplitHostPort(s.Addr)
	web := serve(t, port)
	place := strings.NewReplacer("6380", port, "8000", web)
	steps := strings.Split(fences(t, "console")[0], "$ ")[1:]
	// On a slow machine a call takes longer than 50 ms, and is then allowed without a decision.
	const tries = 50
	differs := ""
	for range tries {
		s.Do(t, "del visitor:127.0.0.1")
		differs = ""
		for _, step := range steps {
			command, want, _ := strings.Cut(step, "\n")
			if strings.HasPrefix(command, "go run ") {
				continue // serve does
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-c", place.Replace(command))
			out, err := cmd.CombinedOutput()
			got := strings.ReplaceAll(string(out), "\r", "")
			if times.ReplaceAllString(got, "${1}T") != times.ReplaceAllString(want, "${1}T") {
				differs += fmt.Sprintf("%s: %v\n%swant\n%s", command, err, got, want)
			}
		}
		if differs == "" {
			return
		}
	}
	t.Error(differs)
}

// serve runs the README's program on a free port.
func serve(t *testing.T, redisPort string) (port string) {
	t.Helper()
	_, port, _ = net.SplitHostPort(servertest.FreeAddr(t))
	dir := t.TempDir()
	file, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "example")
	code := strings.NewReplacer("6380", redisPort, "8000", port).Replace(fences(t, "go")[0])
	if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, file)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // t.Context has killed it
	for {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = c.Close()
			return port
		}
	}
}
