package main

import (
	"path/filepath"
	"testing"

	"cellserver/internal/test/certtest"
)

// tlsFiles holds the paths of a server's TLS files.
type tlsFiles struct{ cert, key, clientCA string }

func (f tlsFiles) flags() []string {
	return []string{"--tls-addr", "127.0.0.1:0", "--tls-cert", f.cert, "--tls-key", f.key}
}

// newTLSFiles creates the TLS files of a server, and returns their authority.
func newTLSFiles(t *testing.T) (tlsFiles, *certtest.CA) {
	t.Helper()
	dir, ca := t.TempDir(), certtest.NewCA(t)
	f := tlsFiles{filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), filepath.Join(dir, "ca.crt")}
	f.write(t, ca, "server")
	certtest.Write(t, f.clientCA, ca.PEM)
	return f, ca
}

func (f tlsFiles) write(t *testing.T, ca *certtest.CA, name string) {
	t.Helper()
	cert, key := ca.Issue(t, name)
	certtest.Write(t, f.cert, cert)
	certtest.Write(t, f.key, key)
}
