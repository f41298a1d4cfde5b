package target

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test binary act as a server for the tests: it listens on ports until it is interrupted.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "serve" {
		os.Exit(m.Run())
	}
	for _, port := range os.Args[2:] {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			_, _ = os.Stderr.WriteString("cannot listen on " + port)
			os.Exit(1)
		}
		defer func() { _ = l.Close() }()
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	<-interrupted
}

func listens(port int) bool {
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

func TestServer(t *testing.T) {
	spec := Spec{
		Argv:     []string{os.Args[0], "serve", "{port}", "{tls-port}", "{metrics-port}"},
		Password: "secret", Files: Files{CA: "ca", Cert: "cert", Key: "key"},
	}
	s, err := Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ports, pid := []int{s.Port, s.TLSPort}, s.cmd.Process.Pid
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.cmd.Process.Pid == pid || !slices.Equal(ports, []int{s.Port, s.TLSPort}) || !listens(s.Port) || !listens(s.TLSPort) {
		t.Errorf("after the restart: process %d, ports %d and %d; before it %d, %d", s.cmd.Process.Pid, s.Port, s.TLSPort, pid, ports)
	}
	s.Stop()
	if listens(s.Port) {
		t.Error("it still listens after Stop")
	}
}

func TestServerThatDoesNotStart(t *testing.T) {
	for _, test := range []struct {
		argv []string
		want string
	}{
		{[]string{os.Args[0], "serve", "no-port"}, "it ended: cannot listen on no-port"},
		{[]string{"/nonexistent"}, "target: start /nonexistent: "},
	} {
		if _, err := Start(t.Context(), Spec{Argv: test.argv}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.argv, err, test.want)
		}
	}
}

func TestWordsAreReplaced(t *testing.T) {
	s, err := newServer(t.Context(), Spec{
		Argv:     []string{"x", "--a=127.0.0.1:{port}", "{cert},{key},{ca}", "{password}", "{else}"},
		Password: "secret", Files: Files{CA: "A", Cert: "C", Key: "K"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"x", "--a=127.0.0.1:" + strconv.Itoa(s.Port), "C,K,A", "secret", "{else}"}
	if !slices.Equal(s.argv, want) {
		t.Errorf("%q, want %q", s.argv, want)
	}
}

func TestCertificates(t *testing.T) {
	files, err := WriteCertificates(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatal("no certificate in the authority's file")
	}
	for _, name := range []string{"127.0.0.1", "::1", "localhost"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: "example.com", Roots: roots}); err == nil {
		t.Error("valid for example.com")
	}
}
