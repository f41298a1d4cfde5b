package check

import (
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/processtest"
)

// The timeouts in the examples.
var milliseconds, seconds = regexp.MustCompile(`\b100\b`), regexp.MustCompile(`(timeout(?:=|: ))0\.1\b`)

// failsClosed matches what the examples answer without a server.
var failsClosed = regexp.MustCompile(`\b([fF])alse(;?\s+(?://|#) fails closed)`)

// failsOpen returns an example that answers the opposite, as docs/CLIENTS.md says to write it.
func failsOpen(example string) string {
	return failsClosed.ReplaceAllStringFunc(example, func(found string) string {
		return strings.NewReplacer("false", "true", "False", "True").Replace(found)
	})
}

// TestClientsWithoutAnswer runs the clients of docs/CLIENTS.md for logins, and as they are for other limits,
// against a server that allows, limits, hangs or is down.
func TestClientsWithoutAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("installs a client and starts a Java machine")
	}
	binary := build(t)
	limits := fencesOf(section(t, "docs/LIMITS-FILE.md", "Shut out for a while"))[0].text
	ran := 0
	for _, f := range fencesOf(section(t, "docs/CLIENTS.md", "While no limiter answers")) {
		example, ok := map[string]func(t *testing.T, dir, code string) string{
			"go": runGoOpen, "python": runPython, "js": runNode, "java": runJavaClass, "ruby": runRuby,
		}[f.language]
		if !ok {
			continue
		}
		ran++
		t.Run(f.language, func(t *testing.T) {
			s := start(t, binary, "--limits-file", write(t, t.TempDir(), "limits.yml", limits))
			// shuts out for so long that no machine is too slow
			tryWithoutAnswer(t, f.text, example, s, "cl.check", "login-account", "192.0.2.1 laoqian", "5")
		})
	}
	if ran != 6 {
		t.Errorf("ran %d examples, want five languages, Node's twice", ran)
	}
}

