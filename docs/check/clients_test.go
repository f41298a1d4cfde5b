package check

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
)

// The timeouts in the examples.
var milliseconds, seconds = regexp.MustCompile(`\b100\b`), regexp.MustCompile(`(timeout(?:=|: ))0\.1\b`)

// TestClientsWithoutAnswer runs the clients of docs/CLIENTS.md that fail open against a server that allows,
// limits, hangs or is down.
func TestClientsWithoutAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("installs a client and starts a Java machine")
	}
	binary := build(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts connections, nobody reads
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	taken, err := net.Dial("tcp", silent.Addr().String()) // its port stays free of listeners
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	portOf := func(a net.Addr) server { return server{redisPort: strconv.Itoa(a.(*net.TCPAddr).Port)} }
	nobody := portOf(taken.LocalAddr())
	ran := 0
	for _, f := range fencesOf(section(t, "docs/CLIENTS.md", "While no limiter answers")) {
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
			}{{"allowed", patient, s, "true"}, {"limited", patient, s, "false"}, {"silent", f.text, portOf(silent.Addr()), "true"}, {"nobody", f.text, nobody, "true"}} {
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

// section returns a section of a document.
func section(t *testing.T, document, title string) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, document), "\n## "+title+"\n")
	if !found {
		t.Fatalf("%s has no section %q", document, title)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
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
	processtest.Need(t, "node", "npm")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil { // once for all steps
		run(t, dir, "npm", "install", "--no-audit", "--no-fund", "--silent", "ioredis@6.0.0")
	}
	return run(t, dir, "node", write(t, dir, "example.mjs", code))
}

func runJavaClass(t *testing.T, dir, code string) string {
	processtest.Need(t, "java", "javac")
	return run(t, dir, "java", write(t, dir, "Example.java", "class Example {\n"+code+"}\n"))
}

func runRuby(t *testing.T, dir, code string) string {
	processtest.Need(t, "ruby")
	return run(t, dir, "ruby", write(t, dir, "example.rb", code))
}
