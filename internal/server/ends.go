package server

import (
	"context"
	"log/slog"
	"time"

	"cellserver/internal/peer"
)

// end is why a connection has ended.
type end uint8

const (
	endClient    end = iota // it has closed, or the way to it has
	endSession              // QUIT, or bytes that are no command
	endIdle                 // Limits.IdleTimeout
	endHandshake            // Limits.HandshakeTimeout, after TLS
	endOutput               // replies unread: Limits.OutputTimeout, or the bound before AUTH
	endKilled               // CLIENT KILL, or a MONITOR that has fallen behind
	endShutdown
	endPanic
	endSystem // could not be served
	ends
)

func (e end) String() string {
	return [...]string{"client", "session", "idle", "handshake", "output", "killed", "shutdown", "panic", "system"}[e]
}

// traffic is bytes on the wire, those of TLS as they are there.
type traffic struct{ received, sent uint64 }

func (t *traffic) add(other traffic) {
	t.received += other.received
	t.sent += other.sent
}

// left notes the end of a connection that was accepted; the session is nil if there was no time for one.
func (s *Server) left(session peer.Session, p peer.Peer, why end, t traffic, age time.Duration) {
	s.closed[why].Add(1)
	if !s.config.Log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	name := ""
	if session != nil {
		name = session.Name()
	}
	s.config.Log.Debug("client disconnected", "client", p.Addr, "name", name, "tls", p.TLS, "reason", why.String(),
		"received_bytes", t.received, "sent_bytes", t.sent, "age", age.Round(time.Microsecond).String())
}

// tellUnread tells of a client that is closed for the replies that it does not read.
func (s *Server) tellUnread(p peer.Peer, pendingBytes int) {
	if count := s.unread.Due(s.config.Now()); count > 0 {
		s.config.Log.Warn("a client does not read its replies; connection closed", "client", p.Addr,
			"pending_bytes", pendingBytes, "count", count, "hint", "see --max-output-bytes and --output-timeout")
	}
}
