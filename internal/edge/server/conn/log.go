package conn

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

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

// LogHalfSent logs that a client is closed for a half-sent command.
func (h *Host) LogHalfSent(p peer.Peer, bytes int) {
	if count := h.halfSentLines.Due(h.Now()); count > 0 {
		h.Log.Warn("client left a long command half-sent; connection closed", "client", p.Addr, "bytes", bytes,
			"count", count, "hint", "see --input-timeout")
	}
}

// LogUnread logs that a client is closed for unread replies.
func (h *Host) LogUnread(p peer.Peer, pendingBytes int) {
	if count := h.unreadLines.Due(h.Now()); count > 0 {
		h.Log.Warn("client does not read its replies; connection closed", "client", p.Addr,
			"pending_bytes", pendingBytes, "count", count, "hint", "see --max-output-bytes and --output-timeout")
	}
}

// LogUnserved logs that the system could not serve a client.
func (h *Host) LogUnserved(p peer.Peer, err error) {
	if count := h.unservedLines.Due(h.Now()); count > 0 {
		h.Log.Error("cannot serve a client; connection closed", "client", p.Addr, "error", err, "count", count,
			"hint", "for \"no space left\", raise fs.epoll.max_user_watches (sysctl) or lower --maxclients")
	}
}

// Panicked counts and logs a panic; the caller closes the connection.
func (h *Host) Panicked(value any, p peer.Peer) {
	h.panics.Add(1)
	if count := h.panicLines.Due(h.Now()); count > 0 {
		h.Log.Error("connection panicked and is closed; please report this",
			"panic", value, "client", p.Addr, "count", count, "stack", string(debug.Stack()))
	}
}

// HandshakeFailed counts and logs a failed TLS handshake.
func (h *Host) HandshakeFailed(err error, p peer.Peer) {
	h.handshakesFailed.Add(1)
	level, count := slog.LevelDebug, h.handshakeLines.Due(h.Now())
	if count > 0 {
		level = slog.LevelInfo
	}
	h.Log.Log(context.Background(), level, "TLS handshake failed; connection closed",
		"client", p.Addr, "error", err, "count", max(count, 1))
}
