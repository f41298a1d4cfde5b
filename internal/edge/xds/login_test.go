package xds_test

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/test/certtest"
)

// TestWhoAsks: node, its metadata and headers are in each request or stream.
func TestWhoAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		config := server.configOf()
		config.NodeID, config.NodeMetadata = "test-node", map[string]string{"a": "1", "b": ""}
		config.Headers = map[string]string{"Authorization": "Bearer x", "y-z": "1"}
		run(t, config)
		for range 2 {
			s := <-server.streams
			for i := range 2 {
				q := s.next()
				fields := q.Node.GetMetadata().AsMap()
				if q.Node.Id != "test-node" || len(fields) != 2 || fields["a"] != "1" || fields["b"] != "" {
					t.Errorf("request %d: %v", i, q)
				}
				if i == 0 {
					s.send(t, answer(t, "1"))
				}
			}
			if got := slices.Concat(s.header("authorization"), s.header("y-z"), s.header(":authority")); !slices.Equal(got, []string{"Bearer x", "1", "xds.example:18001"}) {
				t.Errorf("headers %q", got)
			}
			s.end <- nil
		}
	})
}

// TestTLS: certificates are read anew for each connection. A wrong server is not asked.
func TestTLS(t *testing.T) {
	ca, other := certtest.NewCA(t), certtest.NewCA(t)
	alice, bob, stranger := ca.Pair(t, "alice"), ca.Pair(t, "bob"), other.Pair(t, "stranger")
	now := time.Now()                                       // synctest has another
	const refusedByServer = "Unavailable: connection error" // TLS 1.3 tells the client later, or not
	clock := func() time.Time { return now }
	secured := &tls.Config{
		Certificates: []tls.Certificate{ca.Pair(t, "server")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool, MinVersion: tls.VersionTLS12, Time: clock,
	}
	client := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", Certificates: []tls.Certificate{alice}, MinVersion: tls.VersionTLS12, Time: clock}
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, secured)
		config := server.configOf()
		var files atomic.Pointer[tls.Config] // nil for none
		config.TLS = func() (*tls.Config, error) {
			if c := files.Load(); c != nil {
				return c, nil
			}
			return nil, errors.New("the file is gone")
		}
		write := func(change func(c *tls.Config)) {
			c := client.Clone()
			change(c)
			files.Store(c)
		}
		write(func(*tls.Config) {})
		c := run(t, config)
		s := <-server.streams
		s.next()
		if got := s.certificate(t); got != "alice" {
			t.Errorf("the client is %s", got)
		}
		files.Store(nil)
		s.end <- nil
		for _, tt := range []struct {
			change func(c *tls.Config)
			want   string
		}{
			{nil, "the file is gone"},
			{func(c *tls.Config) { c.ServerName = "" }, "certificate is valid for localhost, not xds.example"},
			{func(c *tls.Config) { c.RootCAs = other.Pool }, "unknown authority"},
			{func(c *tls.Config) { c.Certificates = []tls.Certificate{stranger} }, refusedByServer},
			{func(c *tls.Config) { c.Certificates = nil }, refusedByServer},
		} {
			if tt.change != nil {
				write(tt.change)
			}
			time.Sleep(2 * time.Minute)
			if st := c.Status(); st.Connected || !strings.Contains(st.Failure, tt.want) {
				t.Errorf("%+v, want %s", st, tt.want)
			}
		}
		write(func(c *tls.Config) { c.Certificates = []tls.Certificate{bob} })
		s = <-server.streams
		if got := s.certificate(t); got != "bob" {
			t.Errorf("the client is %s", got)
		}
	})
}

// keptText is the file of a configuration.
func keptText(t *testing.T) []byte {
	t.Helper()
	dir := disktest.New()
	if err := envoyconfig.NewKept(dir).Save(marshal(t, answer(t, "1", domain("a", 1)))); err != nil {
		t.Fatal(err)
	}
	return dir.Contents(envoyconfig.KeptName)
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// resummed has the right checksum again.
func resummed(text []byte) []byte {
	if rest, ok := disk.CutSum(text); ok {
		return disk.AppendSum(rest)
	}
	const sumBytes = len("crc32c 1a2b3c4d\n")
	if i := len(text) - sumBytes; i >= 0 && strings.HasPrefix(string(text[i:]), "crc32c ") {
		text = text[:i]
	}
	return disk.AppendSum(text[:len(text):len(text)])
}
