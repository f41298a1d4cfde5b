// Package server accepts connections and serves each by a driver, loops or goroutines, within the limits of
// what a client may hold. Server is safe for concurrent use.
package server

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"cellserver/internal/base/often"
	"cellserver/internal/edge/server/conn"
	"cellserver/internal/edge/server/goroutines"
	"cellserver/internal/edge/server/loops"
	"cellserver/internal/wire/peer"
)

type Config struct {
	NewSession func(p peer.Peer, conn peer.Conn) peer.Session
	// Admit returns the error, without its '-', for a client to be refused, or "". Nil admits all.
	Admit func(peer.Peer) (refusal string)
	// IOThreads is the number of event loops, where the system has them (Linux) and a connection has a
	// descriptor. With 0, and for other connections such as TLS, each has a goroutine.
	IOThreads int
	Limits    Limits // initial; see SetLimits
	// Now returns Unix nanoseconds of a clock without steps; all decisions by time use it. Required.
	Now func() int64
	Log *slog.Logger
}

// Limits bounds what clients may take; SetLimits changes it.
type Limits = conn.Limits

// ErrStuck is wrapped by Shutdown's error if something did not end in time.
var ErrStuck = conn.ErrStuck

// Server serves any number of listeners.
type Server struct {
	config     Config
	host       conn.Host
	limitsMu   sync.Mutex // rank 20: serializes SetLimits
	driver     conn.Driver
	goroutines *goroutines.Driver // always serves TLS

	connected        atomic.Int64
	accepted         atomic.Uint64
	addresses        addresses
	refused          atomic.Uint64
	refusedAddresses atomic.Uint64
	denied           atomic.Uint64
	// bytes of guests
	guestsReceived, guestsSent atomic.Uint64

	refusedLines, refusedAddressLines, deniedLines often.Counter // rate-limited log lines

	mu        sync.Mutex // rank 90: guards all below
	listeners map[net.Listener]struct{}
	closing   bool
}

// New returns a Server.
func New(c Config) *Server {
	s := &Server{config: c, listeners: map[net.Listener]struct{}{}}
	s.host.NewSession, s.host.Refusal, s.host.Release = c.NewSession, s.refusal, s.release
	s.host.Now, s.host.Log, s.host.Handshakes = c.Now, c.Log, conn.NewHandshakes()
	s.host.SetLimits(&c.Limits)
	s.goroutines = goroutines.New(&s.host)
	s.driver = s.goroutines
	if c.IOThreads > 0 {
		s.driver = loops.New(&s.host, c.IOThreads, s.driver)
	}
	return s
}

// Handshakes returns the bound of TLS's handshakes, which doors share.
func (s *Server) Handshakes() *conn.Handshakes { return s.host.Handshakes }

// Limits returns the current limits.
func (s *Server) Limits() Limits { return *s.host.Limits() }

// SetLimits changes the limits, also for connected clients, whose idle time starts again. A client beyond
// MaxOutputBytes keeps its deadline, and a lower MaxClients closes no one.
func (s *Server) SetLimits(l Limits) {
	s.limitsMu.Lock()
	defer s.limitsMu.Unlock()
	before := s.host.SetLimits(&l)
	if before.IdleTimeout != l.IdleTimeout || before.InputTimeout != l.InputTimeout || before.HandshakeTimeout != l.HandshakeTimeout {
		s.driver.LimitsChanged()
	}
}

// Shutdown stops accepting, executes what has been read, and closes all connections, at the latest when ctx
// is done; its error then wraps ctx's and names what has not ended shortly after.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	for l := range s.listeners {
		_ = l.Close()
	}
	s.mu.Unlock()
	return s.driver.Shutdown(ctx)
}

// Probe returns when every event loop has come around once since the call. Otherwise its error names one that
// has not and wraps ctx's. It opens no connection, so MaxClients does not matter.
func (s *Server) Probe(ctx context.Context) error { return s.driver.Probe(ctx) }

// Stats holds counters of a Server.
type Stats struct {
	Connected        int
	Accepted         uint64 // neither refused, denied nor failed in the handshake
	Refused          uint64 // over MaxClients
	RefusedAddresses uint64 // over MaxClientsPerAddress
	Denied           uint64 // by Config.Admit
	HandshakesFailed uint64 // of TLS
	Panics           uint64 // connections closed by a panic
	// Closed counts accepted connections that have ended, by the labels of conn.Reason.
	Closed         map[string]uint64
	Received, Sent uint64 // bytes on the wire
}

func (s *Server) Stats() Stats {
	bytes := s.driver.Traffic()
	return Stats{
		Connected:        int(s.connected.Load()),
		Accepted:         s.accepted.Load(),
		Refused:          s.refused.Load(),
		RefusedAddresses: s.refusedAddresses.Load(),
		Denied:           s.denied.Load(),
		HandshakesFailed: s.host.HandshakesFailed.Load(),
		Panics:           s.host.Panics.Load(),
		Closed:           s.host.Closed(),
		Received:         bytes.Received + s.guestsReceived.Load(),
		Sent:             bytes.Sent + s.guestsSent.Load(),
	}
}
