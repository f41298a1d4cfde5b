// Package server accepts connections and drives their sessions: it moves bytes, keeps the limits of what a client
// may hold, and shuts down gracefully. All methods of Server are safe for concurrent use.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/base/buffers"
	"cellserver/internal/base/often"
	"cellserver/internal/wire/peer"
)

// Config is what a Server needs.
type Config struct {
	NewSession func(p peer.Peer, conn peer.Conn) peer.Session
	// Admit returns the error, without its '-', that a client is refused with; empty for one that may come in. Nil
	// lets all come in.
	Admit func(peer.Peer) (refusal string)
	// IOThreads is how many event loops serve the connections, where the system has them (Linux) and a connection
	// has a descriptor. With 0, and for other connections, such as TLS, each has a goroutine.
	IOThreads int
	Limits    Limits // at first; see SetLimits
	// Now is the time in Unix nanoseconds, of a clock that steps of the wall clock do not reach. All that the server
	// decides by time it decides by this clock. Required.
	Now func() int64
	Log *slog.Logger
}

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

// Server serves any number of listeners.
type Server struct {
	config     Config
	limits     atomic.Pointer[Limits] // what it points to never changes
	limitsMu   sync.Mutex             // orders changes of limits
	driver     driver
	goroutines *goroutineDriver // serves TLS, whatever the driver is
	pool       buffers.Pool     // of what the connections read into, and of what they have yet to send

	connected        atomic.Int64
	accepted         atomic.Uint64
	addresses        addresses
	refused          atomic.Uint64
	refusedAddresses atomic.Uint64
	denied           atomic.Uint64
	handshakesFailed atomic.Uint64
	panics           atomic.Uint64
	closed           [closeReasonCount]atomic.Uint64

	// what is logged now and then
	refusedLines, refusedAddressLines, deniedLines, handshakeLines, panicLines, halfSentLines, unreadLines, unservedLines often.Counter

	mu        sync.Mutex // guards all below
	listeners map[net.Listener]struct{}
	closing   bool
}

// A driver moves bytes between connections and their sessions.
type driver interface {
	// serve takes over an admitted connection and returns at once. When the connection has ended, it calls the
	// server's release.
	serve(nc net.Conn, p peer.Peer)
	// limitsChanged has the connections that wait for input follow new timeouts.
	limitsChanged()
	// traffic counts the bytes of all connections that there were.
	traffic() traffic
	// shutdown finishes what has been read from the connections, sends the replies and closes them. When ctx is
	// done first, it closes what is left. It returns when all have ended, or soon after ctx is done.
	shutdown(ctx context.Context) error
	// probe is Server.Probe.
	probe(ctx context.Context) error
}

// New returns a Server.
func New(c Config) *Server {
	s := &Server{config: c, listeners: map[net.Listener]struct{}{}}
	s.limits.Store(&c.Limits)
	s.goroutines = newGoroutineDriver(s)
	s.driver = s.goroutines
	if c.IOThreads > 0 {
		s.driver = newLoopDriver(s, c.IOThreads, s.driver)
	}
	return s
}

// Limits returns the limits that hold now.
func (s *Server) Limits() Limits { return *s.limits.Load() }

// SetLimits changes the limits, also for who is connected: silence is counted anew from now on. A client that is beyond
// MaxOutputBytes already keeps the time that it was given, and those that are connected stay, however many they are.
func (s *Server) SetLimits(l Limits) {
	s.limitsMu.Lock()
	defer s.limitsMu.Unlock()
	before := s.limits.Swap(&l)
	if before.IdleTimeout != l.IdleTimeout || before.InputTimeout != l.InputTimeout || before.HandshakeTimeout != l.HandshakeTimeout {
		s.driver.limitsChanged()
		if s.driver != driver(s.goroutines) {
			s.goroutines.limitsChanged()
		}
	}
}

// closeSession ends the session of a connection that has ended; there is none if that was before it was made.
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

// ErrStuck is in Shutdown's error if something did not end, though it was told to.
var ErrStuck = errors.New("server: does not end")

// Shutdown stops accepting, finishes what has been read, and closes all connections; at the latest when ctx is
// done, and then its error wraps ctx's. What has not ended shortly after that is left behind, and named in the error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	for l := range s.listeners {
		_ = l.Close()
	}
	s.mu.Unlock()
	return s.driver.shutdown(ctx)
}

// deadlineIn returns a time as net.Conn wants a deadline. It is an option of a socket and no decision: the runtime's
// poller has a clock of its own, and all that it is told of the server's is how long there is left.
func deadlineIn(left time.Duration) time.Time { return time.Now().Add(left) }
