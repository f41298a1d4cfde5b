// Package server accepts connections and drives their sessions: it moves bytes, keeps the limits of what a client
// may hold, and ends in good order. All methods of Server are safe for concurrent use.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/often"
	"cellserver/internal/peer"
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
	MaxClients       int
	MaxOutputBytes   int           // replies that a client has not read; beyond it the client is not read from
	OutputTimeout    time.Duration // how long it may stay beyond it
	IdleTimeout      time.Duration // without a byte from a client that does not watch
	HandshakeTimeout time.Duration // until the client has authenticated, where it must, and TLS is agreed on
}

// Stats is what a Server has counted.
type Stats struct {
	Connected        int
	Accepted         uint64 // that were neither refused nor denied, nor failed the handshake
	Refused          uint64 // over MaxClients
	Denied           uint64 // by Config.Admit
	HandshakesFailed uint64 // of TLS
	Panics           uint64 // connections closed by a panic
	// Closed counts the accepted connections that have ended, by why: client, session (QUIT, or bytes that are no
	// command), idle, handshake, output, killed, shutdown, panic or system.
	Closed         map[string]uint64
	Received, Sent uint64 // bytes on the wire
}

// Server serves any number of listeners.
type Server struct {
	config     Config
	limits     atomic.Pointer[Limits] // what it points to never changes
	limitsMu   sync.Mutex             // orders changes of limits
	driver     driver
	goroutines *goroutines // serves TLS, whatever the driver is

	connected        atomic.Int64
	accepted         atomic.Uint64
	refused          atomic.Uint64
	denied           atomic.Uint64
	handshakesFailed atomic.Uint64
	panics           atomic.Uint64
	closed           [ends]atomic.Uint64

	full, barred, badHandshakes, broken, unread, unserved often.Counter // what is logged now and then

	mu        sync.Mutex // guards all below
	listeners map[net.Listener]struct{}
	closing   bool
}

// A driver moves bytes between connections and their sessions.
type driver interface {
	// serve takes over an admitted connection and returns at once. When the connection has ended, it calls the
	// server's ended.
	serve(nc net.Conn, p peer.Peer)
	// limitsChanged has the connections that wait for input follow new timeouts.
	limitsChanged()
	// traffic counts the bytes of all connections that there were.
	traffic() traffic
	// shutdown finishes what has been read from the connections, sends the replies and closes them. When ctx is
	// done first, it closes what is left. It returns when all have ended.
	shutdown(ctx context.Context) error
	// probe is Server.Probe.
	probe(ctx context.Context) error
}

// New returns a Server.
func New(c Config) *Server {
	s := &Server{config: c, listeners: map[net.Listener]struct{}{}}
	s.limits.Store(&c.Limits)
	s.goroutines = newGoroutines(s)
	s.driver = s.goroutines
	if c.IOThreads > 0 {
		s.driver = withLoops(s, c.IOThreads, s.driver)
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
	if before.IdleTimeout != l.IdleTimeout || before.HandshakeTimeout != l.HandshakeTimeout {
		s.driver.limitsChanged()
		if s.driver != driver(s.goroutines) {
			s.goroutines.limitsChanged()
		}
	}
}

// ErrClosed is what Serve returns after Shutdown.
var ErrClosed = errors.New("server: closed")

// Stats returns the server's figures.
func (s *Server) Stats() Stats {
	bytes := s.driver.traffic()
	st := Stats{
		Connected:        int(s.connected.Load()),
		Accepted:         s.accepted.Load(),
		Refused:          s.refused.Load(),
		Denied:           s.denied.Load(),
		HandshakesFailed: s.handshakesFailed.Load(),
		Panics:           s.panics.Load(),
		Closed:           make(map[string]uint64, ends),
		Received:         bytes.received,
		Sent:             bytes.sent,
	}
	for why := range ends {
		st.Closed[why.String()] = s.closed[why].Load()
	}
	return st
}

// Serve accepts connections from l until Shutdown, and then returns ErrClosed.
func (s *Server) Serve(l net.Listener) error { return s.serve(l, s.admit) }

// ServeTLS is Serve for clients that speak TLS.
func (s *Server) ServeTLS(l net.Listener, config *tls.Config) error {
	return s.serve(l, func(nc net.Conn) { s.admitTLS(nc, config) })
}

func (s *Server) serve(l net.Listener, admit func(net.Conn)) error {
	if !s.track(l) {
		_ = l.Close()
		return ErrClosed
	}
	var pause backoff
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			if pause.recovered() {
				s.config.Log.Info("accepting connections again", "addr", l.Addr().String())
			}
			admit(nc)
		case s.isClosing():
			return ErrClosed
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			if pause.first() {
				s.config.Log.Error("cannot accept connections; trying again", "error", err,
					"hint", "where it says too many open files: raise the limit (ulimit -n) or lower --maxclients")
			}
			time.Sleep(pause.next())
		}
	}
}

