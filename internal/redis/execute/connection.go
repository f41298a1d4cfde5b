package session

import (
	"time"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/queue"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// Connection is the client's side of a Call, for the commands that are about it.
type Connection struct{ s *Session }

// Client is what others know of the client.
func (c Connection) Client() *clients.Client { return c.s.client }

// User is who the client has authenticated as; nil for nobody.
func (c Connection) User() *acl.User { return c.s.user }

// Authenticated reports whether the client may execute commands.
func (c Connection) Authenticated() bool { return c.s.authenticated }

// Login authenticates the client, if the password is right. The command is what it was given to, for ACL LOG.
func (c Connection) Login(command, name, password []byte) bool {
	s := c.s
	user, ok := s.engine.config.Users.Authenticate(name, password)
	if !ok {
		s.noteDenial(acl.Denial{Reason: acl.DeniedAuth, Object: string(command), Username: string(name)})
		return false
	}
	s.become(user)
	return true
}

// AfterPause replies with an error when a pause is over. Unlike Call.After's, it is not counted as work, and a client that
// sends no more waits for it, too.
func (c Connection) AfterPause(d time.Duration, err error) error {
	if refused := c.s.after(d, func(s *Session) error {
		s.pending.beganNs, s.pending.workNs = s.engine.config.Now(), 0
		return err
	}); refused != nil {
		return refused
	}
	c.s.pending.stays = true
	return nil
}

// SetRESP3 chooses between RESP3 and RESP2.
func (c Connection) SetRESP3(on bool) {
	c.s.w.RESP3 = on
	c.s.client.Change(func(i *clients.Info) { i.RESP3 = on })
}

// Select chooses the client's database. A script's is its own.
func (c Connection) Select(db uint16) {
	c.s.db = db
	if c.s.role != inScript {
		c.s.client.Change(func(i *clients.Info) { i.DB = db })
	}
}

// Replies turns replies on or off. Only turning them on is replied to.
func (c Connection) Replies(on bool) {
	if on {
		c.s.replies, c.s.repliesRequested = repliesOn, true
	} else {
		c.s.replies = repliesOff
	}
}

// SkipReply has the next command not replied to.
func (c Connection) SkipReply() {
	if c.s.replies != repliesOff {
		c.s.replies = repliesSkipNext
	}
}

// Monitor has the client sent every command from now on.
func (c Connection) Monitor() error { return c.s.beginMonitor() }

// Reset makes the connection as if it were new.
func (c Connection) Reset() {
	s := c.s
	s.endMonitor()
	s.discard()
	s.db, s.replies, s.w.RESP3 = 0, repliesOn, false
	s.client.Change(func(i *clients.Info) {
		*i = clients.Info{LibName: i.LibName, LibVersion: i.LibVersion, Queued: -1}
	})
	s.greet()
}

// Close ends the connection behind the reply.
func (c Connection) Close() {
	c.s.endMonitor()
	c.s.status = peer.Close
}

// Kill ends the connections of clients: its own behind the reply, and those of others at once, or, in EXEC, when it
// has let go of the keys.
func (c Connection) Kill(victims []*clients.Client) {
	for _, victim := range victims {
		switch {
		case victim == c.s.client:
			c.s.status = peer.Close
		case c.s.inner != nil:
			c.s.inner.killed = append(c.s.inner.killed, victim)
		default:
			victim.Conn.Kill()
		}
	}
}

// unblocked is who is to wait no more when EXEC has let go of the keys.
type unblocked struct {
	turn *queue.Waiter
	why  queue.Outcome
}

// Unblock ends the time of a client that waits for its turn, and reports whether it did wait. It is told so by an error, or as
// if its time had run out.
func (c Connection) Unblock(other *clients.Client, byError bool) bool {
	turn, why := other.Awaits(), queue.TimedOut
	if byError {
		why = queue.Unblocked
	}
	switch {
	case turn == nil || turn.Outcome() != queue.Waiting:
		return false
	case c.s.inner != nil:
		c.s.inner.unblocked = append(c.s.inner.unblocked, unblocked{turn, why})
		return true
	}
	return turn.Leave(why)
}

// become makes the client the user, or nobody.
func (s *Session) become(user *acl.User) {
	s.user = user
	s.authenticated = user != nil
	s.decoder.Unauthenticated = user == nil
	name := acl.DefaultName // what Redis calls nobody
	if user != nil {
		name = user.Name()
	}
	s.client.Change(func(i *clients.Info) { i.User = name })
}

// greet makes a client what it is before it has said anything: the user that its certificate names, or the default
// user if that has no password.
func (s *Session) greet() {
	users := s.engine.config.Users
	if name := s.client.Peer.CertName; name != "" {
		if user := users.Lookup(name); user != nil && user.Enabled() {
			s.become(user)
			return
		}
	}
	if user := users.Default(); !user.NeedsPassword() && user.Enabled() {
		s.become(user)
	} else {
		s.become(nil)
	}
}
