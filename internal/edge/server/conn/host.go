// Package conn holds what all drivers share: the life of a connection, its buffers, and the host through
// which a driver sees the server. A Host is safe for concurrent use; everything else belongs to the goroutine
// that serves the connection.
package conn

import (
	"log/slog"
	"sync/atomic"
	"time"

	"cellserver/internal/base/buffers"
	"cellserver/internal/base/often"
	"cellserver/internal/wire/peer"
)

// Limits bounds what clients may take. It can change while the server runs; a duration of 0 is no limit.
type Limits struct {
	MaxClients int
	// MaxClientsPerAddress bounds the clients of one IPv4 address or IPv6 /64; 0 is no limit. Clients on unix
	// sockets do not count.
	MaxClientsPerAddress int
	MaxOutputBytes       int           // unread replies; beyond it the client is not read from
	OutputTimeout        time.Duration // time a client may stay beyond MaxOutputBytes
	InputTimeout         time.Duration // time more than 16 KiB of a command may stay half-sent
	IdleTimeout          time.Duration // silence of a client that is not in MONITOR and has not subscribed
	HandshakeTimeout     time.Duration // time for TLS and, where required, AUTH
}

// Host is the server as its drivers see it: what they need, and what is counted and logged of connections.
type Host struct {
	NewSession func(p peer.Peer, conn peer.Conn) peer.Session
	Refusal    func(peer.Peer) (refusal string) // reason to turn a client away, or empty; asked once TLS is agreed on
	Release    func(peer.Peer)                  // called when a connection has ended
	Now        func() int64
	Log        *slog.Logger
	Pool       buffers.Pool // for input and for unsent replies
	Handshakes *Handshakes  // of TLS

	HandshakesFailed atomic.Uint64
	Panics           atomic.Uint64 // connections closed by a panic

	limits atomic.Pointer[Limits]
	closed [reasonCount]atomic.Uint64

	// rate-limited log lines
	handshakeLines, panicLines, halfSentLines, unreadLines, unservedLines often.Counter
}

// Limits returns the current limits, which the caller must not change.
func (h *Host) Limits() *Limits { return h.limits.Load() }

// SetLimits replaces the limits and returns the previous ones.
func (h *Host) SetLimits(l *Limits) (before *Limits) { return h.limits.Swap(l) }

// CloseSession closes the session of a connection that has ended, if it got one.
func (h *Host) CloseSession(session peer.Session, p peer.Peer) {
	if session == nil {
		return
	}
	defer func() {
		if value := recover(); value != nil {
			h.Panicked(value, p)
		}
	}()
	session.Close()
}

// Closed returns the number of accepted connections that have ended, by reason.
func (h *Host) Closed() map[string]uint64 {
	closed := make(map[string]uint64, reasonCount)
	for reason := range reasonCount {
		closed[reason.String()] = h.closed[reason].Load()
	}
	return closed
}

// ErrorLine returns an error as RESP.
func ErrorLine(text string) []byte { return []byte("-" + text + "\r\n") }
