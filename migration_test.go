package cellserver_test

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The timeouts in the examples.
var milliseconds, seconds = regexp.MustCompile(`\b100\b`), regexp.MustCompile(`(timeout(?:=|: ))0\.1\b`)

// TestMigrationExamples runs the clients of docs/MIGRATION.md against a server that allows, limits, hangs or
// is down.
func TestMigrationExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("installs a client and starts a Java machine")
	}
	binary := build(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts connections, nobody reads
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	portOf := func(l net.Listener) server { return server{redisPort: strconv.Itoa(l.Addr().(*net.TCPAddr).Port)} }
	nobody := portOf(gone)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, f := range fences(t, "docs/MIGRATION.md") {
		example, ok := map[string]func(t *testing.T, dir, code string) string{
			"go": runGoOpen, "python": runPython, "js": runIORedis, "java": runJavaClass, "ruby": runRuby,
		}[f.language]
		if !ok {
			continue
		}
		ran++
		t.Run(f.language, func(t *testing.T) {
			s, dir := start(t, binary), t.TempDir()
			// for a busy machine
			patient := seconds.ReplaceAllString(milliseconds.ReplaceAllString(f.text, "30000"), "${1}30")
			for _, step := range []struct {
				name, text string
				at         server
				want       string
			}{{"allowed", patient, s, "true"}, {"limited", patient, s, "false"}, {"silent", f.text, portOf(silent), "true"}, {"nobody", f.text, nobody, "true"}} {
				if got := strings.ToLower(strings.TrimSpace(example(t, dir, step.at.ports(step.text)))); got != step.want {
					t.Errorf("%s: got %q, want %s", step.name, got, step.want)
				}
			}
		})
	}
	if ran != 5 {
		t.Errorf("ran %d examples, want five languages", ran)
	}
}

func runGoOpen(t *testing.T, dir, code string) string {
	return run(t, "", "go", "run", write(t, dir, "main.go", `package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx := context.Background()
`+code+`}
`))
}

func runIORedis(t *testing.T, dir, code string) string {
	need(t, "node", "npm")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil { // once for all steps
		run(t, dir, "npm", "install", "--no-audit", "--no-fund", "--silent", "ioredis@6.0.0")
	}
	return run(t, dir, "node", write(t, dir, "example.mjs", code))
}

func runJavaClass(t *testing.T, dir, code string) string {
	need(t, "java", "javac")
	return run(t, dir, "java", write(t, dir, "Example.java", "class Example {\n"+code+"}\n"))
}

func runRuby(t *testing.T, dir, code string) string {
	need(t, "ruby")
	return run(t, dir, "ruby", write(t, dir, "example.rb", code))
}

// TestMigrationTranscripts runs the commands of docs/MIGRATION.md. With UPDATE_DOCS set, it writes their
// output.
func TestMigrationTranscripts(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the server")
	}
	need(t, "redis-cli", "bash", "gzip")
	const document = "docs/MIGRATION.md"
	binary, dir := build(t), t.TempDir()
	if err := os.Symlink(binary, filepath.Join(dir, "cellserver")); err != nil {
		t.Fatal(err)
	}
	var ran strings.Builder
	for _, f := range fences(t, document) {
		switch {
		case f.language != "console":
		case strings.Contains(f.text, "shadow"):
			ran.WriteString("```console\n" + shadowed(t, binary, f.text) + "```\n")
		default:
			ran.WriteString("```console\n" + transcript(t, dir, f.text, func(text string) string { return text }) + "```\n")
		}
	}
	compareBlocks(t, document, ran.String())
}

// shadowed returns the output of a block with a server that stands in for the program. Timing and batching
// may differ.
func shadowed(t *testing.T, binary, block string) string {
	t.Helper()
	s := start(t, binary, "--io-threads", "1")
	command, printed, _ := strings.Cut(block, "\n")
	args := strings.Fields(strings.ReplaceAll(command, "6379", s.redisPort))[2:]
	cmd := exec.CommandContext(testContext(t), binary, args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stderr).ReadString('\n'); err != nil || !strings.Contains(line, "following") {
		t.Fatalf("%q, %v", line, err)
	}
	for range 4 {
		run(t, "", "redis-cli", "-p", s.redisPort, "cl.throttle", "laoqian", "1", "1", "60")
	}
	if err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	varies := regexp.MustCompile(`(?m)^(either|allowed|compared|single calls|only|reads|time)(.*?  +)\S+$`)
	want := varies.FindAllString(printed, -1)
	return command + "\n" + varies.ReplaceAllStringFunc(out.String(), func(line string) string {
		if len(want) == 0 || varies.ReplaceAllString(line, "$1$2") != varies.ReplaceAllString(want[0], "$1$2") {
			return line
		}
		line, want = want[0], want[1:]
		return line
	})
}
