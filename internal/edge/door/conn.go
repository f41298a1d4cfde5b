package door

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/edge/server"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// Conn is a connection of a door and its sessions: one from the beginning, and more while requests of HTTP/2
// run at once.
type Conn struct {
	net.Conn // TLS's, if there is
	wire     *wire
	door     *Door
	host     string // its network, whose connections count together
	refusal  string // why it is not a client, or empty
	reason   atomic.Int32
	matched  int       // bytes of the preface that it has sent
	begun    bool      // it has sent enough to know its protocol
	shaken   bool      // hands, over TLS
	grpc     bool      // grpc-go serves it, not net/http
	ledger   *ledger   // nil unless it speaks HTTP/2
	frames   *frames   // nil unless it speaks HTTP/2 to net/http
	greeting []byte    // read, but not by grpc-go
	unread   time.Time // since when its writes have their deadline, with grpc

	submitting sync.Mutex // rank 10: held by the request that is executed
	holding    holding

	mu     sync.Mutex // rank 60: guards all below
	peer   *peer.Peer // nil before the end of the handshake
	main   *client    // the one that holds what the connection does; nil before peer is known
	idle   []*client
	closed bool
}

// maxIdle bounds the sessions kept for further requests.
const maxIdle = 4

type connKey struct{}

func withConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, nc)
}

// ConnOf returns the connection of a request.
func ConnOf(r *http.Request) *Conn { return FromContext(r.Context()) }

// FromContext returns the connection of a request by its context.
func FromContext(ctx context.Context) *Conn { return ctx.Value(connKey{}).(*Conn) }

// wire is the network's side of a connection, and counts its bytes.
type wire struct {
	net.Conn
	guest     *server.Guest     // nil for a connection that is refused
	handshake *server.Handshake // nil without TLS
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.handshake.Read(b, w.Conn)
	if w.guest != nil {
		w.guest.Received(n)
	}
	return n, err
}

func (w *wire) Write(b []byte) (int, error) {
	w.handshake.Write()
	n, err := w.Conn.Write(b)
	if w.guest != nil {
		w.guest.Sent(n)
	}
	return n, err
}

// Count counts a request of the connection that began at a time of Config.Now.
func (c *Conn) Count(o Outcome, beganNs int64) { c.door.Stats.Count(o, c.door.Now()-beganNs) }

func (c *Conn) Now() int64 { return c.door.Now() }

// Problem logs what a client has done wrong, at a limited rate.
func (c *Conn) Problem(text string) { _, _ = problemLog{c.door}.Write([]byte(text)) }

// Peer describes the client.
func (c *Conn) Peer() peer.Peer { return *c.peer }

func (c *Conn) Read(b []byte) (int, error) {
	switch {
	case c.frames != nil:
		return c.frames.read(b, c.receive)
	case len(c.greeting) > 0:
		n := copy(b, c.greeting)
		c.greeting = c.greeting[n:]
		return n, nil
	case c.ledger != nil:
		return c.receive(b)
	}
	if err := c.shakeHands(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if !c.begun && n > 0 {
		if err := c.begin(b[:n]); err != nil {
			return 0, c.flooded(err)
		}
	}
	if c.ledger == nil {
		c.holding.request.Add(int64(n))
		c.hold(n)
	}
	return n, err
}

// receive reads frames.
func (c *Conn) receive(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if flood := c.note(b[:n]); flood != nil {
		return 0, c.flooded(flood)
	}
	return n, err
}

// flooded notes why the connection ends, after a pause as for a wrong password: to open another at once would
// cost others more than the flood.
func (c *Conn) flooded(err error) error {
	if c.wire.guest != nil {
		time.Sleep(c.door.flooders.Add(c.wire.guest.Peer, c.door.Now()))
	}
	c.reason.CompareAndSwap(int32(server.ReasonClient), int32(server.ReasonSession))
	if count := c.door.floods.Due(c.door.Now()); count > 0 {
		message := "a connection is closed, as it resets more streams than it lets be answered, or sends too many frames that ask nothing"
		if errors.Is(err, errStrange) {
			message = "a connection is closed, as it sends a long message without a token or certificate"
		}
		c.door.Log.Warn(message, "door", c.door.Name.String(), "client", c.wire.RemoteAddr().String(), "count", count)
	}
	return err
}

func (c *Conn) Write(b []byte) (int, error) {
	if c.ledger == nil {
		return c.send(b)
	}
	more, grown := c.ledger.sent(b)
	c.hold(grown)
	switch {
	case c.refusal != "" && c.grpc: // a later connection may be a client
		n, err := c.sendInTime(append(slices.Clip(b), c.ledger.goAway()...))
		return min(n, len(b)), err
	case c.grpc:
		return c.sendInTime(b)
	}
	return c.frames.write(b, more, c.send)
}

func (c *Conn) send(b []byte) (int, error) { return c.Conn.Write(b) }

func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	first, idle := !c.closed, c.idle
	c.closed, c.idle, c.main = true, nil, nil
	c.mu.Unlock()
	for _, one := range idle {
		one.session.Close()
	}
	switch {
	case !first:
	case c.wire.guest == nil:
		c.door.refused.Add(-1)
	default:
		c.wire.guest.Leave(server.Reason(c.reason.Load()))
	}
	return err
}

