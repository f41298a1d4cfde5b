package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/base/buildinfo"
	"cellserver/internal/test/processtest"
)

// scratch is where what all tests share is built.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "release"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(scratch); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// dist returns what make release makes, for Linux alone and without the profile, which takes an eighth of the
// time.
func dist(t *testing.T) string {
	t.Helper()
	dir, err := firstRelease()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var firstRelease = sync.OnceValues(func() (string, error) { return release("first") })

// release builds a release of the source as it is in the work tree, in a repository of its own in scratch.
func release(name string) (dist string, err error) {
	bin, err := tools()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(scratch, name)
	if err := copySource(dir); err != nil {
		return "", err
	}
	if err := os.Symlink(bin, filepath.Join(dir, "lab", "release", "bin")); err != nil {
		return "", err
	}
	config, err := os.ReadFile(filepath.Join(dir, ".goreleaser.yaml"))
	if err != nil {
		return "", err
	}
	const all = "goos: [linux, darwin, windows, freebsd]"
	if !bytes.Contains(config, []byte(all)) {
		return "", errors.New(".goreleaser.yaml has no " + all)
	}
	edited := filepath.Join(scratch, name+".yaml")
	if err := os.WriteFile(edited, bytes.Replace(config, []byte(all), []byte("goos: [linux]"), 1), 0o600); err != nil {
		return "", err
	}
	if err := command(dir, "lab/release/bin/goreleaser", "release", "--snapshot", "--clean", "--config", edited); err != nil {
		return "", err
	}
	return filepath.Join(dir, "dist"), command(dir, "lab/release/bin/release", "image", "dist")
}

var tools = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(scratch, "bin") + string(filepath.Separator)
	if err := command(".", "go", "build", "-trimpath", "-o", bin, "."); err != nil {
		return "", err
	}
	return bin, command("goreleaser", "go", "build", "-trimpath", "-o", bin, "tool")
})

// copySource copies the work tree and commits the copy. Go writes no revision into what it builds in a linked
// work tree.
func copySource(dir string) error {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if err := copyFile(filepath.Join("../..", path), filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"remote", "add", "origin", "https://git.invalid/cellserver.git"}, // without one GoReleaser does not ask for the commit
		{"add", "--all"},
		{"-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message=test"},
	} {
		if err := command(dir, "git", args...); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file, unless it is deleted in the work tree.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode())
}

func command(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), "PWD="+abs, "GOFLAGS=-pgo=off", "CGO_ENABLED=0", "GORELEASER_CURRENT_TAG=v"+buildinfo.Version,
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w\n%s", name, args, err, out)
	}
	return nil
}

// must returns the output of a command, and fails the test if the command fails.
func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := processtest.Command(t, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// artifact returns the only file of a release whose name matches a pattern.
func artifact(t *testing.T, pattern string) string {
	t.Helper()
	matches, err := filepath.Glob(filepath.Join(dist(t), pattern))
	if err != nil || len(matches) != 1 {
		t.Fatalf("the release has %q for %s, %v", matches, pattern, err)
	}
	return matches[0]
}
