package harness

import (
	"path/filepath"
	"testing"

	"cellserver/internal/test/certtest"
)

// TLSFiles holds the paths of a server's TLS files.
type TLSFiles struct{ Cert, Key, ClientCA string }

func (f TLSFiles) Flags() []string {
	return []string{"--tls-addr", "127.0.0.1:0", "--tls-cert", f.Cert, "--tls-key", f.Key}
}

// NewTLSFiles creates a server's TLS files and returns their authority.
func NewTLSFiles(t *testing.T) (TLSFiles, *certtest.CA) {
	t.Helper()
	dir, ca := t.TempDir(), certtest.NewCA(t)
	f := TLSFiles{filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), filepath.Join(dir, "ca.crt")}
	f.Write(t, ca, "server")
	certtest.Write(t, f.ClientCA, ca.PEM)
	return f, ca
}

// Write writes a certificate and its key.
func (f TLSFiles) Write(t *testing.T, ca *certtest.CA, name string) {
	t.Helper()
	cert, key := ca.Issue(t, name)
	certtest.Write(t, f.Cert, cert)
	certtest.Write(t, f.Key, key)
}
