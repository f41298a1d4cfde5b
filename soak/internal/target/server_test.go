package target

import (
	"slices"
	"testing"
)

// TestReadLine: whatever is not a line of JSON was not written by the server's logger.
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
