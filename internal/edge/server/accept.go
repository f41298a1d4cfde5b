package server

import (
	"crypto/tls"
	"errors"
	"net"
	"time"

	"cellserver/internal/edge/server/conn"
	"cellserver/internal/wire/peer"
)

// ErrClosed is what Serve returns after Shutdown.
var ErrClosed = errors.New("server: closed")

// Serve accepts connections from l until Shutdown, and then returns ErrClosed.
func (s *Server) Serve(l net.Listener) error { return s.serve(l, s.admit) }

// ServeTLS is Serve for clients that speak TLS.
func (s *Server) ServeTLS(l net.Listener, config *tls.Config) error {
	return s.serve(l, func(nc net.Conn) { s.admitTLS(nc, config) })
}

func (s *Server) serve(l net.Listener, admit func(net.Conn)) error {
	if !s.track(l) {
		_ = l.Close()
		return ErrClosed
	}
	var pause backoff
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			if pause.recovered() {
				s.config.Log.Info("accepting connections again", "addr", l.Addr().String())
			}
			admit(nc)
		case s.isClosing():
			return ErrClosed
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			if pause.first() {
				s.config.Log.Error("cannot accept connections; trying again", "error", err,
					"hint", "where it says too many open files: raise the limit (ulimit -n) or lower --maxclients")
			}
			time.Sleep(pause.next())
		}
	}
}

func (s *Server) track(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// admit hands a connection to the driver, or refuses it in Redis's words.
func (s *Server) admit(nc net.Conn) {
	p := peerOf(nc)
	if refusal := s.reserve(p); refusal != "" {
		refuse(nc, refusal)
		return
	}
	if refusal := s.refusal(p); refusal != "" {
		refuse(nc, refusal)
		s.release(p)
		return
	}
	s.driver.Serve(nc, p)
}

// peerOf names both sides of a connection. Those of a unix socket are its path, as in Redis.
func peerOf(nc net.Conn) peer.Peer {
	local := nc.LocalAddr()
	if local.Network() == "unix" {
		return peer.Peer{Addr: local.String() + ":0", LocalAddr: local.String() + ":0", Unix: true}
	}
	return peer.Peer{Addr: nc.RemoteAddr().String(), LocalAddr: local.String()}
}

// admitTLS does the same where nothing can be said before the handshake. Who has no place is closed in silence, as by
// Redis; whether the client may come in is asked when its certificate is known.
func (s *Server) admitTLS(nc net.Conn, config *tls.Config) {
	p := peerOf(nc)
	if s.reserve(p) != "" {
		_ = nc.Close()
		return
	}
	s.goroutines.ServeTLS(nc, p, config)
}

// reserve counts one more that is connected, within MaxClients and MaxClientsPerAddress; release takes that back. It
// returns what a client is refused with that has no place.
func (s *Server) reserve(p peer.Peer) (refusal string) {
	limits := s.host.Limits()
	if s.connected.Add(1) > int64(limits.MaxClients) {
		s.connected.Add(-1)
		s.refused.Add(1)
		if count := s.refusedLines.Due(s.config.Now()); count > 0 {
			s.config.Log.Warn("the maximum number of clients is reached; connection refused", "count", count,
				"hint", "raise --maxclients, or see with CLIENT LIST who holds the connections")
		}
		return "ERR max number of clients reached"
	}
	if !s.addresses.take(&p, limits.MaxClientsPerAddress) {
		s.connected.Add(-1)
		s.refusedAddresses.Add(1)
		if count := s.refusedAddressLines.Due(s.config.Now()); count > 0 {
			s.config.Log.Warn("the maximum number of clients of one address is reached; connection refused", "client", p.Addr, "count", count,
				"hint", "raise --maxclients-per-address, or see with CLIENT LIST who holds the connections")
		}
		return "ERR max number of clients per address reached"
	}
	return ""
}

// refusal asks whether a client may come in, and counts it.
func (s *Server) refusal(p peer.Peer) (refusal string) {
	if s.config.Admit != nil {
		refusal = s.config.Admit(p)
	}
	if refusal == "" {
		s.accepted.Add(1)
	} else {
		s.denied.Add(1)
		if count := s.deniedLines.Due(s.config.Now()); count > 0 {
			s.config.Log.Warn("a client was refused", "client", p.Addr, "count", count, "reply", refusal)
		}
	}
	return refusal
}

func refuse(nc net.Conn, refusal string) {
	_ = nc.SetWriteDeadline(conn.DeadlineIn(refusalTimeout))
	_, _ = nc.Write(conn.ErrorLine(refusal))
	_ = nc.Close()
}

// refusalTimeout is never used up: the first bytes on a connection go into its empty send buffer.
const refusalTimeout = 100 * time.Millisecond

func (s *Server) release(p peer.Peer) {
	s.addresses.leave(&p)
	s.connected.Add(-1)
}

// backoff is the pause after a failed accept: 5 ms, doubled each time up to 1 s, as net/http does.
type backoff struct{ pause time.Duration }

func (b *backoff) first() bool { return b.pause == 0 }

func (b *backoff) next() time.Duration {
	b.pause = min(max(2*b.pause, 5*time.Millisecond), time.Second)
	return b.pause
}

func (b *backoff) recovered() bool {
	failed := b.pause != 0
	b.pause = 0
	return failed
}
