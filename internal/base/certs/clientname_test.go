package certs

import (
	"crypto/tls"
	"strings"
	"testing"

	"cellserver/internal/test/certtest"
)

// TestClientName: a client's certificate must have the name, in resumed sessions, too.
func TestClientName(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for name, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "alice": false, "other.example": false} {
			r := newHarness(t, tls.RequireAndVerifyClientCert)
			client := &tls.Config{
				RootCAs: r.ca.Pool, ServerName: "localhost", MinVersion: version, MaxVersion: version,
				Certificates:       []tls.Certificate{r.ca.Pair(t, "alice")},
				ClientSessionCache: tls.NewLRUClientSessionCache(1),
			}
			if _, _, err := shakeHands(t, r.Config(), client); err != nil { // by any name, which may be resumed
				t.Fatal(err)
			}
			r.files.ClientName = name
			named, err := r.open()
			if err != nil {
				t.Fatal(err)
			}
			config := named.Config()
			for range 2 {
				if _, _, err := shakeHands(t, config, client); (err == nil) != want {
					t.Errorf("%s, %s: %v", tls.VersionName(version), name, err)
				}
			}
		}
	}
}

// TestVariables: where files are named by variables, errors name these.
func TestVariables(t *testing.T) {
	r := newHarness(t, tls.RequireAndVerifyClientCert)
	r.files.Variables = &Variables{Cert: "CERT", Key: "KEY", ClientCA: "AUTHORITIES"}
	for _, tt := range []struct{ path, want string }{
		{r.files.ClientCA, "certs: parse AUTHORITIES "},
		{r.files.Key, "certs: parse CERT "},
	} {
		certtest.Write(t, tt.path, []byte("none"))
		if _, err := r.open(); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	r.files.Key = "/nosuch"
	if _, err := r.open(); err == nil || !strings.HasPrefix(err.Error(), "certs: read KEY /nosuch: ") {
		t.Errorf("got %v", err)
	}
}