// Full returns ErrFull if the connection is not one of the clients.
func (c *Conn) Full() error {
	if c.refusal != "" {
		return ErrFull
	}
	return nil
}

// User is Door.User for a request of the connection. A wrong token is slowed down as a wrong password.
func (c *Conn) User(r *http.Request, token string) (*acl.User, error) {
	user, err := c.UserNow(token)
	if errors.Is(err, ErrToken) {
		if r.ProtoMajor == 2 { // its buffer would last as long as the pause; what still comes is dropped
			_ = r.Body.Close()
		}
		c.refuseToken(r.Context())
	}
	return user, err
}

// UserNow is User without the pause after a wrong token.
func (c *Conn) UserNow(token string) (*acl.User, error) {
	if err := c.Full(); err != nil {
		return nil, err
	}
	return c.door.User(c.peer, token)
}

// User returns the ACL user of a client's request: its token's, the certificate's, or nil for the default.
func (d *Door) User(p *peer.Peer, token string) (*acl.User, error) {
	if token != "" {
		if user := d.userOf(d.Tokens.User(token)); user != nil {
			return user, nil
		}
		return nil, ErrToken
	}
	if user := d.userOf(p.CertName); user != nil {
		return user, nil
	}
	if refusal := d.Admit(*p); refusal != "" {
		return nil, &RefusedError{refusal}
	}
	return nil, nil
}

func (c *Conn) IsStranger(user *acl.User) bool { return c.door.IsStranger(user) }
func (c *Conn) IsOperator(user *acl.User) bool { return c.door.IsOperator(user) }

// IsStranger reports whether nobody known sends a request of the user, nil for the default one: the
// default user needs a password, which requests cannot send.
func (d *Door) IsStranger(user *acl.User) bool {
	if user != nil {
		return false
	}
	user = d.Users.Default()
	return user.NeedsPassword() || !user.Enabled()
}

// IsOperator reports whether a known user may do everything.
func (d *Door) IsOperator(user *acl.User) bool {
	if user == nil {
		user = d.Users.Default()
	}
	return user.Unrestricted()
}

// userOf returns an enabled user, or nil.
func (d *Door) userOf(name string) *acl.User {
	if name == "" {
		return nil
	}
	if user := d.Users.Lookup(name); user != nil && user.Enabled() {
		return user
	}
	return nil
}

// refuseToken counts a wrong token, and has its request pause.
func (c *Conn) refuseToken(ctx context.Context) {
	pause := c.door.Logins.Add(*c.peer, c.door.Now())
	if count := c.door.badTokens.Due(c.door.Now()); count > 0 {
		c.door.Log.Warn("a request with an unknown token, or one of a disabled user, is refused", "door", c.door.Name.String(), "client", c.peer.Addr, "count", count,
			"hint", "see --http-tokens-file; SIGHUP reloads it")
	}
	if !c.door.pauses.Take(c.host, maxPauses, maxPausesOfHost) { // as many wait as may; one more pause would not slow a guesser down
		return
	}
	defer c.door.pauses.Leave(c.host)
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
}

// Ask has something executed by a user, nil for the default one. It fails if the request or its connection
// ends before; else what is asked is decided. It is the caller's no more if Ask fails.
func (c *Conn) Ask(ctx context.Context, user *acl.User, a decide.Ask) error {
	if err := c.door.enterRequest(); err != nil {
		return err
	}
	defer c.door.running.Add(-1)
	s := c.take()
	if s == nil {
		return net.ErrClosed
	}
	done := false
	defer func() { c.putBack(s, done) }() // also after a panic
	s.session.Become(user)
	for {
		switch c.inTurn(s.session, a) {
		case peer.NeedInput:
			done = true
			return nil
		case peer.More:
		case peer.Waiting:
			select {
			case <-s.woken:
			case <-ctx.Done():
				s.session.HungUp(peer.Reset)
				return ctx.Err()
			}
		default:
			_ = c.Close()
			return net.ErrClosed
		}
	}
}

func (c *Conn) inTurn(s Session, a decide.Ask) peer.Status {
	c.BeginTurn()
	defer c.EndTurn()
	return s.Ask(a)
}

// BeginTurn waits for a turn to compute something. A step may hold locks of the store for long, as 32 sliding
// windows at once do. One connection's requests wait for each other, and all but a few for their turn, else
// RESP's loops would wait behind each of them.
func (c *Conn) BeginTurn() {
	c.submitting.Lock()
	c.door.turns <- struct{}{}
}

// EndTurn ends BeginTurn.
func (c *Conn) EndTurn() {
	<-c.door.turns
	c.submitting.Unlock()
}
