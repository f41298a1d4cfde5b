package certs

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellserver/internal/test/certtest"
)

// harness is a Keeper and its files.
type harness struct {
	*Keeper
	ca    *certtest.CA
	files Files
	now   time.Time
	log   bytes.Buffer
}

func newHarness(t *testing.T, clients tls.ClientAuthType) *harness {
	t.Helper()
	dir := t.TempDir()
	r := &harness{ca: certtest.NewCA(t), now: time.Now()}
	r.files = Files{Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"), Clients: clients}
	if clients != tls.NoClientCert {
		r.files.ClientCA = filepath.Join(dir, "ca")
		certtest.Write(t, r.files.ClientCA, r.ca.PEM)
	}
	r.issue(t, "first")
	var err error
	if r.Keeper, err = r.open(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *harness) open() (*Keeper, error) {
	return Open(r.files, func() time.Time { return r.now }, slog.New(slog.NewTextHandler(&r.log, nil)))
}

// issue writes a new certificate to the files.
func (r *harness) issue(t *testing.T, name string) {
	t.Helper()
	cert, key := r.ca.Issue(t, name)
	certtest.Write(t, r.files.Cert, cert)
	certtest.Write(t, r.files.Key, key)
}

// shakeHands connects a client, and returns both sides' connection states.
func shakeHands(t *testing.T, config, client *tls.Config) (state, onServer tls.ConnectionState, err error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	here, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server := tls.Server(there, config)
	result := make(chan error, 1)
	go func() {
		defer there.Close()
		err := server.Handshake()
		if err == nil {
			_, err = server.Write([]byte{0}) // after the ticket
		}
		result <- err
	}()
	nc := tls.Client(here, client)
	if _, err = nc.Read(make([]byte, 1)); err != nil {
		here.Close()
		return state, onServer, errors.Join(err, <-result)
	}
	err = <-result
	return nc.ConnectionState(), server.ConnectionState(), err
}

// TestChangesAreSeen changes and breaks the files, some seconds apart.
func TestChangesAreSeen(t *testing.T) {
	r := newHarness(t, tls.NoClientCert)
	broken := func() { certtest.Write(t, r.files.Key, []byte("none")) }
	for i, step := range []struct {
		change func()
		after  time.Duration
		want   string
		line   string // in the log, count times
		count  int
	}{
		{nil, 0, "first", "level=", 0},
		{func() { r.issue(t, "second") }, 0, "first", "level=", 0},
		{nil, checkInterval, "second", "using new TLS files", 1},
		{nil, checkInterval, "second", "using new TLS files", 1},
		{broken, checkInterval, "second", `hint="correct the files; `, 1},
		{nil, time.Minute, "second", `hint="correct the files; `, 1},
		{r.Reload, 0, "second", `hint="correct the files; `, 2},
		{func() { certtest.Write(t, r.files.Cert, nil) }, checkInterval, "second", `hint="correct the files; `, 3},
		{func() { r.issue(t, "third") }, checkInterval, "third", "using new TLS files", 2},
		{func() { r.issue(t, "fourth"); r.Reload() }, 0, "fourth", "using new TLS files", 3},
	} {
		if step.change != nil {
			step.change()
		}
		r.now = r.now.Add(step.after)
		r.check()
		if got := r.leaf().Subject.CommonName; got != step.want {
			t.Errorf("step %d: serves %q, want %q", i, got, step.want)
		}
		if n := strings.Count(r.log.String(), step.line); n != step.count {
			t.Errorf("step %d: %q is %d times in the log, want %d: %s", i, step.line, n, step.count, r.log.String())
		}
	}
}

// TestResumption: a new certificate keeps sessions resumable; new authorities of client certificates do not.
func TestResumption(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			r := newHarness(t, tls.RequireAndVerifyClientCert)
			config := r.Config()
			client := &tls.Config{
				RootCAs: r.ca.Pool, ServerName: "localhost", MinVersion: version, MaxVersion: version,
				Certificates:       []tls.Certificate{r.ca.Pair(t, "alice")},
				ClientSessionCache: tls.NewLRUClientSessionCache(1),
			}
			ask := func() (resumed bool, err error) {
				state, onServer, err := shakeHands(t, config, client)
				if err == nil && onServer.VerifiedChains[0][0].Subject.CommonName != "alice" {
					t.Errorf("the server knows the client as %q", onServer.VerifiedChains[0][0].Subject.CommonName)
				}
				return state.DidResume, err
			}
			for i, want := range []bool{false, true, true} {
				if resumed, err := ask(); resumed != want || err != nil {
					t.Errorf("connection %d: resumed: %v, %v", i, resumed, err)
				}
			}
			r.issue(t, "second")
			r.Reload()
			if resumed, err := ask(); !resumed || err != nil {
				t.Errorf("after a new certificate: resumed: %v, %v", resumed, err)
			}
			certtest.Write(t, r.files.ClientCA, certtest.NewCA(t).PEM)
			r.Reload()
			if _, err := ask(); err == nil {
				t.Error("a client of a removed authority was accepted")
			}
		})
	}
}

func TestOutdatedCertificateIsLogged(t *testing.T) {
	r := newHarness(t, tls.NoClientCert)
	if strings.Contains(r.log.String(), "expired or is not valid yet") {
		t.Errorf("warned without reason: %s", r.log.String())
	}
	r.now = r.now.Add(48 * time.Hour)
	if _, err := r.open(); err != nil || !strings.Contains(r.log.String(), "expired or is not valid yet") {
		t.Errorf("no warning: %v, %s", err, r.log.String())
	}
}
