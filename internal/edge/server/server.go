// Package server accepts connections and serves each by a driver, loops or goroutines, within the limits of
// what a client may hold. Server is safe for concurrent use; a connection belongs to the goroutine that
// serves it.
package server

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/base/buffers"
	"cellserver/internal/base/often"
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

// Limits bounds what clients may take. SetLimits changes it while the server runs; a duration of 0 is no
// limit.
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

// Server serves any number of listeners.
type Server struct {
	config     Config
	limits     atomic.Pointer[Limits] // what it points to is never changed
	limitsMu   sync.Mutex             // rank 20: serializes SetLimits
	pool       buffers.Pool           // for input and for unsent replies
	handshakes chan struct{}          // of TLS that are computed at once; see Handshake
	driver     driver
	goroutines *goroutines       // always serves TLS
	addresses  Tally[netip.Addr] // connections, but for those over unix sockets

	connected        atomic.Int64
	accepted         atomic.Uint64
	refused          atomic.Uint64
	refusedAddresses atomic.Uint64
	denied           atomic.Uint64
	handshakesFailed atomic.Uint64
	panics           atomic.Uint64
	closed           [reasonCount]atomic.Uint64
	// bytes of guests
	guestsReceived, guestsSent atomic.Uint64

	// rate-limited log lines
	refusedLines, refusedAddressLines, deniedLines, handshakeLines often.Counter
	panicLines, halfSentLines, unreadLines, unservedLines          often.Counter

	mu        sync.Mutex // rank 90: guards all below
	listeners map[net.Listener]struct{}
	closing   bool
}

func New(c Config) *Server {
	s := &Server{config: c, handshakes: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), listeners: map[net.Listener]struct{}{}}
	s.limits.Store(&c.Limits)
	s.goroutines = newGoroutines(s)
	s.driver = s.goroutines
	if c.IOThreads > 0 {
		s.driver = newLoops(s, c.IOThreads, s.driver)
	}
	return s
}

func (s *Server) Limits() Limits { return *s.limits.Load() }

// SetLimits changes the limits, also for connected clients, whose idle time starts again. A client beyond
// MaxOutputBytes keeps its deadline, and a lower MaxClients closes no one.
func (s *Server) SetLimits(l Limits) {
	s.limitsMu.Lock()
	defer s.limitsMu.Unlock()
	before := s.limits.Swap(&l)
	if before.IdleTimeout != l.IdleTimeout || before.InputTimeout != l.InputTimeout || before.HandshakeTimeout != l.HandshakeTimeout {
		s.driver.limitsChanged()
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
	return s.driver.shutdown(ctx)
}

// Probe returns when every event loop has come around once since the call. Otherwise its error names one that
// has not and wraps ctx's. It opens no connection, so MaxClients does not matter.
func (s *Server) Probe(ctx context.Context) error { return s.driver.probe(ctx) }

// Stats holds counters of a Server.
type Stats struct {
	Connected        int
	Accepted         uint64 // neither refused, denied nor failed in the handshake
	Refused          uint64 // over MaxClients
	RefusedAddresses uint64 // over MaxClientsPerAddress
	Denied           uint64 // by Config.Admit
	HandshakesFailed uint64 // of TLS
	Panics           uint64 // connections closed by a panic
	// Closed counts accepted connections that have ended, by the labels of Reason.
	Closed         map[string]uint64
	Received, Sent uint64 // bytes on the wire
}

func (s *Server) Stats() Stats {
	bytes := s.driver.traffic()
	closed := make(map[string]uint64, reasonCount)
	for reason := range reasonCount {
		closed[reason.String()] = s.closed[reason].Load()
	}
	return Stats{
		Connected:        int(s.connected.Load()),
		Accepted:         s.accepted.Load(),
		Refused:          s.refused.Load(),
		RefusedAddresses: s.refusedAddresses.Load(),
		Denied:           s.denied.Load(),
		HandshakesFailed: s.handshakesFailed.Load(),
		Panics:           s.panics.Load(),
		Closed:           closed,
		Received:         bytes.received + s.guestsReceived.Load(),
		Sent:             bytes.sent + s.guestsSent.Load(),
	}
}
