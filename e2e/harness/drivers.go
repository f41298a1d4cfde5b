package harness

import (
	"crypto/tls"
	"testing"

	"cellserver/internal/test/racetest"
)

type Starter func(t *testing.T, args ...string) *Process

// OnEachDriver runs a test with goroutines, with event loops where supported, and over TLS, which uses
// goroutines, unless IsQuick. The tests run in parallel: they mostly wait.
func OnEachDriver(t *testing.T, test func(t *testing.T, startServer Starter)) {
	t.Helper()
	for _, ioThreads := range []string{"0", "1"} {
		t.Run("io-threads="+ioThreads, func(t *testing.T) {
			t.Parallel()
			test(t, func(t *testing.T, args ...string) *Process {
				t.Helper()
				return StartServer(t, append([]string{"--io-threads", ioThreads}, args...)...)
			})
		})
	}
	if racetest.IsQuick() {
		return
	}
	t.Run("tls", func(t *testing.T) {
		t.Parallel()
		test(t, func(t *testing.T, args ...string) *Process {
			t.Helper()
			files, ca := NewTLSFiles(t)
			p := StartServer(t, append(files.Flags(), args...)...)
			p.TLS = &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
			return p
		})
	})
}
