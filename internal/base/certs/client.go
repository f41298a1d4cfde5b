package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"

	"cellserver/internal/base/smallfile"
)

// Authorities reads the certificate authorities of a PEM file.
func Authorities(path string) (*x509.CertPool, error) {
	pem, err := smallfile.Read(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New(path + " has no certificate in PEM")
	}
	return pool, nil
}

// Pair reads a client's certificate and key from PEM files.
func Pair(certPath, keyPath string) ([]tls.Certificate, error) {
	cert, err := smallfile.Read(certPath)
	if err != nil {
		return nil, err
	}
	key, err := smallfile.Read(keyPath)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, errors.New(certPath + " and " + keyPath + ": " + oneLine(err))
	}
	return []tls.Certificate{pair}, nil
}
