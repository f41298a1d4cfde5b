package check

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cellserver/internal/test/processtest"
)

// TestMigrationLibrary runs the program of docs/MIGRATION.md with a library, whose sixth request is limited.
func TestMigrationLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("installs a library")
	}
	processtest.Need(t, "node", "npm", "redis-cli")
	s, dir, addr := start(t, build(t)), t.TempDir(), processtest.FreeAddr(t)
	npmInstall(t, dir, "express", "express-rate-limit", "rate-limit-redis", "redis")
	blocks := fencesOf(section(t, "docs/MIGRATION.md", "From a library"))
	if len(blocks) != 1 || blocks[0].language != "js" {
		t.Fatalf("got %v, want a program", blocks)
	}
	_, port, _ := net.SplitHostPort(addr)
	code := s.ports(strings.ReplaceAll(blocks[0].text, "8000", port))
	p := processtest.Start(t, processtest.Command(t, "node", write(t, dir, "app.mjs", code)))
	t.Cleanup(func() { p.Stop(t, os.Kill) })
	var statuses []int
	for range 6 {
		p.Eventually(t, "answer", func() bool {
			r, err := http.Get("http://" + addr)
			if err != nil {
				return p.HasExited()
			}
			_ = r.Body.Close()
			statuses = append(statuses, r.StatusCode)
			return true
		})
	}
	if want := []int{200, 200, 200, 200, 200, 429}; !slices.Equal(statuses, want) {
		t.Errorf("got %v, want %v: %s", statuses, want, p.Log.String())
	}
	if keys := run(t, "", "redis-cli", "-p", s.redisPort, "dbsize"); keys != "(integer) 1\n" {
		t.Errorf("cellserver has %s keys, want the counter", keys)
	}
}

// npmInstall installs the packages in the versions that the tests of libraries have.
func npmInstall(t *testing.T, dir string, packages ...string) {
	t.Helper()
	var pinned struct{ Dependencies map[string]string }
	if err := json.Unmarshal([]byte(read(t, "lab/clients/libraries-node/package.json")), &pinned); err != nil {
		t.Fatal(err)
	}
	args := []string{"install", "--prefer-offline", "--no-audit", "--no-fund", "--silent"}
	for _, name := range packages {
		args = append(args, name+"@"+pinned.Dependencies[name])
	}
	run(t, dir, "npm", args...)
}

// TestMigrationTranscripts runs the commands of docs/MIGRATION.md. With UPDATE_DOCS set, it writes their
// output.
func TestMigrationTranscripts(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the server")
	}
	processtest.Need(t, "redis-cli", "bash", "gzip")
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
	for i := range 4 {
		run(t, "", "redis-cli", "-p", s.redisPort, "cl.throttle", "laoqian", "1", "1", "60")
		for i == 0 && !strings.Contains(run(t, "", "redis-cli", "-p", s.redisPort, "info", "commandstats"), "cmdstat_get:") {
			time.Sleep(time.Millisecond) // until the key is read: later calls are compared
		}
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
