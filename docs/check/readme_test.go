package check

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellserver/internal/test/processtest"
)

// fence is a code block of a document. A note after its language marks an untested one.
type fence struct {
	language, text string
	untried        bool
}

func fences(t *testing.T, document string) []fence {
	t.Helper()
	return fencesOf(read(t, document))
}

func fencesOf(text string) (all []fence) {
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)( untried)?\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		all = append(all, fence{m[1], m[3], m[2] != ""})
	}
	return all
}

// testContext ends shortly before the test's time-out.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-5*time.Second))
		t.Cleanup(cancel)
	}
	return ctx
}

// server has the ports that replace those of a document.
type server struct{ redisPort, tlsPort, httpPort, metricsPort string }

func (s server) ports(text string) string { return placePorts(text, s, s) }

// placePorts replaces the default ports, 6380 and 9380, and those of an example's second server.
func placePorts(text string, first, second server) string {
	return strings.NewReplacer("6380", first.redisPort, "6381", first.httpPort, "9380", first.metricsPort,
		"6390", second.redisPort, "6391", second.tlsPort, "6392", second.redisPort, "6393", second.redisPort).Replace(text)
}

var ready = regexp.MustCompile(`msg=ready .*?(?:tcp=127\.0\.0\.1:(\d+) )?(?:tls=127\.0\.0\.1:(\d+) )?(?:http=127\.0\.0\.1:(\d+) )?(?:grpc=\S+ )?metrics=127\.0\.0\.1:(\d+)`)

// start starts a server on free ports and stops it with the test.
func start(t *testing.T, name string, args ...string) server {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), name, args...)
	cmd.Env = append(os.Environ(), "CELLSERVER_ADDR=127.0.0.1:0", "CELLSERVER_HTTP_ADDR=127.0.0.1:0", "CELLSERVER_METRICS_ADDR=127.0.0.1:0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // includes make's children
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = cmd.Wait()
	})
	var log strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		fmt.Fprintln(&log, lines.Text())
		if m := ready.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return server{m[1], m[2], m[3], m[4]}
		}
	}
	t.Fatalf("%s did not become ready:\n%s", name, log.String())
	return server{}
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "FAKETTY=1") // redis-cli prints as to a terminal
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, stderr.String())
	}
	return string(out)
}

func TestReadmeMakeRun(t *testing.T) {
	processtest.Need(t, "make")
	if testing.Short() {
		t.Skip("builds and starts the server by make")
	}
	s := start(t, "make", "run")
	if s.redisPort == "" {
		t.Error("make run logged no port")
	}
	for _, f := range fences(t, "README.md") {
		if f.language == "sh" && !makeRun.MatchString(f.text) {
			t.Errorf("no test runs %s", f.text)
		}
	}
}

// makeRun matches the command that starts the server, with its settings.
var makeRun = regexp.MustCompile(`^((?:CELLSERVER_\w+=\S+ )*)make run\n$`)

// TestTranscripts runs the commands of these documents in order and compares their output.
func TestTranscripts(t *testing.T) {
	processtest.Need(t, "redis-cli", "curl", "bash", "openssl")
	for _, document := range []string{"README.md", "docs/CLIENTS.md", "docs/DEPLOY.md"} {
		t.Run(filepath.Base(document), func(t *testing.T) { followTranscripts(t, document) })
	}
}

func followTranscripts(t *testing.T, document string) {
	binary := build(t)
	dir := filepath.Dir(binary)
	first := start(t, binary)
	var second server // for examples beside the first
	// by the block's language
	files := map[string]string{"acl": "users.acl", "lua": "all.lua", "yaml": "cellserver.yaml"}
	if document == "README.md" {
		files["yaml"] = "limits.yml"
	}
	for _, f := range fences(t, document) {
		if name := files[f.language]; name != "" {
			write(t, dir, name, f.text)
		}
		for _, user := range userPassword.FindAllStringSubmatch(f.text, -1) {
			write(t, dir, user[1], user[2]+"\n")
		}
		if m := makeRun.FindStringSubmatch(f.text); m != nil {
			first = start(t, "bash", "-c", "cd "+dir+" && "+m[1]+"exec ./cellserver")
		}
		if f.language != "console" {
			continue
		}
		for _, step := range strings.Split(f.text, "$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			if args, ok := strings.CutSuffix(command, " &"); ok {
				if !ownPorts(args) {
					t.Errorf("$ %s\nwould not run beside make run, which would answer in its place", command)
				}
				second = start(t, "bash", "-c", "cd "+dir+" && exec "+anyPort.ReplaceAllString(args, "127.0.0.1:0"))
				continue
			}
			command = placePorts(command, first, second)
			if strings.HasPrefix(command, "./cellserver health") {
				command += " --metrics-addr 127.0.0.1:" + first.metricsPort
			}
			if got := run(t, dir, "bash", "-c", command); got != want {
				t.Errorf("$ %s\ngot\n%s\nwant\n%s", command, got, want)
			}
		}
	}
}

