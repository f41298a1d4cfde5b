package execute

import (
	"time"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/queue"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// Connection is the client's side of a Call, for the commands that are about it.
type Connection struct{ x *Executor }

// Client is what others know of the client.
func (c Connection) Client() *clients.Client { return c.x.Client }

// User is who the client has authenticated as; nil for nobody.
func (c Connection) User() *acl.User { return c.x.User }

// Authenticated reports whether the client may execute commands.
func (c Connection) Authenticated() bool { return c.x.Authenticated }

// Login authenticates the client, if the password is right. The command is what it was given to, for ACL LOG.
func (c Connection) Login(command, name, password []byte) bool {
	x := c.x
	user, ok := x.Engine.Config.Users.Authenticate(name, password)
	if !ok {
		x.noteDenial(acl.Denial{Reason: acl.DeniedAuth, Object: string(command), Username: string(name)})
		return false
	}
	x.Become(user)
	return true
}

// Conversation is what a client's role has more than others.
type Conversation interface {
	// AfterPause is Connection.AfterPause.
	AfterPause(d time.Duration, err error) error
	// BeginMonitor has the client sent every command from now on, and EndMonitor no more.
	BeginMonitor() error
	EndMonitor()
	// Discard forgets the transaction and what was watched for it.
	Discard()
}

// ends ends what a conversation goes on with, where it is one.
func (c Connection) ends(do func(v Conversation)) {
	if v, ok := c.x.Role.(Conversation); ok {
		do(v)
	}
}

// AfterPause replies with an error when a pause is over. Unlike Call.After's, it is not counted as work, and a client that
// sends no more waits for it, too.
func (c Connection) AfterPause(d time.Duration, err error) error {
	v, ok := c.x.Role.(Conversation)
	if !ok {
		return reply.ErrNotInMulti
	}
	return v.AfterPause(d, err)
}

// SetRESP3 chooses between RESP3 and RESP2.
func (c Connection) SetRESP3(on bool) {
	c.x.W.RESP3 = on
	c.x.Client.Change(func(i *clients.Info) { i.RESP3 = on })
}

// Select chooses the client's database. A script's is its own.
func (c Connection) Select(db uint16) {
	c.x.DB = db
	if !c.x.byScript {
		c.x.Client.Change(func(i *clients.Info) { i.DB = db })
	}
}

// Replies turns replies on or off. Only turning them on is replied to.
func (c Connection) Replies(on bool) {
	if on {
		c.x.Replies, c.x.RepliesRequested = RepliesOn, true
	} else {
		c.x.Replies = RepliesOff
	}
}

// SkipReply has the next command not replied to.
func (c Connection) SkipReply() {
	if c.x.Replies != RepliesOff {
		c.x.Replies = RepliesSkipNext
	}
}

// Monitor has the client sent every command from now on.
func (c Connection) Monitor() error {
	v, ok := c.x.Role.(Conversation)
	if !ok {
		return reply.ErrMonitorInMulti
	}
	return v.BeginMonitor()
}

// Reset makes the connection as if it were new.
func (c Connection) Reset() {
	x := c.x
	c.ends(func(v Conversation) {
		v.EndMonitor()
		v.Discard()
	})
	x.DB, x.Replies, x.W.RESP3 = 0, RepliesOn, false
	x.Client.Change(func(i *clients.Info) {
		*i = clients.Info{LibName: i.LibName, LibVersion: i.LibVersion, Queued: -1}
	})
	x.Greet()
}

// Close ends the connection behind the reply.
func (c Connection) Close() {
	c.ends(Conversation.EndMonitor)
	c.x.Status = peer.Close
}

// Kill ends the connections of clients: its own behind the reply, and those of others at once, or, in EXEC, when it
// has let go of the keys.
func (c Connection) Kill(victims []*clients.Client) {
	for _, victim := range victims {
		if victim == c.x.Client {
			c.x.Status = peer.Close
		} else {
			c.x.Effects.Kill(victim)
		}
	}
}

// Unblock ends the time of a client that waits for its turn, and reports whether it did wait. It is told so by an error, or as
// if its time had run out.
func (c Connection) Unblock(other *clients.Client, byError bool) bool {
	turn, why := other.Awaits(), queue.TimedOut
	if byError {
		why = queue.Unblocked
	}
	return turn != nil && turn.Outcome() == queue.Waiting && c.x.Effects.Unblock(turn, why)
}

// Become makes the client the user, or nobody.
func (x *Executor) Become(user *acl.User) {
	x.User = user
	x.Authenticated = user != nil
	name := acl.DefaultName // what Redis calls nobody
	if user != nil {
		name = user.Name()
	}
	x.Client.Change(func(i *clients.Info) { i.User = name })
}

// Greet makes a client what it is before it has said anything: the user that its certificate names, or the default
// user if that has no password.
func (x *Executor) Greet() {
	users := x.Engine.Config.Users
	if name := x.Client.Peer.CertName; name != "" {
		if user := users.Lookup(name); user != nil && user.Enabled() {
			x.Become(user)
			return
		}
	}
	if user := users.Default(); !user.NeedsPassword() && user.Enabled() {
		x.Become(user)
	} else {
		x.Become(nil)
	}
}
