// Package server accepts connections and has a driver serve each: loops or goroutines, which move the bytes
// and keep the limits of what a client may hold. It shuts down gracefully. All methods of Server are safe for
// concurrent use.
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

// Limits is what clients may take, which can change while the server runs.
type Limits = conn.Limits

// ErrStuck is in Shutdown's error if something did not end, though it was told to.
var ErrStuck = conn.ErrStuck

// Server serves any number of listeners.
type Server struct {
	config     Config
	host       conn.Host
	limitsMu   sync.Mutex // orders changes of limits
	driver     conn.Driver
	goroutines *goroutines.Driver // serves TLS, whatever the driver is

	connected        atomic.Int64
	accepted         atomic.Uint64
	addresses        addresses
	refused          atomic.Uint64
	refusedAddresses atomic.Uint64
	denied           atomic.Uint64

	refusedLines, refusedAddressLines, deniedLines often.Counter // what is logged now and then

	mu        sync.Mutex // guards all below
	listeners map[net.Listener]struct{}
	closing   bool
}

// New returns a Server.
func New(c Config) *Server {
	s := &Server{config: c, listeners: map[net.Listener]struct{}{}}
	s.host.NewSession, s.host.Refusal, s.host.Release = c.NewSession, s.refusal, s.release
	s.host.Now, s.host.Log = c.Now, c.Log
	s.host.SetLimits(&c.Limits)
	s.goroutines = goroutines.New(&s.host)
	s.driver = s.goroutines
	if c.IOThreads > 0 {
		s.driver = loops.New(&s.host, c.IOThreads, s.driver)
	}
	return s
}

// Limits returns the limits that hold now.
func (s *Server) Limits() Limits { return *s.host.Limits() }

// SetLimits changes the limits, for connected clients too, whose idle time starts again. A client beyond MaxOutputBytes
// keeps its deadline, and no connected client is closed for the new maximum of clients.
func (s *Server) SetLimits(l Limits) {
	s.limitsMu.Lock()
	defer s.limitsMu.Unlock()
	before := s.host.SetLimits(&l)
	if before.IdleTimeout != l.IdleTimeout || before.InputTimeout != l.InputTimeout || before.HandshakeTimeout != l.HandshakeTimeout {
		s.driver.LimitsChanged()
		if s.driver != conn.Driver(s.goroutines) {
			s.goroutines.LimitsChanged()
		}
	}
}

// Shutdown stops accepting, finishes what has been read, and closes all connections; at the latest when ctx is
// done, and then its error wraps ctx's. What has not ended shortly after that is left behind, and named in the error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	for l := range s.listeners {
		_ = l.Close()
	}
	s.mu.Unlock()
	return s.driver.Shutdown(ctx)
}
