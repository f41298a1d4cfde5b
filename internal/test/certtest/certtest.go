// Package certtest issues certificates for tests. Its functions fail the test instead of returning errors.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// CA is a certificate authority.
type CA struct {
	PEM  []byte
	Pool *x509.CertPool

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA returns a new authority.
func NewCA(t testing.TB) *CA {
	t.Helper()
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	ca := &CA{Pool: x509.NewCertPool()}
	ca.cert, ca.key = ca.sign(t, template)
	ca.Pool.AddCert(ca.cert)
	ca.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
	return ca
}

// Issue returns a certificate and its key, in PEM, for a server on loopback or for a client.
func (ca *CA) Issue(t testing.TB, commonName string) (certPEM, keyPEM []byte) {
	t.Helper()
	cert, key := ca.sign(t, &x509.Certificate{
		Subject:     pkix.Name{CommonName: commonName},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Pair is Issue for crypto/tls.
func (ca *CA) Pair(t testing.TB, commonName string) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(ca.Issue(t, commonName))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// Write writes a file that only its owner can read.
func Write(t testing.TB, path string, contents []byte) {
	t.Helper()
	if err := os.WriteFile(path, contents, 0o600); err != nil {
		t.Fatal(err)
	}
}

// sign signs a certificate with the authority; without one, it creates the authority's own.
func (ca *CA) sign(t testing.TB, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(24 * time.Hour)
	parent, signer := ca.cert, ca.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}
