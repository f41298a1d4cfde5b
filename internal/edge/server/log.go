package server

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"cellserver/internal/wire/peer"
)

// closedConn counts and logs the end of a connection that was accepted; the session is nil if there was no time for
// one.
func (h *host) closedConn(session peer.Session, p peer.Peer, l *lifecycle, t traffic) {
	h.closed[l.reason].Add(1)
	if !h.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	name := ""
	if session != nil {
		name = session.Name()
	}
	age := time.Duration(h.now() - l.openedNs).Round(time.Microsecond)
	h.log.Debug("client disconnected", "client", p.Addr, "name", name, "tls", p.TLS, "reason", l.reason.String(),
		"received_bytes", t.received, "sent_bytes", t.sent, "age", age.String())
}

// logHalfSent tells of a client that is closed for a command that it has not sent all of.
func (h *host) logHalfSent(p peer.Peer, bytes int) {
	if count := h.halfSentLines.Due(h.now()); count > 0 {
		h.log.Warn("a client has left a long command half-sent; connection closed", "client", p.Addr, "bytes", bytes,
			"count", count, "hint", "see --input-timeout")
	}
}

// logUnread tells of a client that is closed for the replies that it does not read.
func (h *host) logUnread(p peer.Peer, pendingBytes int) {
	if count := h.unreadLines.Due(h.now()); count > 0 {
		h.log.Warn("a client does not read its replies; connection closed", "client", p.Addr,
			"pending_bytes", pendingBytes, "count", count, "hint", "see --max-output-bytes and --output-timeout")
	}
}

// logUnserved tells of a client that the system cannot serve.
func (h *host) logUnserved(p peer.Peer, err error) {
	if count := h.unservedLines.Due(h.now()); count > 0 {
		h.log.Error("cannot serve a client; connection closed", "client", p.Addr, "error", err, "count", count,
			"hint", "where it says no space left: raise fs.epoll.max_user_watches (sysctl) or lower --maxclients")
	}
}

// panicked counts and logs a panic of a connection, which the caller then closes.
func (h *host) panicked(value any, p peer.Peer) {
	h.panics.Add(1)
	if count := h.panicLines.Due(h.now()); count > 0 {
		h.log.Error("a connection panicked and is closed; please report this",
			"panic", value, "client", p.Addr, "count", count, "stack", string(debug.Stack()))
	}
}

// handshakeFailed counts and logs a handshake of TLS that came to nothing.
func (h *host) handshakeFailed(err error, p peer.Peer) {
	h.handshakesFailed.Add(1)
	level, count := slog.LevelDebug, h.handshakeLines.Due(h.now())
	if count > 0 {
		level = slog.LevelInfo
	}
	h.log.Log(context.Background(), level, "a TLS handshake failed; connection closed",
		"client", p.Addr, "error", err, "count", max(count, 1))
}
