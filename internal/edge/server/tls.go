package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// secured is a connection's TLS and the network under it as crypto/tls sees it. It reads from the client;
// writes are collected and then sent like all replies, so that only reads block. It belongs to the
// connection's goroutine.
type secured struct {
	net.Conn // the client's
	conn     *goroutineConn
	tls      *tls.Conn
	sealed   []byte // unsent records; reused

	handshake *Handshake
}

// maxOwnOutput bounds the pending bytes of the handshake and of later answers by TLS itself.
const maxOwnOutput = 64 << 10

// secure makes the connection begin with a handshake.
func (c *goroutineConn) secure(config *tls.Config) {
	c.secured = &secured{Conn: c.nc, conn: c, handshake: c.driver.server.BeginHandshake()}
	c.secured.tls = tls.Server(c.secured, config)
	c.source = c.secured.tls
}

var errUnread = errors.New("server: answer over TLS: the client reads nothing")

// Read implements net.Conn. It first sends what was collected, which the client may be waiting for. A client
// could make TLS answer forever by requesting new keys, unseen by the session, so the bound is here.
func (s *secured) Read(b []byte) (int, error) {
	if len(s.sealed) > 0 {
		pending, err := s.push()
		if err != nil {
			return 0, err
		}
		maxPending := maxOwnOutput
		if s.conn.authenticated() {
			maxPending += s.conn.limits().MaxOutputBytes
		}
		if pending > maxPending {
			return 0, errUnread
		}
	}
	n, err := s.handshake.Read(b, s.Conn)
	s.conn.received.Add(uint64(n))
	return n, err
}

func (s *secured) Write(b []byte) (int, error) {
	s.sealed = append(s.sealed, b...)
	return len(b), nil
}

// SetWriteDeadline does nothing: TLS would set it with its last record, while the queue may still be written.
func (s *secured) SetWriteDeadline(time.Time) error { return nil }

// push moves the collected records to the output.
func (s *secured) push() (pending int, err error) {
	if len(s.sealed) == 0 {
		return 0, nil
	}
	pending, err = s.conn.out.send(s.sealed)
	s.sealed = s.sealed[:0]
	return pending, err
}

// sealedBytes bounds how much is sealed at a time, which keeps the collecting buffer small.
const sealedBytes = 32 << 10

func (s *secured) send(b []byte) (pending int, err error) {
	for len(b) > 0 && err == nil {
		piece := b[:min(len(b), sealedBytes)]
		if _, err = s.tls.Write(piece); err == nil {
			pending, err = s.push()
		}
		b = b[len(piece):]
	}
	return pending, err
}

// closeNotify sends close_notify, which tells an end from a cut. Before the end of the handshake there may
// only be an alert to send.
func (s *secured) closeNotify() {
	_ = s.tls.CloseWrite()
	_, _ = s.push()
}

// handshake performs the TLS handshake and asks whether the client is admitted. It returns false if the
// connection is to end.
func (c *goroutineConn) handshake() bool {
	if !c.prepareRead() {
		return false
	}
	s := c.driver.server
	err := c.secured.tls.HandshakeContext(context.Background()) // the read deadline bounds it
	c.secured.handshake.End()
	if _, sendErr := c.secured.push(); err == nil { // in any case: there may be an alert
		err = sendErr
	}
	if err != nil {
		if !c.driver.isDraining() {
			s.handshakeFailed(err, c.peer)
		}
		return false
	}
	c.secured.sealed = nil // later records are shorter
	c.peer.TLS, c.peer.CertName = true, CertName(c.secured.tls.ConnectionState())
	if refusal := s.refusal(c.peer); refusal != "" {
		_, _ = c.secured.send(errorLine(refusal))
		return false
	}
	return true
}

// CertName returns the common name of a verified client certificate, or "".
func CertName(state tls.ConnectionState) string {
	if len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return ""
	}
	return state.VerifiedChains[0][0].Subject.CommonName
}
