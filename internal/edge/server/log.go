package server

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"cellserver/internal/base/often"
	"cellserver/internal/wire/peer"
)

// ended counts and logs the end of an accepted connection; session is nil if it has none here.
func (s *Server) ended(session peer.Session, p peer.Peer, l *life, t traffic) {
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

// left counts and logs the end of a connection without a session, and releases it.
func (s *Server) left(p peer.Peer, openedNs int64, reason Reason, t traffic) {
	s.ended(nil, p, &life{openedNs: openedNs, reason: reason}, t)
	s.release(p)
}

func (s *Server) log(level slog.Level, lines *often.Counter, message string, p peer.Peer, args ...any) {
	if count := lines.Due(s.config.Now()); count > 0 {
		s.config.Log.Log(context.Background(), level, message, append([]any{"client", p.Addr, "count", count}, args...)...)
	}
}

// logHalfSent logs that a client is closed for a half-sent command.
func (s *Server) logHalfSent(p peer.Peer, bytes int) {
	s.log(slog.LevelWarn, &s.halfSentLines, "client left a long command half-sent; connection closed", p,
		"bytes", bytes, "hint", "see --input-timeout")
}

// logUnread logs that a client is closed for unread replies.
func (s *Server) logUnread(p peer.Peer, pendingBytes int) {
	s.log(slog.LevelWarn, &s.unreadLines, "client does not read its replies; connection closed", p,
		"pending_bytes", pendingBytes, "hint", "see --max-output-bytes and --output-timeout")
}

// logUnserved logs that the system could not serve a client.
func (s *Server) logUnserved(p peer.Peer, err error) {
	s.log(slog.LevelError, &s.unservedLines, "cannot serve a client; connection closed", p, "error", err,
		"hint", "for \"no space left\", raise fs.epoll.max_user_watches (sysctl) or lower --maxclients")
}

// panicked counts and logs a panic; the caller closes the connection.
func (s *Server) panicked(value any, p peer.Peer) {
	s.panics.Add(1)
	s.log(slog.LevelError, &s.panicLines, "connection panicked and is closed; please report this", p,
		"panic", value, "stack", string(debug.Stack()))
}

// handshakeFailed counts and logs a failed TLS handshake.
func (s *Server) handshakeFailed(err error, p peer.Peer) {
	s.handshakesFailed.Add(1)
	level, count := slog.LevelDebug, s.handshakeLines.Due(s.config.Now())
	if count > 0 {
		level = slog.LevelInfo
	}
	s.config.Log.Log(context.Background(), level, "TLS handshake failed; connection closed",
		"client", p.Addr, "error", err, "count", max(count, 1))
}

// closeSession closes the session of a connection that has ended, if it got one.
func (s *Server) closeSession(session peer.Session, p peer.Peer) {
	if session == nil {
		return
	}
	defer func() {
		if value := recover(); value != nil {
			s.panicked(value, p)
		}
	}()
	session.Close()
}