func (s *Server) track(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// admit hands a connection to the driver, or refuses it in Redis's words.
func (s *Server) admit(nc net.Conn) {
	if !s.hasRoom() {
		refuse(nc, "ERR max number of clients reached")
		return
	}
	p := peerOf(nc)
	if refusal := s.refusal(p); refusal != "" {
		refuse(nc, refusal)
		s.ended()
		return
	}
	s.driver.serve(nc, p)
}

// admitTLS does the same where nothing can be said before the handshake. Who has no place is closed in silence, as by
// Redis; whether the client may come in is asked when its certificate is known.
func (s *Server) admitTLS(nc net.Conn, config *tls.Config) {
	if !s.hasRoom() {
		_ = nc.Close()
		return
	}
	s.goroutines.serveTLS(nc, peerOf(nc), config)
}

// hasRoom counts one more that is connected, which ended takes back.
func (s *Server) hasRoom() bool {
	if s.connected.Add(1) > int64(s.limits.Load().MaxClients) {
		s.ended()
		s.refused.Add(1)
		if count := s.full.Due(s.config.Now()); count > 0 {
			s.config.Log.Warn("there are as many clients as may be; connection refused", "count", count,
				"hint", "raise --maxclients, or look with CLIENT LIST for who holds the connections")
		}
		return false
	}
	return true
}

// refusal asks whether a client may come in, and counts it.
func (s *Server) refusal(p peer.Peer) (refusal string) {
	if s.config.Admit != nil {
		refusal = s.config.Admit(p)
	}
	if refusal == "" {
		s.accepted.Add(1)
	} else {
		s.denied.Add(1)
		if count := s.barred.Due(s.config.Now()); count > 0 {
			s.config.Log.Warn("a client was refused", "client", p.Addr, "count", count, "reply", refusal)
		}
	}
	return refusal
}

func refuse(nc net.Conn, refusal string) {
	_ = nc.SetWriteDeadline(deadlineIn(refusalTimeout))
	_, _ = nc.Write(errorLine(refusal))
	_ = nc.Close()
}

func errorLine(text string) []byte { return []byte("-" + text + "\r\n") }

// refusalTimeout is never used up: the first bytes on a connection go into its empty send buffer.
const refusalTimeout = 100 * time.Millisecond

// deadlineIn returns a time as the deadlines of package net want it. They have a clock of their own, and all that they
// are told of the server's is how long there is left.
func deadlineIn(left time.Duration) time.Time { return time.Now().Add(left) }

func (s *Server) ended() { s.connected.Add(-1) }

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

// panicked counts and reports a panic of a connection, which the caller then closes.
func (s *Server) panicked(value any, p peer.Peer) {
	s.panics.Add(1)
	if count := s.broken.Due(s.config.Now()); count > 0 {
		s.config.Log.Error("a connection panicked and is closed; please report this",
			"panic", value, "client", p.Addr, "count", count, "stack", string(debug.Stack()))
	}
}

// Shutdown stops accepting, finishes what has been read, and closes all connections; at the latest when ctx is
// done, and then it returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	for l := range s.listeners {
		_ = l.Close()
	}
	s.mu.Unlock()
	return s.driver.shutdown(ctx)
}

// backoff is the pause after a failed accept: 5 ms, doubled each time up to 1 s, as net/http does.
type backoff struct{ pause time.Duration }

func (b *backoff) first() bool { return b.pause == 0 }

func (b *backoff) next() time.Duration {
	b.pause = min(max(2*b.pause, 5*time.Millisecond), time.Second)
	return b.pause
}

func (b *backoff) recovered() bool {
	failed := b.pause != 0
	b.pause = 0
	return failed
}
