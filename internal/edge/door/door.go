// Package door serves protocols over net/http and grpc-go: each connection is a client like those of RESP,
// counted and evicted with them, and its requests ask sessions of their connection. A Door is safe for
// concurrent use.
package door

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/base/often"
	"cellserver/internal/decide"
	"cellserver/internal/decide/clients"
	"cellserver/internal/edge/server"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// Session is a client's session that is asked by values; see session.Session.
type Session interface {
	Ask(a decide.Ask) peer.Status
	Become(user *acl.User)
	HungUp(h peer.Hangup)
	HoldsInput(bytes, free int)
	HoldsOutput(bytes int)
	Name() string
	Close()
}

// Config configures a Door. All fields but NewLoopSession and the ages are required.
type Config struct {
	Name       peer.Door
	Server     *server.Server
	NewSession func(p peer.Peer, conn peer.Conn) Session
	// NewLoopSession returns a session for a connection that an event loop serves, as long as its requests
	// are plain ones. Without it net/http serves all.
	NewLoopSession func(d *Door, p peer.Peer, conn peer.Conn) peer.Session
	Users          *acl.Users
	Tokens         *Tokens
	Logins         *clients.Logins
	// Admit returns why a client without a name of its own is refused, as in protected mode, or "".
	Admit func(peer.Peer) (refusal string)
	Now   func() int64
	Log   *slog.Logger

	// MaxConnectionAge is when a connection of gRPC is told to close, a tenth more or less, and its grace
	// when it is closed; 0 for never.
	MaxConnectionAge, MaxConnectionAgeGrace time.Duration
}

// Bounds of requests and connections:
const (
	maxHeaderBytes = 16 << 10
	maxStreams     = 250 // of an HTTP/2 connection
	maxRefused     = 64  // connections at once that are told why they are refused

	requestTimeout = 10 * time.Second // for a request to arrive
	answerTimeout  = 60 * time.Second // from a request's header to the end of its answer
	idleTimeout    = 3 * time.Minute  // longer than proxies keep their connections
	unreadTimeout  = 30 * time.Second // for a client to read something
	maxUnread      = 64 << 10         // bytes of answers of an event loop
)

// Door serves one protocol.
type Door struct {
	Config
	Stats   *Stats
	handler http.Handler // nil with grpc
	serving serving
	grpc    bool
	refused atomic.Int32
	running atomic.Int64         // requests that are executed or wait in a command
	waits   waits                // those that wait for their body
	pauses  server.Tally[string] // answers to strangers that wait, by host
	streams server.Tally[string] // calls with any number of answers, by host
	turns   chan struct{}        // has as many as may be executed at once
	loops   server.GuestServer
	passed  passed         // by event loops
	passing sync.WaitGroup // those that net/http has not accepted yet
	ending  chan struct{}  // closed by end
	end     func()

	flooders clients.Logins // hosts whose connections were closed for floods

	problems, badTokens, floods often.Counter // rate-limited log lines
}

// serving accepts connections and serves them.
type serving interface {
	Serve(l net.Listener) error
	Shutdown(ctx context.Context) error
	Close() error
}

func newDoor(c Config) *Door {
	ending := make(chan struct{})
	return &Door{
		Config: c, Stats: NewStats(), turns: make(chan struct{}, runtime.GOMAXPROCS(0)),
		ending: ending, end: sync.OnceFunc(func() { close(ending) }),
	}
}

// New returns a Door of HTTP. Its handler finds its connection by ConnOf.
func New(c Config, h http.Handler) *Door {
	d := newDoor(c)
	d.handler = h
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // or encrypted: Conn has TLS below
	d.serving = &http.Server{
		Handler:   d,
		Protocols: protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReadFrameSize: 1 << 16, MaxReceiveBufferPerStream: 1 << 16, MaxReceiveBufferPerConnection: 1 << 20,
			WriteByteTimeout: unreadTimeout,
		},
		MaxHeaderBytes:    maxHeaderBytes - extraHeaderBytes,
		ReadHeaderTimeout: requestTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          log.New(problemLog{d}, "", 0),
		ConnContext:       withConn,

		DisableGeneralOptionsHandler: true, // it would answer anybody, and framing that is doubtful
	}
	d.passed = newPassed()
	d.loops = server.GuestServer{TakeOver: d.takeOver, Limits: server.Limits{
		// a client that asks without reading is not heard
		MaxOutputBytes: maxUnread, OutputTimeout: unreadTimeout, InputTimeout: requestTimeout, IdleTimeout: idleTimeout, HandshakeTimeout: requestTimeout,
	}}
	if c.NewLoopSession != nil {
		d.loops.NewSession = func(p peer.Peer, conn peer.Conn) peer.Session { return c.NewLoopSession(d, p, conn) }
	}
	return d
}

// extraHeaderBytes is what net/http reads beyond its maximum.
const extraHeaderBytes = 4 << 10

// ServeHTTP has the handler serve a request, and counts what it holds and whether it waits for its body.
// Frames are few here: with more of them a stack of 8 KiB is too small, and is copied for each request.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := ConnOf(r)
	if r.Body != http.NoBody {
		b := &body{ReadCloser: r.Body, conn: c, answer: w}
		defer b.end()
		r.Body = b
	}
	defer c.endRequest()
	CloseDoubtful(w, r)
	d.handler.ServeHTTP(w, r)
}

