package server

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/base/often"
	"cellserver/internal/wire/peer"
)

// ErrClosed is returned by Serve after Shutdown.
var ErrClosed = errors.New("server: closed")

// Serve accepts connections from l until Shutdown, then returns ErrClosed.
func (s *Server) Serve(l net.Listener) error { return s.serve(l, s.admit) }

// ServeTLS is Serve over TLS.
func (s *Server) ServeTLS(l net.Listener, config *tls.Config) error {
	return s.serve(l, func(nc net.Conn) { s.admitTLS(nc, config) })
}

func (s *Server) serve(l net.Listener, admit func(net.Conn)) error {
	if !s.track(l) {
		_ = l.Close()
		return ErrClosed
	}
	var pause time.Duration // after a failed Accept: 5 ms, doubled each time up to 1 s, as in net/http
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			if pause > 0 {
				s.config.Log.Info("accepting connections again", "addr", l.Addr().String())
			}
			pause = 0
			admit(nc)
		case s.isClosing():
			return ErrClosed
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			if pause == 0 {
				s.config.Log.Error("cannot accept connections; trying again", "error", err,
					"hint", "for \"too many open files\", raise the limit (ulimit -n) or lower --maxclients")
			}
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			time.Sleep(pause)
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

// admit passes a connection to the driver, or refuses it as Redis does.
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
	s.driver.serve(nc, p)
}

// peerOf names both ends of a connection; for a unix socket both are its path, as in Redis.
func peerOf(nc net.Conn) peer.Peer {
	local := nc.LocalAddr()
	if local.Network() == "unix" {
		return peer.Peer{Addr: local.String() + ":0", LocalAddr: local.String() + ":0", Unix: true}
	}
	return peer.Peer{Addr: nc.RemoteAddr().String(), LocalAddr: local.String()}
}

// admitTLS is admit where nothing can be said before the handshake. A client over a maximum is closed
// silently, as by Redis; Admit is asked once the certificate is known.
func (s *Server) admitTLS(nc net.Conn, config *tls.Config) {
	p := peerOf(nc)
	if s.reserve(p) != "" {
		_ = nc.Close()
		return
	}
	s.goroutines.serveTLS(nc, p, config)
}

// reserve counts a connection, within MaxClients and MaxClientsPerAddress, or returns the refusal. release
// takes it back.
func (s *Server) reserve(p peer.Peer) (refusal string) {
	limits := s.limits.Load()
	if s.connected.Add(1) > int64(limits.MaxClients) {
		return s.overMaximum(p, "clients", "--maxclients", &s.refused, &s.refusedLines)
	}
	if origin, ok := p.Origin(); ok && !s.addresses.Take(origin, 0, limits.MaxClientsPerAddress) {
		return s.overMaximum(p, "clients per address", "--maxclients-per-address", &s.refusedAddresses, &s.refusedAddressLines)
	}
	return ""
}

func (s *Server) overMaximum(p peer.Peer, what, flag string, refused *atomic.Uint64, lines *often.Counter) (refusal string) {
	s.connected.Add(-1)
	refused.Add(1)
	s.log(slog.LevelWarn, lines, "connection refused: maximum number of "+what+" reached", p, "hint", "raise "+flag+", or see CLIENT LIST")
	return "ERR max number of " + what + " reached"
}

// refusal asks Admit about a client, and counts the result.
func (s *Server) refusal(p peer.Peer) (refusal string) {
	if s.config.Admit != nil {
		refusal = s.config.Admit(p)
	}
	if refusal == "" {
		s.accepted.Add(1)
	} else {
		s.denied.Add(1)
		s.log(slog.LevelWarn, &s.deniedLines, "connection refused", p, "reply", refusal)
	}
	return refusal
}

func refuse(nc net.Conn, refusal string) {
	_ = nc.SetWriteDeadline(deadlineIn(100 * time.Millisecond)) // never reached, as the send buffer is empty
	_, _ = nc.Write(errorLine(refusal))
	_ = nc.Close()
}

// errorLine returns an error as RESP.
func errorLine(text string) []byte { return []byte("-" + text + "\r\n") }

func (s *Server) release(p peer.Peer) {
	if origin, ok := p.Origin(); ok {
		s.addresses.Leave(origin)
	}
	s.connected.Add(-1)
}

// Tally counts what is under way, by key. The zero value is empty. It is safe for concurrent use.
type Tally[K comparable] struct {
	mu    sync.Mutex // rank 90: guards all below
	byKey map[K]int
	all   int
}

// Take counts one more. It returns false if there are most already, or mostOfKey of its key; 0 is no maximum.
func (t *Tally[K]) Take(key K, most, mostOfKey int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if most > 0 && t.all >= most || mostOfKey > 0 && t.byKey[key] >= mostOfKey {
		return false
	}
	if t.byKey == nil {
		t.byKey = map[K]int{}
	}
	t.byKey[key]++
	t.all++
	return true
}

// Leave undoes Take.
func (t *Tally[K]) Leave(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all--
	if t.byKey[key]--; t.byKey[key] == 0 {
		delete(t.byKey, key)
	}
	if t.all == 0 {
		t.byKey = nil // a map keeps its largest size
	}
}
