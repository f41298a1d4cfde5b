// Package conn is what all drivers of connections share: the life of a connection, its buffers, and the host,
// through which a driver sees the server. Only a Host is safe for concurrent use; the rest belongs to whoever
// serves the connection.
package conn

import (
	"log/slog"
	"sync/atomic"
	"time"

	"cellserver/internal/base/buffers"
	"cellserver/internal/base/often"
	"cellserver/internal/wire/peer"
)

// Limits is what clients may take, which can change while the server runs. A duration of 0 is no limit.
type Limits struct {
	MaxClients int
	// MaxClientsPerAddress is how many of them may have one IPv4 address, or IPv6 addresses of the same first 64 bits; 0 for no
	// limit. Clients on unix sockets do not count.
	MaxClientsPerAddress int
	MaxOutputBytes       int           // replies that a client has not read; beyond it the client is not read from
	OutputTimeout        time.Duration // how long it may stay beyond it
	InputTimeout         time.Duration // how long more than 16 KiB of a command may stay half-sent
	IdleTimeout          time.Duration // without a byte from a client that is not in MONITOR
	HandshakeTimeout     time.Duration // until the client has authenticated, where it must, and TLS is agreed on
}

// Host is the server as its drivers know it: what they need of it, and what is counted and logged of
// connections. Its methods are safe for concurrent use.
type Host struct {
	NewSession func(p peer.Peer, conn peer.Conn) peer.Session
	Refusal    func(peer.Peer) (refusal string) // why a client may not come in; asked once TLS is agreed on
	Release    func(peer.Peer)                  // called when a connection has ended
	Now        func() int64
	Log        *slog.Logger
	Pool       buffers.Pool // of what the connections read into, and of what they have yet to send

	limits           atomic.Pointer[Limits] // what it points to never changes
	handshakesFailed atomic.Uint64
	panics           atomic.Uint64
	closed           [reasonCount]atomic.Uint64

	// what is logged now and then
	handshakeLines, panicLines, halfSentLines, unreadLines, unservedLines often.Counter
}

// Limits returns the limits that hold now. Nobody changes them.
func (h *Host) Limits() *Limits { return h.limits.Load() }

// SetLimits changes the limits, and returns those that held before.
func (h *Host) SetLimits(l *Limits) (before *Limits) { return h.limits.Swap(l) }

// CloseSession ends the session of a connection that has ended; there is none if that was before it was made.
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

// FailedHandshakes returns how many handshakes of TLS have failed.
func (h *Host) FailedHandshakes() (failed uint64) { return h.handshakesFailed.Load() }

// Panics returns how many connections were closed by a panic.
func (h *Host) Panics() uint64 { return h.panics.Load() }

// Closed returns how many accepted connections have ended, by reason.
func (h *Host) Closed() map[string]uint64 {
	closed := make(map[string]uint64, reasonCount)
	for reason := range reasonCount {
		closed[reason.String()] = h.closed[reason].Load()
	}
	return closed
}

// ErrorLine returns an error as the client is sent it.
func ErrorLine(text string) []byte { return []byte("-" + text + "\r\n") }
