package server

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"cellserver/internal/wire/peer"
)

// Stats is what a Server has counted.
type Stats struct {
	Connected        int
	Accepted         uint64 // that were neither refused nor denied, nor failed the handshake
	Refused          uint64 // over MaxClients
	RefusedAddresses uint64 // over MaxClientsPerAddress
	Denied           uint64 // by Config.Admit
	HandshakesFailed uint64 // of TLS
	Panics           uint64 // connections closed by a panic
	// Closed counts the accepted connections that have ended, by reason: client, session (QUIT, or bytes that are no
	// command), idle, handshake, input (a command half-sent), output, memory, killed, shutdown, panic or system.
	Closed         map[string]uint64
	Received, Sent uint64 // bytes on the wire
}

// traffic is bytes on the wire, those of TLS as they are there.
type traffic struct{ received, sent uint64 }

func (t *traffic) add(other traffic) {
	t.received += other.received
	t.sent += other.sent
}

// Stats returns the server's figures.
func (s *Server) Stats() Stats {
	bytes := s.driver.traffic()
	st := Stats{
		Connected:        int(s.connected.Load()),
		Accepted:         s.accepted.Load(),
		Refused:          s.refused.Load(),
		RefusedAddresses: s.refusedAddresses.Load(),
		Denied:           s.denied.Load(),
		HandshakesFailed: s.handshakesFailed.Load(),
		Panics:           s.panics.Load(),
		Closed:           make(map[string]uint64, closeReasonCount),
		Received:         bytes.received,
		Sent:             bytes.sent,
	}
	for reason := range closeReasonCount {
		st.Closed[reason.String()] = s.closed[reason].Load()
	}
	return st
}

// closedConn counts and logs the end of a connection that was accepted; the session is nil if there was no time for
// one.
func (s *Server) closedConn(session peer.Session, p peer.Peer, l *lifecycle, t traffic) {
	s.closed[l.reason].Add(1)
	if !s.config.Log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	name := ""
	if session != nil {
		name = session.Name()
	}
	age := time.Duration(s.config.Now() - l.openedNs).Round(time.Microsecond)
	s.config.Log.Debug("client disconnected", "client", p.Addr, "name", name, "tls", p.TLS, "reason", l.reason.String(),
		"received_bytes", t.received, "sent_bytes", t.sent, "age", age.String())
}

// logHalfSent tells of a client that is closed for a command that it has not sent all of.
func (s *Server) logHalfSent(p peer.Peer, bytes int) {
	if count := s.halfSentLines.Due(s.config.Now()); count > 0 {
		s.config.Log.Warn("a client has left a long command half-sent; connection closed", "client", p.Addr, "bytes", bytes,
			"count", count, "hint", "see --input-timeout")
	}
}

// logUnread tells of a client that is closed for the replies that it does not read.
func (s *Server) logUnread(p peer.Peer, pendingBytes int) {
	if count := s.unreadLines.Due(s.config.Now()); count > 0 {
		s.config.Log.Warn("a client does not read its replies; connection closed", "client", p.Addr,
			"pending_bytes", pendingBytes, "count", count, "hint", "see --max-output-bytes and --output-timeout")
	}
}

// logUnserved tells of a client that the system cannot serve.
func (s *Server) logUnserved(p peer.Peer, err error) {
	if count := s.unservedLines.Due(s.config.Now()); count > 0 {
		s.config.Log.Error("cannot serve a client; connection closed", "client", p.Addr, "error", err, "count", count,
			"hint", "where it says no space left: raise fs.epoll.max_user_watches (sysctl) or lower --maxclients")
	}
}

// panicked counts and logs a panic of a connection, which the caller then closes.
func (s *Server) panicked(value any, p peer.Peer) {
	s.panics.Add(1)
	if count := s.panicLines.Due(s.config.Now()); count > 0 {
		s.config.Log.Error("a connection panicked and is closed; please report this",
			"panic", value, "client", p.Addr, "count", count, "stack", string(debug.Stack()))
	}
}

// handshakeFailed counts and logs a handshake of TLS that came to nothing.
func (s *Server) handshakeFailed(err error, p peer.Peer) {
	s.handshakesFailed.Add(1)
	level, count := slog.LevelDebug, s.handshakeLines.Due(s.config.Now())
	if count > 0 {
		level = slog.LevelInfo
	}
	s.config.Log.Log(context.Background(), level, "a TLS handshake failed; connection closed",
		"client", p.Addr, "error", err, "count", max(count, 1))
}
