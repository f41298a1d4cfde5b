package operation

import (
	"crypto/tls"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/certtest"
)

// served returns the common name of a server's certificate.
func served(t *testing.T, p *harness.Process, ca *certtest.CA) string {
	t.Helper()
	nc := tls.Client(harness.DialTCP(t, p.TLSAddr), &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"})
	defer func() { _ = nc.Close() }()
	harness.Exchange(t, nc, "PING\r\n", "+PONG\r\n")
	return nc.ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestTLSBesidePlain(t *testing.T) {
	files, ca := harness.NewTLSFiles(t)
	p := harness.StartServer(t, files.Flags()...)
	plain := p.Dial(t)
	p.TLS = &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
	over := p.Dial(t)
	harness.Exchange(t, over, "PING\r\n", "+PONG\r\n")
	harness.Exchange(t, plain, "CL.THROTTLE k 15 1 3600\r\n", "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:3600\r\n")
	if got := harness.Reply(t, over, "CL.THROTTLE k 15 1 3600"); !strings.HasPrefix(got, "*5 :0 :16 :14 :-1 :") {
		t.Errorf("over TLS: %s", got)
	}
	out, err := harness.RedisTool(t, &harness.Process{Addr: p.TLSAddr}, "redis-cli", "--tls", "--cacert", files.ClientCA, "exists", "k").CombinedOutput()
	if err != nil || string(out) != "1\n" {
		t.Errorf("redis-cli printed %q, %v", out, err)
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13} {
		nc := tls.Client(harness.DialTCP(t, p.TLSAddr), &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", MinVersion: version, MaxVersion: version})
		if err := nc.Handshake(); (err == nil) != (version >= tls.VersionTLS12) {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
	wrong := harness.DialTCP(t, p.TLSAddr)
	_, _ = io.WriteString(wrong, "PING\r\n")
	if b, _ := io.ReadAll(wrong); strings.Contains(string(b), "PONG") {
		t.Errorf("plain bytes got %q", b)
	}
	p.Eventually(t, "count the handshakes that failed", func() bool {
		return p.Metric(t, "cellserver_tls_handshakes_failed_total") == 3
	})
	harness.Exchange(t, over, "PING\r\n", "+PONG\r\n")
}

func TestTLSClientCertificates(t *testing.T) {
	t.Parallel()
	files, ca := harness.NewTLSFiles(t)
	const anonymous, known = "", "client"
	for _, tt := range []struct {
		auth            string
		without, within bool // whether clients without and with a certificate are accepted
	}{{"", false, true}, {"yes", false, true}, {"optional", true, true}, {"no", true, true}} {
		args := append(files.Flags(), "--tls-client-ca", files.ClientCA)
		if tt.auth != "" {
			args = append(args, "--tls-auth-clients", tt.auth)
		}
		p := harness.StartServer(t, args...)
		for name, want := range map[string]bool{anonymous: tt.without, known: tt.within} {
			config := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
			if name != anonymous {
				config.Certificates = []tls.Certificate{ca.Pair(t, name)}
			}
			nc := tls.Client(harness.DialTCP(t, p.TLSAddr), config)
			_, _ = io.WriteString(nc, "PING\r\n")
			got := make([]byte, 7)
			if _, err := io.ReadFull(nc, got); (err == nil) != want {
				t.Errorf("--tls-auth-clients %q: the client %q got %q, %v", tt.auth, name, got, err)
			}
		}
	}
}

// TestTLSFilesAreReloaded, at SIGHUP and without it; a bad file changes nothing.
func TestTLSFilesAreReloaded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	files, ca := harness.NewTLSFiles(t)
	p := harness.StartServer(t, files.Flags()...)
	if name := served(t, p, ca); name != "server" {
		t.Fatalf("got the certificate of %q", name)
	}
	files.Write(t, ca, "second")
	p.Reload(t, "using new TLS files")
	if name := served(t, p, ca); name != "second" {
		t.Errorf("after SIGHUP: got the certificate of %q", name)
	}
	certtest.Write(t, files.Cert, []byte("none"))
	p.Reload(t, "cannot use the changed TLS files")
	if name := served(t, p, ca); name != "second" {
		t.Errorf("after a bad file: got the certificate of %q", name)
	}
	files.Write(t, ca, "third")
	p.Eventually(t, "see the new file", func() bool { return served(t, p, ca) == "third" })
}

func TestTLSShutdownAndHalfClose(t *testing.T) {
	t.Parallel()
	files, ca := harness.NewTLSFiles(t)
	p := harness.StartServer(t, files.Flags()...)
	p.TLS = &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
	half := p.Dial(t).(*tls.Conn)
	pipeline := strings.Repeat("PING\r\n", 10_000)
	harness.Exchange(t, half, pipeline, strings.Repeat("+PONG\r\n", 10_000))
	harness.Send(t, half, pipeline)
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(half); string(got) != strings.Repeat("+PONG\r\n", 10_000) || err != nil {
		t.Errorf("after a half-close: got %d bytes, %v", len(got), err)
	}
	nc := p.Dial(t)
	harness.Exchange(t, nc, "PING\r\n", "+PONG\r\n")
	if code := p.Stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if rest, err := io.ReadAll(nc); len(rest) > 0 || err != nil {
		t.Errorf("the client was left with %q, %v", rest, err)
	}
}

func TestMistakesInFiles(t *testing.T) {
	t.Parallel()
	files, ca := harness.NewTLSFiles(t)
	_, otherKey := ca.Issue(t, "other")
	dir := t.TempDir()
	file := func(name, contents string) string {
		path := filepath.Join(dir, name)
		certtest.Write(t, path, []byte(contents))
		return path
	}
	other, empty := file("other", string(otherKey)), file("empty", "")
	encrypted := file("encrypted", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
	missing := filepath.Join(dir, "missing")
	const none = "no such file or directory"
	free := func(args ...string) []string {
		return append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", ""}, args...)
	}
	checkMistakes(t, []mistake{
		{"", free("--tls-addr", ":0", "--tls-cert", missing, "--tls-key", files.Key), 1, "certs: read --tls-cert " + missing + ": " + none},
		{"", free("--tls-addr", ":0", "--tls-cert", files.Cert, "--tls-key", missing), 1, "certs: read --tls-key " + missing + ": " + none},
		{"", free(append(files.Flags(), "--tls-client-ca", missing)...), 1, "certs: read --tls-client-ca " + missing + ": " + none},
		{"", free(append(files.Flags(), "--tls-client-ca", empty)...), 1, "certs: parse --tls-client-ca " + empty + ": no certificate in it; it must be a PEM file"},
		{"", free(append(files.Flags(), "--tls-key", other)...), 1, "certs: parse --tls-cert " + files.Cert + " and --tls-key " + other + ": private key does not match public key"},
		{"", free(append(files.Flags(), "--tls-key", encrypted)...), 1, "certs: parse --tls-key " + encrypted + ": the key is encrypted; decrypt it with openssl pkey"},
		{"", free(append(files.Flags(), "--tls-cert", empty)...), 1, "certs: parse --tls-cert " + empty + " and --tls-key " + files.Key + ": failed to find any PEM data in certificate input"},
		{"", free(append(files.Flags(), "--tls-addr", "no port")...), 2, `--tls-addr takes host:port, such as 127.0.0.1:6390; got "no port"`},
		{"", free("--tls-addr", ":0"), 2, "--tls-addr, --http-tls-addr and --grpc-tls-addr require --tls-cert and --tls-key"},
		{"", free("--tls-cert", files.Cert), 2, "TLS flags require --tls-addr, --http-tls-addr or --grpc-tls-addr; set one, such as --tls-addr 127.0.0.1:6390"},
		{"", free(append(files.Flags(), "--tls-auth-clients", "maybe")...), 2, `--tls-auth-clients takes yes, no or optional; got "maybe"`},
		{"", free(append(files.Flags(), "--tls-auth-clients", "yes")...), 2, "--tls-auth-clients yes requires --tls-client-ca"},
		{"", free("--protected-mode", "perhaps"), 2, `--protected-mode takes yes or no; got "perhaps"`},
		{"", free("--unixsocketperm", "700"), 2, "--unixsocketperm requires --unixsocket"},
		{"", free("--unixsocket", missing, "--unixsocketperm", "9"), 2, `--unixsocketperm takes octal permissions from 1 to 777, such as 700; got "9"`},
		{"", free("--unixsocket", missing, "--unixsocketperm", "1777"), 2, `--unixsocketperm takes octal permissions from 1 to 777, such as 700; got "1777"`},
		{"", free("--requirepass-file", missing), 1, "cannot read --requirepass-file " + missing + ": " + none},
		{"", free("--requirepass-file", empty), 1, "--requirepass-file " + empty + " is empty; write the password into it"},
		{"", free("--requirepass-file", other, "--requirepass", "x"), 2, "--requirepass and --requirepass-file are mutually exclusive; set only one"},
	})
}
