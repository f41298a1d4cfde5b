package conn

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"cellserver/internal/base/often"
	"cellserver/internal/wire/peer"
)

// Ended counts and logs the end of an accepted connection; session is nil if none was made.
func (h *Host) Ended(session peer.Session, p peer.Peer, l *Life, t Traffic) {
	h.closed[l.reason].Add(1)
	if !h.Log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	name := ""
	if session != nil {
		name = session.Name()
	}
	age := time.Duration(h.Now() - l.OpenedNs).Round(time.Microsecond)
	h.Log.Debug("client disconnected", "client", p.Addr, "name", name, "tls", p.TLS, "reason", l.reason.String(),
		"received_bytes", t.Received, "sent_bytes", t.Sent, "age", age.String())
}

func (h *Host) log(level slog.Level, lines *often.Counter, message string, p peer.Peer, args ...any) {
	if count := lines.Due(h.Now()); count > 0 {
		h.Log.Log(context.Background(), level, message, append([]any{"client", p.Addr, "count", count}, args...)...)
	}
}

// LogHalfSent logs that a client is closed for a half-sent command.
func (h *Host) LogHalfSent(p peer.Peer, bytes int) {
	h.log(slog.LevelWarn, &h.halfSentLines, "client left a long command half-sent; connection closed", p,
		"bytes", bytes, "hint", "see --input-timeout")
}

// LogUnread logs that a client is closed for unread replies.
func (h *Host) LogUnread(p peer.Peer, pendingBytes int) {
	h.log(slog.LevelWarn, &h.unreadLines, "client does not read its replies; connection closed", p,
		"pending_bytes", pendingBytes, "hint", "see --max-output-bytes and --output-timeout")
}

// LogUnserved logs that the system could not serve a client.
func (h *Host) LogUnserved(p peer.Peer, err error) {
	h.log(slog.LevelError, &h.unservedLines, "cannot serve a client; connection closed", p, "error", err,
		"hint", "for \"no space left\", raise fs.epoll.max_user_watches (sysctl) or lower --maxclients")
}

// Panicked counts and logs a panic; the caller closes the connection.
func (h *Host) Panicked(value any, p peer.Peer) {
	h.Panics.Add(1)
	h.log(slog.LevelError, &h.panicLines, "connection panicked and is closed; please report this", p,
		"panic", value, "stack", string(debug.Stack()))
}

// HandshakeFailed counts and logs a failed TLS handshake.
func (h *Host) HandshakeFailed(err error, p peer.Peer) {
	h.HandshakesFailed.Add(1)
	level, count := slog.LevelDebug, h.handshakeLines.Due(h.Now())
	if count > 0 {
		level = slog.LevelInfo
	}
	h.Log.Log(context.Background(), level, "TLS handshake failed; connection closed",
		"client", p.Addr, "error", err, "count", max(count, 1))
}
