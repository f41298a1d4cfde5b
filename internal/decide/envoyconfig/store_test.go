package envoyconfig

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestStore: changed files replace the rules as a whole, or not at all.
func TestStore(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, Options{}); err == nil || err.Error() != dir+" has no *.yaml" {
		t.Errorf("empty: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "nosuch"), Options{}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("missing: %v", err)
	}
	write(t, dir, "a.yaml", "domain: a\n")
	file := filepath.Join(dir, "a.yaml")
	if _, err := Open(file, Options{}); err == nil || err.Error() != file+" is a file; give its directory, or, if it has limits:, give it to --limits-file" {
		t.Errorf("a file: %v", err)
	}
	write(t, dir, "b.yml", "domain: b\n")
	write(t, dir, ".hidden.yaml", "no domain")
	write(t, dir, "README.md", "no domain")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(when, want string) {
		t.Helper()
		var got []string
		for _, name := range []string{"a", "b", "c"} {
			if s.Rules().Domain(name) != nil {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: domains %v, want %s", when, got, want)
		}
	}
	check("first", "a b")
	if changed, err := s.ReloadChanged(); changed || err != nil {
		t.Errorf("nothing changed: %v, %v", changed, err)
	}
	write(t, dir, "a.yaml", "domain: c\n# longer\n")
	if changed, err := s.ReloadChanged(); !changed || err != nil {
		t.Errorf("a file changed: %v, %v", changed, err)
	}
	check("changed", "b c")
	write(t, dir, "bad.yaml", "domain: [x]\n")
	write(t, dir, "a.yaml", "domain: a\n")
	if changed, err := s.ReloadChanged(); !changed || err == nil || err.Error() != filepath.Join(dir, "bad.yaml")+":1: domain must be a word" {
		t.Errorf("a bad file: %v, %v", changed, err)
	}
	check("after a bad file", "b c")
	if changed, err := s.ReloadChanged(); changed || err != nil {
		t.Errorf("a bad file is told once: %v, %v", changed, err)
	}
	if err := os.Remove(filepath.Join(dir, "bad.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Error(err)
	}
	check("at last", "a b")
	if s.LastFailed() {
		t.Error("the last load failed")
	}
}

// TestWatch: files are looked at again and again.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", "domain: a\n")
	write(t, dir, "README.md", "")
	write(t, dir, ".hidden", "")
	if err := os.Mkdir(filepath.Join(dir, "more.yaml.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var log strings.Builder
		go s.Watch(ctx, time.Second, slog.New(slog.NewTextHandler(&log, nil)))
		for _, text := range []string{"domain: b\n# longer\ndescriptors: [{key: a, unit: day, rate_limit: {unlimited: true}}]\n", "domain: [x]\n"} {
			write(t, dir, "a.yaml", text)
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
		}
		if s.Rules().Domain("b") == nil {
			t.Error("the rules are not replaced")
		}
		for _, want := range []string{
			"limits for Envoy read\" directory=" + dir + " files=1 domains=1 rules=1", "count=2 names=\"README.md more.yaml.d\"",
			"unit has no effect in a descriptor", "the previous rules stay",
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%q is not in the log:\n%s", want, &log)
			}
		}
	})
}