// CloseDoubtful has an HTTP/1 connection closed after a request whose end a proxy may see elsewhere, so that
// nothing behind it is taken for a request: one with Transfer-Encoding, as RFC 9112, 6.1, demands beside
// Content-Length, and one of HTTP/1.0, in which net/http ignores that header.
func CloseDoubtful(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 && r.ProtoMajor == 1 || !r.ProtoAtLeast(1, 1) {
		w.Header().Set("Connection", "close")
	}
}

// enterRequest counts a request that is executed, unless there are as many as clients may be: each takes
// memory, and those of HTTP/2 are many to a connection.
func (d *Door) enterRequest() error {
	if d.running.Add(1) > int64(max(d.Server.Limits().MaxClients, maxStreams)) {
		d.running.Add(-1)
		return ErrFull
	}
	return nil
}

// mostWaits returns how many requests of a host may wait for their body: an eighth of what may be executed,
// and all of a connection.
func (d *Door) mostWaits() int { return max(d.Server.Limits().MaxClients/8, maxStreams) }

// Serve serves connections from l until Shutdown.
func (d *Door) Serve(l net.Listener) error {
	if d.NewLoopSession != nil {
		go func() { _ = d.serving.Serve(d.passed) }()
	}
	return d.serving.Serve(listener{l, d, nil})
}

// ServeTLS is Serve over TLS. The configuration offers Protocols.
func (d *Door) ServeTLS(l net.Listener, config *tls.Config) error {
	return d.serving.Serve(listener{l, d, config})
}

// Protocols returns what a configuration of TLS offers.
func Protocols() []string { return []string{"h2", "http/1.1"} }

// Shutdown ends the door: gracefully until ctx is done, then at once.
func (d *Door) Shutdown(ctx context.Context) {
	d.end()
	if d.serving.Shutdown(ctx) != nil {
		_ = d.serving.Close()
	}
}

// listener enters accepted connections.
type listener struct {
	net.Listener
	door *Door
	tls  *tls.Config // nil without TLS
}

func (l listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.door.enter(nc, l.tls); c != nil {
			return c, nil
		}
	}
}

// enter returns a connection for net/http, or nil if an event loop serves it, or if it is closed at once
// because too many others are refused.
func (d *Door) enter(nc net.Conn, config *tls.Config) *Conn {
	guest, refusal := d.Server.Enter(nc, d.Name)
	if refusal == "" && config == nil && d.NewLoopSession != nil && d.Server.ServeGuest(nc, guest, &d.loops) {
		return nil
	}
	if refusal != "" && d.refused.Add(1) > maxRefused {
		d.refused.Add(-1)
		_ = nc.Close()
		return nil
	}
	c := &Conn{wire: &wire{Conn: nc, guest: guest}, door: d, refusal: refusal, grpc: d.grpc}
	c.Conn = c.wire
	if config != nil {
		c.Conn, c.wire.handshake = tls.Server(c.wire, config), d.Server.BeginHandshake()
	}
	if guest == nil {
		if d.grpc { // net/http closes it after its answer
			time.AfterFunc(requestTimeout, func() { _ = c.Close() })
		}
		return c
	}
	c.host = guest.Peer.Network()
	if config == nil {
		c.know(guest.Peer)
	}
	return c
}

// know begins the connection's first session, as its client is known.
func (c *Conn) know(p peer.Peer) {
	c.mu.Lock()
	c.peer = &p
	c.mu.Unlock()
	c.hold(connBytes)
}

// shakeHands makes the handshake of TLS, before anything is read. net/http bounds its time.
func (c *Conn) shakeHands() error {
	secured, ok := c.Conn.(*tls.Conn)
	if !ok || c.shaken {
		return nil
	}
	c.shaken = true
	err := secured.HandshakeContext(context.Background())
	c.wire.handshake.End()
	if plain := (tls.RecordHeaderError{}); errors.As(err, &plain) && plain.Conn != nil && isHTTP(plain.RecordHeader) {
		_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nthis address takes HTTPS; http:// is another one's\n")
	}
	switch {
	case c.wire.guest == nil:
	case err != nil:
		c.wire.guest.HandshakeFailed(err)
	default:
		p := c.wire.guest.Peer
		p.TLS, p.CertName = true, server.CertName(secured.ConnectionState())
		c.know(p)
	}
	return err
}

// isHTTP reports whether a client that should speak TLS has begun a request without it.
func isHTTP(begin [5]byte) bool {
	switch string(begin[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}

// Errors of Conn.User:
var (
	ErrToken = errors.New("the token is unknown, or its user is off; see --http-tokens-file")
	ErrFull  = errors.New("max number of clients, or of requests at once, reached; see --maxclients and --maxclients-per-address")
)

// RefusedError says why protected mode refuses a client.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// problemLog logs messages of net/http at a limited rate, as clients can cause any number of them.
type problemLog struct{ door *Door }

func (p problemLog) Write(line []byte) (int, error) {
	if count := p.door.problems.Due(p.door.Now()); count > 0 {
		p.door.Log.Warn("a client of a door caused a problem", "door", p.door.Name.String(), "problem", strings.TrimSpace(string(line)), "count", count)
	}
	return len(line), nil
}