// TestClientsWithName runs the program of docs/CLIENTS.md that asks for limits by name, with a password.
func TestClientsWithName(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Python several times")
	}
	processtest.Need(t, "/usr/bin/python3")
	binary, dir := build(t), t.TempDir()
	passwords := write(t, dir, "password", "secret\n")
	s := start(t, binary, "--requirepass-file", passwords)
	weak := start(t, binary, "--aclfile", write(t, dir, "users.acl", "user default on >secret ~* +@all -cl.mcheck\n"))
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + s.redisPort, Password: "secret", MaxRetries: -1})
	defer func() { _ = rdb.Close() }()
	fences := fencesOf(section(t, "docs/CLIENTS.md", "A limit by its name, with a password"))
	if len(fences) != 1 {
		t.Fatalf("%d examples, want one", len(fences))
	}
	// for a busy machine
	program := strings.NewReplacer("timeout=0.1", "timeout=60", "timeout=5", "timeout=60").Replace(fences[0].text)
	for _, step := range []struct {
		name, want, password string
		at                   server
		before               [][]any
	}{
		{"no such limit", "no such limit 'login-address'", "secret\n", s, nil},
		{"allowed", "True", "secret\n", s, [][]any{
			{"CL.LIMIT", "SET", "login-address", "FUNNEL", 19, 20, 60, "BLOCK", 900},
			{"CL.LIMIT", "SET", "login-account", "FUNNEL", 4, 5, 60, "BLOCK", 900, "EACH"},
		}},
		{"shut out", "False", "secret", s, [][]any{{"CL.CHECK", "login-account", "192.0.2.1 laoqian", 5}, {"CL.CHECK", "login-account", "192.0.2.1 laoqian", -5}}},
		{"wrong password", "WRONGPASS invalid", "wrong", s, nil},
		{"no right", "no permissions", "secret", weak, nil},
	} {
		for _, command := range step.before {
			if err := rdb.Do(t.Context(), command...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		write(t, dir, "password", step.password)
		cmd := exec.CommandContext(testContext(t), "/usr/bin/python3", "-W", "error", write(t, dir, "example.py", step.at.ports(program)))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		isMistake := step.want != "True" && step.want != "False"
		if isMistake != (err != nil) || !strings.Contains(string(out), step.want) {
			t.Errorf("%s: got %v, %s, want %s", step.name, err, out, step.want)
		}
	}
}

// tryWithoutAnswer runs an example as it is, and failing open: against a server that allows, the same after a
// command that uses up its limit, one that hangs, and none.
func tryWithoutAnswer(t *testing.T, text string, example func(t *testing.T, dir, code string) string, s server, useUp ...string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts connections, nobody reads
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	taken, err := net.Dial("tcp", l.Addr().String()) // its port stays free of listeners
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	at := func(a net.Addr) server {
		port := strconv.Itoa(a.(*net.TCPAddr).Port)
		return server{redisPort: port, httpPort: port}
	}
	silent, nobody, dir := at(l.Addr()), at(taken.LocalAddr()), t.TempDir()
	// for a busy machine
	patient := seconds.ReplaceAllString(milliseconds.ReplaceAllString(text, "30000"), "${1}30")
	if failsOpen(text) == text {
		t.Fatal("it does not fail closed")
	}
	for _, step := range []struct {
		name, text string
		at         server
		want       string
	}{
		{"allowed", patient, s, "true"},
		{"limited", failsOpen(patient), s, "false"},
		{"silent", text, silent, "false"},
		{"nobody", text, nobody, "false"},
		{"silent, open", failsOpen(text), silent, "true"},
		{"nobody, open", failsOpen(text), nobody, "true"},
	} {
		if step.name == "limited" {
			run(t, dir, "redis-cli", append([]string{"-p", s.redisPort}, useUp...)...)
		}
		if got := strings.ToLower(strings.TrimSpace(example(t, dir, step.at.ports(step.text)))); got != step.want {
			t.Errorf("%s: got %q, want %s", step.name, got, step.want)
		}
	}
}

// loginLimit matches a limit for logins: in a command and in a file.
var loginLimit = regexp.MustCompile(`(?i)^\$.*? cl\.(\w+) \S*login\S* (\d.*)|set login (\w+) (\d+ \d+ \d+)|` +
	`login(?:-account)?: \{rules: (.*?)\}`)

// TestLoginsHaveOneLimit: a login is the same limit on every page.
func TestLoginsHaveOneLimit(t *testing.T) {
	found := map[string]int{}
	for _, document := range []string{
		"README.md", "README.zh-CN.md", "docs/CLIENTS.md", "docs/DEPLOY.md", "docs/HTTP.md", "docs/LIMITERS.md", "docs/LIMITERS.zh-CN.md",
		"docs/LIMITS-FILE.md", "docs/OPERATIONS.md", "docs/RECIPES.md", "docs/RECIPES.zh-CN.md", "deploy/helm/cellserver/README.md",
		"deploy/helm/cellserver/values.yaml", "adapters/go/README.md", "adapters/python/README.md",
	} {
		for line := range strings.Lines(read(t, document)) {
			m := loginLimit.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			found[document]++
			limit := strings.ToLower(strings.Join(m[1:], " "))
			switch strings.Join(strings.Fields(strings.ReplaceAll(limit, ",", "")), " ") {
			case "throttle 4 5 60", "funnel 4 5 60", "[{algorithm: funnel max_burst: 4 count: 5 period: 1m",
				"[{algorithm: funnel capacity: 5 count: 5 period: 1m block: 15m block_on: each":
			default:
				t.Errorf("%s has another limit for logins: %s", document, line)
			}
		}
	}
	for _, document := range []string{"docs/HTTP.md", "docs/LIMITS-FILE.md", "docs/OPERATIONS.md", "adapters/python/README.md"} {
		if found[document] == 0 {
			t.Errorf("%s has no limit for logins, or in other words", document)
		}
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

func runJavaClass(t *testing.T, dir, code string) string {
	processtest.Need(t, "java", "javac")
	return run(t, dir, "java", write(t, dir, "Example.java", "class Example {\n"+code+"}\n"))
}

func runRuby(t *testing.T, dir, code string) string {
	processtest.Need(t, "ruby")
	return run(t, dir, "ruby", write(t, dir, "example.rb", code))
}
