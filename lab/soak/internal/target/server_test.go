package target

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReadLine: a line that is not JSON is not the server's logger's.
func TestReadLine(t *testing.T) {
	s := &Server{ready: make(chan error, 1)}
	for _, line := range []string{
		`{"level":"WARN","msg":"script: WARNING: DATA RACE \"panic\":"}`, "", "WARNING: DATA RACE", "goroutine 1 [running]:",
		`{"level":"ERROR","msg":"oh","panic":"no"}`,
	} {
		if s.readLine([]byte(line), false) {
			t.Errorf("%q says that the server is ready", line)
		}
	}
	if got := s.Trouble(); len(got) != 3 || !slices.Contains(got, "WARNING: DATA RACE") {
		t.Errorf("trouble: %q", got)
	}
	if !s.readLine([]byte(`{"msg":"ready","tcp":"127.0.0.1:1","tls":"127.0.0.1:2","unix":"/s","metrics":"127.0.0.1:3"}`), false) ||
		s.TCP != "127.0.0.1:1" || s.TLS != "127.0.0.1:2" || s.Unix != "/s" || s.Metrics != "127.0.0.1:3" {
		t.Errorf("addresses: %q %q %q %q", s.TCP, s.TLS, s.Unix, s.Metrics)
	}
	if s.readLine([]byte(`{"msg":"ready","tcp":"127.0.0.1:9"}`), false) || s.TCP != "127.0.0.1:1" {
		t.Error("a script's line was taken for the server's")
	}
}

func TestServerThatDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "server")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\necho no such flag >&2\nexit 1\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Spec{Binary: binary, Dir: dir}); err == nil || !strings.Contains(err.Error(), "no such flag") {
		t.Error(err)
	}
}

func TestKnown(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\necho '  --maxmemory-clients bytes  x'\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	got, err := Known(t.Context(), binary, "--maxmemory", "1mb", "--maxmemory-clients", "2mb")
	if err != nil || !slices.Equal(got, []string{"--maxmemory-clients", "2mb"}) {
		t.Errorf("%q, %v", got, err)
	}
}
