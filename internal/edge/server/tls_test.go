package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"cellserver/internal/test/certtest"
	"cellserver/internal/wire/peer"
)

func TestTLSPeer(t *testing.T) {
	ca, other := certtest.NewCA(t), certtest.NewCA(t)
	for _, tt := range []struct {
		name  string
		certs []tls.Certificate
		want  string // the name; "refused" for none
	}{
		{"no certificate", nil, ""},
		{"certificate", []tls.Certificate{ca.Pair(t, "alice")}, "alice"},
		{"of another authority", []tls.Certificate{other.Pair(t, "alice")}, "refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(listen(t, "tcp"), 1, nil)
			l := listen(t, "tcp")
			s.addr = l.Addr().String()
			s.tls = &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(tt.certs) == 0 {
					return &tls.Certificate{}, nil
				}
				return &tt.certs[0], nil
			}}
			s.serve(t, func() error {
				return s.ServeTLS(l, &tls.Config{Certificates: []tls.Certificate{ca.Pair(t, "server")}, ClientCAs: ca.Pool, ClientAuth: tls.VerifyClientCertIfGiven})
			})
			nc := s.dial(t)
			if tt.want == "refused" {
				_, _ = io.WriteString(nc, "a\n")
				if _, err := nc.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "tls: ") {
					t.Errorf("got %v, want an alert that says why", err)
				}
				nc.Close()
				s.awaitClients(t, 0)
				if st := s.Stats(); st.HandshakesFailed != 1 || st.Accepted != 0 {
					t.Errorf("got %+v", st)
				}
				return
			}
			ask(t, nc, "a\n", "a\n")
			if p := s.all()[0].peer; !p.TLS || p.CertName != tt.want || p.Addr != nc.LocalAddr().String() || p.Unix {
				t.Errorf("got %+v, want the name %q", p, tt.want)
			}
		})
	}
}

// TestNotTLS checks that a failed handshake ends only its own connection.
func TestNotTLS(t *testing.T) {
	s := startTLS(t, 1, listen(t, "tcp"), nil)
	bystander := s.greet(t)
	for _, text := range []string{
		"PING\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\xff\xff" + strings.Repeat("\x00", 70_000),
		"\x16\x03\x01\x00\x04\x01\xff\xff\xff", "\x80\x2e\x01\x00\x02", strings.Repeat("\x00", 5), strings.Repeat("\xff", 100_000),
	} {
		nc := s.dialRaw(t)
		_, _ = io.WriteString(nc, text)
		closeWrite(t, nc)
		answer, _ := io.ReadAll(nc)
		if len(answer) > 0 && answer[0] != 0x15 { // an alert
			t.Errorf("%.20q got %q", text, answer)
		}
	}
	s.dialRaw(t).Close()
	s.await(t, func(st Stats) bool { return st.HandshakesFailed == 8 && st.Connected == 1 })
	ask(t, bystander, "a\n", "a\n")
	if st := s.Stats(); st.Panics != 0 || st.Accepted != 1 {
		t.Errorf("got %+v", st)
	}
	if n := strings.Count(s.log.String(), `level=INFO msg="TLS handshake failed`); n != 1 {
		t.Errorf("the failures were logged %d times at the level info, want once", n)
	}
}

// TestSilentHandshakes checks that silent handshakes end in time, block nobody, and count as clients.
func TestSilentHandshakes(t *testing.T) {
	for _, begin := range []string{"", "\x16\x03\x01\x02\x00\x01"} {
		synctest.Test(t, func(t *testing.T) {
			s := inBubble(startTLS(t, 0, newPipeListener(), func(c *Config) {
				c.Limits.MaxClients, c.Limits.HandshakeTimeout = 3, timeout
			}))
			var silent []net.Conn
			for range 2 {
				nc := s.dialRaw(t)
				write(t, nc, begin)
				silent = append(silent, nc)
			}
			s.greet(t)
			s.awaitClients(t, 3)
			if b, _ := io.ReadAll(s.dial(t)); len(b) > 0 || s.Stats().Refused != 1 {
				t.Errorf("beyond the limit a client got %q; %+v", b, s.Stats())
			}
			s.pass(timeout)
			for _, nc := range silent {
				_, _ = io.Copy(io.Discard, nc)
				nc.Close()
			}
			s.awaitClients(t, 1)
		})
	}
}

func TestShutdownDuringAHandshake(t *testing.T) {
	s := startTLS(t, 1, listen(t, "tcp"), nil)
	nc := s.dialRaw(t)
	s.awaitClients(t, 1)
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	_, _ = io.Copy(io.Discard, nc)
	nc.Close()
	if err := <-ended; err != nil || s.Stats().HandshakesFailed != 0 {
		t.Errorf("Shutdown: %v, %+v", err, s.Stats())
	}
}

// TestTLSEndIsSaid checks for close_notify, which tells the end from a cut.
func TestTLSEndIsSaid(t *testing.T) {
	for _, send := range []string{"close\n", ""} {
		synctest.Test(t, func(t *testing.T) {
			s := inBubble(startTLS(t, 0, newPipeListener(), func(c *Config) { c.Limits.IdleTimeout = timeout }))
			var wire bytes.Buffer
			raw := &recorded{Conn: s.dialRaw(t), read: &wire}
			config := s.tls.Clone()
			config.MaxVersion = tls.VersionTLS12 // its alerts are visible on the wire
			nc := tls.Client(raw, config)
			ask(t, nc, "a\n", "a\n")
			wire.Reset()
			write(t, nc, send)
			_, _ = io.Copy(io.Discard, nc)
			if !bytes.Contains(wire.Bytes(), []byte("\x15\x03\x03")) {
				t.Errorf("after %q the end had no alert: %q", send, wire.Bytes())
			}
		})
	}
}

type recorded struct {
	net.Conn
	read *bytes.Buffer
}

func (r *recorded) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.read.Write(b[:n])
	return n, err
}

// TestTLSItselfIsBounded checks that a client is closed that makes TLS answer again and again and reads
// nothing.
func TestTLSItselfIsBounded(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	g := newGoroutines(&Server{config: Config{Now: func() int64 { return 0 }}, handshakes: make(chan struct{}, 1)})
	c := newGoroutineConn(g, server, peer.Peer{})
	c.secure(&tls.Config{})
	defer c.out.wait()
	defer c.Kill()
	go func() {
		for {
			if _, err := client.Write([]byte{0}); err != nil {
				return
			}
		}
	}()
	answer := make([]byte, 1<<10)
	for range maxOwnOutput/len(answer) + 2 {
		if _, err := c.secured.Write(answer); err != nil {
			t.Fatal(err)
		}
		if _, err := c.secured.Read(make([]byte, 1)); err != nil {
			if !errors.Is(err, errUnread) {
				t.Errorf("got %v, want %v", err, errUnread)
			}
			return
		}
	}
	t.Error("the answers are not bounded")
}
