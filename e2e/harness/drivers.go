package main

import (
	"crypto/tls"
	"testing"
)

// starter is startServer with one of the connection drivers.
type starter func(t *testing.T, args ...string) *process

// onEachDriver runs a test with a goroutine per connection, with event loops where they are supported, and over TLS, which
// always uses goroutines. The tests run in parallel, because they mostly wait.
func onEachDriver(t *testing.T, test func(t *testing.T, startServer starter)) {
	t.Helper()
	onEachDriverInTurn(t, func(t *testing.T, startServer starter) {
		t.Parallel()
		test(t, startServer)
	})
}

// onEachDriverInTurn is onEachDriver for tests that must have ended when it returns.
func onEachDriverInTurn(t *testing.T, test func(t *testing.T, startServer starter)) {
	t.Helper()
	for _, ioThreads := range []string{"0", "1"} {
		t.Run("io-threads="+ioThreads, func(t *testing.T) {
			test(t, func(t *testing.T, args ...string) *process {
				t.Helper()
				return startServer(t, append([]string{"--io-threads", ioThreads}, args...)...)
			})
		})
	}
	t.Run("tls", func(t *testing.T) {
		test(t, func(t *testing.T, args ...string) *process {
			t.Helper()
			files, ca := newTLSFiles(t)
			p := startServer(t, append(files.flags(), args...)...)
			p.tls = &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
			return p
		})
	})
}
