package check

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
	"cellserver/internal/test/redistest"
	"cellserver/internal/wire/catalog"
)

// programName matches the first line of a program to save.
var programName = regexp.MustCompile(`^(?:<\?php )?(?:#|//|--) (\w+\.\w+)\b`)

// consoleBlock matches commands with their output.
var consoleBlock = regexp.MustCompile("(?ms)^```console\n.*?^```\n")

// TestRecipes runs the commands of the documents about limiters, a server each. With UPDATE_DOCS set, it
// writes their output.
func TestRecipes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	processtest.Need(t, "redis-cli", "bash", "php", "/usr/bin/python3")
	binary := build(t)
	for _, document := range []string{"docs/RECIPES.md", "docs/LIMITERS.md"} {
		t.Run(filepath.Base(document), func(t *testing.T) {
			compareBlocks(t, document, steady(t, document, func() string { return followRecipes(t, document, binary) }))
		})
	}
}

// steady follows a document until it prints what is written there: a stall between commands changes replies
// by a second. What it has printed three times is no stall's.
func steady(t *testing.T, document string, follow func() string) (ran string) {
	t.Helper()
	written, before := strings.Join(consoleBlock.FindAllString(read(t, document), -1), ""), map[string]int{}
	for range 30 {
		ran = follow()
		if before[ran]++; ran == written || before[ran] == 3 {
			break
		}
	}
	return ran
}

// followRecipes returns a document's blocks with the output of new servers.
func followRecipes(t *testing.T, document, binary string) string {
	t.Helper()
	redisPort := redisOnTCP(t)
	s := start(t, binary)
	place := func(text string) string {
		text = strings.ReplaceAll(text, "python3 ", "/usr/bin/python3 ") // has the client library
		return strings.ReplaceAll(s.ports(text), "6379", redisPort)
	}
	dir := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, place := range map[string]string{"cellserver": binary, "docs": filepath.Join(here, "docs")} {
		if err := os.Symlink(place, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var ran strings.Builder
	for _, f := range fences(t, document) {
		if m := programName.FindStringSubmatch(f.text); m != nil {
			write(t, dir, m[1], f.text)
		}
		if f.language == "console" {
			ran.WriteString("```console\n" + transcript(t, dir, f.text, place) + "```\n")
		}
	}
	return ran.String()
}

// redisOnTCP starts a redis-server on a free port.
func redisOnTCP(t *testing.T) (port string) {
	t.Helper()
	server := redistest.Start(t, "--bind", "127.0.0.1")
	var err error
	for range 10 {
		_, port, _ = net.SplitHostPort(processtest.FreeAddr(t))
		if err = server.ConfigSet(t.Context(), "port", port).Err(); err == nil {
			return port
		}
	}
	t.Fatal(err)
	return ""
}

// transcript runs a block's commands and returns it with all their output, so that a pipe hides no error.
func transcript(t *testing.T, dir, block string, place func(string) string) string {
	t.Helper()
	var b strings.Builder
	for _, step := range strings.Split(block, "$ ")[1:] {
		command, _, _ := strings.Cut(step, "\n")
		problems := filepath.Join(dir, "stderr")
		b.WriteString("$ " + command + "\n" + run(t, dir, "bash", "-c", "exec 2>"+problems+"; "+place(command)))
		if text, err := os.ReadFile(problems); err != nil || len(text) > 0 {
			t.Errorf("$ %s\nprints errors: %s (%v)", command, text, err)
		}
	}
	return b.String()
}

// compareBlocks compares a document with an actual run.
func compareBlocks(t *testing.T, document, ran string) {
	t.Helper()
	left := consoleBlock.FindAllString(ran, -1)
	update(t, document, consoleBlock.ReplaceAllStringFunc(read(t, document), func(block string) string {
		now := left[0]
		left = left[1:]
		if now != block && os.Getenv("UPDATE_DOCS") == "" {
			t.Errorf("%s has\n%s\nand what runs is\n%s", document, block, now)
		}
		return now
	}))
}

// update writes a document if UPDATE_DOCS is set.
func update(t *testing.T, document, text string) {
	t.Helper()
	if os.Getenv("UPDATE_DOCS") == "" {
		return
	}
	if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRefusalsLeadToRecipes: every section named in a refusal exists.
func TestRefusalsLeadToRecipes(t *testing.T) {
	sections := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(read(t, catalog.Recipes), -1) {
		sections[anchor(m[1])] = true
	}
	named := 0
	for _, c := range catalog.New().Commands() {
		if _, section, ok := strings.Cut(c.Refusal, catalog.Recipes+"#"); ok {
			named++
			if !sections[section] {
				t.Errorf("%s: there is no section %s", c.Name, section)
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d refusals name a section", named)
	}
}
