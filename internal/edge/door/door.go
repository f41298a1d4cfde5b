// Package door serves protocols over net/http: each connection is a client like those of RESP, counted and
// evicted with them, and its requests ask sessions of their connection. A Door is safe for concurrent use.
package door

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"cellserver/internal/base/often"
	"cellserver/internal/edge/server"
	"cellserver/internal/redis/login"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// Session is a client's session that takes calls and returns answers; see session.Session.
type Session interface {
	Submit(calls []peer.Call, answers []reply.Answer) (consumed int, _ []reply.Answer, status peer.Status)
	SubmitTogether(calls []peer.Call, all bool, answers []reply.Answer) (_ []reply.Answer, status peer.Status)
	Permits(call peer.Call) (refused *reply.Answer)
	Become(user *acl.User)
	HungUp(h peer.Hangup)
	Close()
}

// Config configures a Door. All fields are required.
type Config struct {
	Name       peer.Door
	Server     *server.Server
	NewSession func(p peer.Peer, conn peer.Conn) Session
	Users      *acl.Users
	Tokens     *Tokens
	Logins     *login.Failures
	// Admit returns why a client without a name of its own is refused, as in protected mode, or "".
	Admit func(peer.Peer) (refusal string)
	Now   func() int64
	Log   *slog.Logger
}

// Bounds of requests and connections:
const (
	maxHeaderBytes = 16 << 10
	maxStreams     = 250 // of an HTTP/2 connection
	maxRefused     = 64  // connections at once that are told why they are refused

	requestTimeout = 10 * time.Second // for a request to arrive
	answerTimeout  = 60 * time.Second // from a request's header to the end of its answer
	idleTimeout    = 3 * time.Minute  // longer than proxies keep their connections
	unreadTimeout  = 30 * time.Second // for an HTTP/2 client to read something
)

// Door serves one protocol.
type Door struct {
	Config
	Stats   *Stats
	http    *http.Server
	refused atomic.Int32
	running atomic.Int64  // requests
	turns   chan struct{} // has as many as may be executed at once

	problems, badTokens often.Counter // rate-limited log lines
}

// New returns a Door. Its handler finds its connection by ConnOf.
func New(c Config, h http.Handler) *Door {
	d := &Door{Config: c, Stats: NewStats(), turns: make(chan struct{}, runtime.GOMAXPROCS(0))}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	d.http = &http.Server{
		Handler:   d.counted(CloseDoubtful(h)),
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
	}
	return d
}

// extraHeaderBytes is what net/http reads beyond its maximum.
const extraHeaderBytes = 4 << 10

// counted counts the requests under way, whose number Conn.Full bounds.
func (d *Door) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.running.Add(1)
		defer d.running.Add(-1)
		h.ServeHTTP(w, r)
	})
}

// Serve serves connections from l until Shutdown.
func (d *Door) Serve(l net.Listener) error { return d.http.Serve(listener{l, d}) }

// ServeTLS is Serve over TLS. The configuration offers Protocols.
func (d *Door) ServeTLS(l net.Listener, config *tls.Config) error {
	return d.http.Serve(tls.NewListener(listener{l, d}, config))
}

// Protocols returns what a configuration of TLS offers.
func Protocols() []string { return []string{"h2", "http/1.1"} }

// Shutdown ends the door: gracefully until ctx is done, then at once.
func (d *Door) Shutdown(ctx context.Context) {
	if d.http.Shutdown(ctx) != nil {
		_ = d.http.Close()
	}
}

// listener enters accepted connections.
type listener struct {
	net.Listener
	door *Door
}

func (l listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.door.enter(nc); c != nil {
			return c, nil
		}
	}
}

// enter returns a connection, or nil if it is closed at once because too many others are refused.
func (d *Door) enter(nc net.Conn) *Conn {
	guest, refusal := d.Server.Enter(nc, d.Name)
	if refusal != "" && d.refused.Add(1) > maxRefused {
		d.refused.Add(-1)
		_ = nc.Close()
		return nil
	}
	return &Conn{Conn: nc, door: d, guest: guest, refusal: refusal}
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

// Write implements io.Writer.
func (p problemLog) Write(line []byte) (int, error) {
	if count := p.door.problems.Due(p.door.Now()); count > 0 {
		p.door.Log.Warn("a client of a door caused a problem", "door", p.door.Name.String(), "problem", strings.TrimSpace(string(line)), "count", count)
	}
	return len(line), nil
}