// userPassword matches a user of an aclfile, whose password the reader saves in a file.
var userPassword = regexp.MustCompile(`(?m)^user (\w+) on >(\S+) `)

var anyPort = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// ownPorts reports whether a command line leaves the default ports free.
func ownPorts(args string) bool {
	return regexp.MustCompile(`--addr ("" |127)`).MatchString(args) && strings.Contains(args, "--metrics-addr ") &&
		!strings.Contains(args, "6380") && !strings.Contains(args, "6381") && !strings.Contains(args, "9380")
}

// TestReadmeExamples runs the call in each language: in Java that of the README, in others of
// docs/CLIENTS.md.
func TestReadmeExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("installs a client and starts a Java machine")
	}
	binary := build(t)
	ran := map[string]bool{}
	for _, f := range fencesOf(read(t, "README.md") + section(t, "docs/CLIENTS.md", "The call")) {
		example, ok := map[string]func(t *testing.T, dir, code string) string{
			"go": runGo, "python": runPython, "js": runNode, "java": runJava,
		}[f.language]
		if !ok || f.untried {
			continue
		}
		ran[f.language] = true
		t.Run(f.language, func(t *testing.T) {
			s := start(t, binary)
			got := strings.TrimSpace(example(t, t.TempDir(), s.ports(f.text)))
			want := map[string]string{"go": "[0 16 15 -1 2] <nil>", "java": "go on"}[f.language]
			if want == "" {
				want = "15 left"
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	if len(ran) != 4 {
		t.Errorf("ran %v, want four languages", ran)
	}
}

// TestReadmeMiddleware: the lines of the middleware are those of the adapters' documents, whose tests run
// them.
func TestReadmeMiddleware(t *testing.T) {
	compared := 0
	for _, f := range fences(t, "README.md") {
		document, ok := map[string]string{"go": "adapters/go/README.md", "python": "adapters/python/README.md"}[f.language]
		if !ok || !f.untried {
			continue
		}
		compared++
		for line := range strings.Lines(f.text) {
			if !strings.Contains(read(t, document), strings.TrimSpace(line)) {
				t.Errorf("%s has no %s", document, line)
			}
		}
	}
	if compared != 2 {
		t.Errorf("compared %d blocks, want one for Go and one for Python", compared)
	}
}

func write(t *testing.T, dir, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func runGo(t *testing.T, dir, code string) string {
	return runGoOpen(t, dir, code+"_, _ = log.Print, time.Now\nfmt.Println(reply, err)\n")
}

func runPython(t *testing.T, dir, code string) string {
	processtest.Need(t, "/usr/bin/python3")
	return run(t, dir, "/usr/bin/python3", "-W", "error", write(t, dir, "example.py", code))
}

// nodeClient matches the import of a client, whose version is the tested one.
var nodeClient = regexp.MustCompile(`from "(redis|ioredis)"`)

func runNode(t *testing.T, dir, code string) string {
	return run(t, dir, "node", writeNode(t, dir, code))
}

// writeNode writes a program and installs the client that it imports, once for each directory.
func writeNode(t *testing.T, dir, code string) (path string) {
	t.Helper()
	processtest.Need(t, "node", "npm")
	m := nodeClient.FindStringSubmatch(code)
	if m == nil {
		t.Fatalf("no client is imported in\n%s", code)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", m[1])); err != nil {
		version := map[string]string{"redis": "6.3.1", "ioredis": "6.0.0"}[m[1]]
		run(t, dir, "npm", "install", "--no-audit", "--no-fund", "--silent", m[1]+"@"+version)
	}
	return write(t, dir, "example.mjs", code)
}

func runJava(t *testing.T, dir, code string) string {
	processtest.Need(t, "java", "javac")
	return run(t, dir, "java", write(t, dir, "Example.java",
		"class Example { public static void main(String[] args) throws Exception {\n"+code+"} }\n"))
}
