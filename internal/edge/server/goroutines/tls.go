package goroutines

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"cellserver/internal/edge/server/conn"
)

// secured is the TLS of a connection, and what crypto/tls takes for the network: it reads from the client, but what
// is written is collected and then goes the way of all replies, so that nothing but reading ever blocks. It belongs
// to the connection's goroutine.
type secured struct {
	net.Conn // the client's
	conn     *connection
	tls      *tls.Conn
	sealed   []byte // records that are yet to be sent; reused
}

// maxOwnOutput is what may be pending of the handshake, and of the answers that TLS itself gives later.
const maxOwnOutput = 64 << 10

// secure has the connection begin with a handshake.
func (c *connection) secure(config *tls.Config) {
	c.secured = &secured{Conn: c.nc, conn: c}
	c.secured.tls = tls.Server(c.secured, config)
	c.source = c.secured.tls
}

var errUnread = errors.New("server: answer over TLS: the client reads nothing")

// Read is where TLS waits for the client, which may need what was collected first. A client could have it answer
// without end, by asking for new keys again and again; the session sees nothing of that, so the bound is here.
func (s *secured) Read(b []byte) (int, error) {
	if len(s.sealed) > 0 {
		pending, err := s.push()
		if err != nil {
			return 0, err
		}
		most := maxOwnOutput
		if s.conn.authenticated() {
			most += s.conn.limits().MaxOutputBytes
		}
		if pending > most {
			return 0, errUnread
		}
	}
	n, err := s.Conn.Read(b)
	s.conn.received.Add(uint64(n))
	return n, err
}

func (s *secured) Write(b []byte) (int, error) {
	s.sealed = append(s.sealed, b...)
	return len(b), nil
}

// SetWriteDeadline does nothing: TLS would have the writing end with its last record, and others write the queue.
func (s *secured) SetWriteDeadline(time.Time) error { return nil }

// push hands what was collected to the output.
func (s *secured) push() (pending int, err error) {
	if len(s.sealed) == 0 {
		return 0, nil
	}
	pending, err = s.conn.out.send(s.sealed)
	s.sealed = s.sealed[:0]
	return pending, err
}

// sealedBytes is how much is sealed at a time, so that what it is collected in stays small.
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

// closeNotify tells the client that nothing more comes, so that it can tell the end from a cut. Before the end of the
// handshake there is only an alert to send, if that.
func (s *secured) closeNotify() {
	_ = s.tls.CloseWrite()
	_, _ = s.push()
}

// handshake agrees with the client on TLS and asks whether it may come in. It is false if the connection is to end.
func (c *connection) handshake() bool {
	if !c.prepareRead(readForInput) {
		return false
	}
	h := c.driver.host
	err := c.secured.tls.HandshakeContext(context.Background()) // its end is the read deadline
	if _, sendErr := c.secured.push(); err == nil {             // push in any case: there may be an alert
		err = sendErr
	}
	if err != nil {
		if !c.driver.isDraining() {
			h.HandshakeFailed(err, c.peer)
		}
		return false
	}
	c.secured.sealed = nil // what follows is shorter
	c.peer.TLS, c.peer.CertName = true, certName(c.secured.tls.ConnectionState())
	if refusal := h.Refusal(c.peer); refusal != "" {
		_, _ = c.secured.send(conn.ErrorLine(refusal))
		return false
	}
	return true
}

// certName is the common name in the client's certificate, if one was verified.
func certName(state tls.ConnectionState) string {
	if len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return ""
	}
	return state.VerifiedChains[0][0].Subject.CommonName
}
