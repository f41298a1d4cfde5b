package execute

import (
	"time"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/queue"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Connection is the client's side of a Call, for commands about connections.
type Connection struct{ x *Executor }

// Client returns the client's public record.
func (c Connection) Client() *clients.Client { return c.x.Client }

// User returns the authenticated user, or nil.
func (c Connection) User() *acl.User { return c.x.User }

// MayRead reports whether the user may look at a key, which has the name of a limit and a colon before it.
func (c Connection) MayRead(key []byte) bool { return c.x.mayRead(key) }

func (x *Executor) mayRead(key []byte) bool {
	if x.User == nil || x.User.Unrestricted() {
		return true
	}
	id := x.Engine.Config.Catalog.LookupFull([]byte("cl.limit|explain")).ID
	reason, _ := x.User.Check(id, nil, []acl.Key{{Name: key, Access: acl.Read}})
	return reason == acl.Allowed
}

func (c Connection) Authenticated() bool { return c.x.Authenticated() }

// Login authenticates the client and reports success. The command is for ACL LOG.
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

// Conversation is implemented by a client's own role only.
type Conversation interface {
	AfterPause(d time.Duration, err error) error
	// BeginMonitor starts sending every command to the client.
	BeginMonitor() error
	// Subscribe starts sending a channel's messages to the client. Unsubscribe stops it.
	Subscribe(to *clients.Channel)
	Unsubscribe(from *clients.Channel)
	// Subscribed returns the channels in the order in which they were subscribed to.
	Subscribed() []*clients.Channel
	// EndListening ends all that BeginMonitor and Subscribe have begun.
	EndListening()
	// Discard drops the transaction and the watched keys.
	Discard()
}

// ends ends a state of the conversation, if there is one.
func (c Connection) ends(do func(v Conversation)) {
	if v, ok := c.x.Role.(Conversation); ok {
		do(v)
	}
}

// AfterPause replies with an error after a delay. Unlike Call.After, it does not count as work, and clients
// that have closed their half wait, too.
func (c Connection) AfterPause(d time.Duration, err error) error {
	v, ok := c.x.Role.(Conversation)
	if !ok {
		return reply.ErrNotInMulti
	}
	return v.AfterPause(d, err)
}

// SetRESP3 switches between RESP3 and RESP2.
func (c Connection) SetRESP3(on bool) {
	c.x.W.RESP3 = on
	c.x.Client.Change(func(i *clients.Info) { i.RESP3 = on })
}

// Track turns CLIENT TRACKING's mode OPTIN on or off.
func (c Connection) Track(on bool) {
	c.x.Forbidden &^= cachedFlags
	c.x.Client.Change(func(i *clients.Info) { i.Tracking = on })
}

// cachedFlags are those of commands whose replies a client may cache.
const cachedFlags = catalog.FlagReadonly | catalog.FlagWrite | catalog.FlagScript

// ForbidCached refuses the client's next command that reads or writes keys, or all of the next transaction:
// rueidis caches their replies even if CLIENT CACHING YES is refused.
func (c Connection) ForbidCached() {
	if _, ok := c.x.Role.(Conversation); ok {
		c.x.Forbidden |= cachedFlags
	}
}

// Select selects a database. A script has its own selection.
func (c Connection) Select(db uint16) {
	c.x.DB = db
	if !c.x.Mode.byScript() {
		c.x.Client.Change(func(i *clients.Info) { i.DB = db })
	}
}

// Replies switches replies on or off. Only switching on is replied to.
func (c Connection) Replies(on bool) {
	c.x.Replies = RepliesOff
	if on {
		c.x.Replies = RepliesOn
	}
}

// SkipReply suppresses the next command's reply.
func (c Connection) SkipReply() {
	if c.x.Replies != RepliesOff {
		c.x.Replies = RepliesSkipNext
	}
}

// Monitor starts sending every command to the client.
func (c Connection) Monitor() error {
	v, ok := c.x.Role.(Conversation)
	if !ok {
		return reply.ErrMonitorInMulti
	}
	return v.BeginMonitor()
}

// Publish sends a message, without line breaks, to a channel's subscribers, and returns their number. In EXEC
// and scripts it is sent after the keys are released.
func (c Connection) Publish(to *clients.Channel, message []byte) (receivers int) {
	line := make([]byte, 0, len(message)+1)
	return c.x.Effects.Publish(to, append(append(line, message...), '\n'))
}

// Subscribe starts sending a channel's messages to the client.
func (c Connection) Subscribe(to *clients.Channel) error {
	v, ok := c.x.Role.(Conversation)
	if !ok {
		return reply.ErrSubscribeInMulti
	}
	v.Subscribe(to)
	return nil
}

// Unsubscribe is the end of Subscribe, if the client is subscribed.
func (c Connection) Unsubscribe(from *clients.Channel) error {
	v, ok := c.x.Role.(Conversation)
	if !ok {
		return reply.ErrSubscribeInMulti
	}
	v.Unsubscribe(from)
	return nil
}

// Subscribed returns the channels that the client is subscribed to, none in EXEC and scripts.
func (c Connection) Subscribed() []*clients.Channel {
	if v, ok := c.x.Role.(Conversation); ok {
		return v.Subscribed()
	}
	return nil
}

// Reset restores the state of a new connection.
func (c Connection) Reset() {
	x := c.x
	c.ends(func(v Conversation) {
		v.EndListening()
		v.Discard()
	})
	if x.DB, x.W.RESP3 = 0, false; x.Replies != RepliesSkipping {
		x.Replies = RepliesOn
	}
	x.Client.Change(func(i *clients.Info) {
		*i = clients.Info{LibName: i.LibName, LibVersion: i.LibVersion, Queued: -1, ReplicaAt: i.ReplicaAt}
	})
	x.Greet()
}

// Close closes the connection after the reply.
func (c Connection) Close() {
	c.ends(Conversation.EndListening)
	c.x.Status = peer.Close
}

// Kill closes clients: its own after the reply, others at once, or in EXEC after the keys are released.
func (c Connection) Kill(victims []*clients.Client) {
	for _, victim := range victims {
		if victim == c.x.Client {
			c.x.Status = peer.Close
		} else {
			c.x.Effects.Kill(victim)
		}
	}
}

// Unblock ends a client's waiting, by an error or as if its time were over, and reports whether it waited.
func (c Connection) Unblock(other *clients.Client, byError bool) bool {
	turn, why := other.Awaits(), queue.TimedOut
	if byError {
		why = queue.Unblocked
	}
	return turn != nil && turn.Outcome() == queue.Waiting && c.x.Effects.Unblock(turn, why)
}

// Become sets the client's user; nil is nobody.
func (x *Executor) Become(user *acl.User) {
	x.User = user
	name := acl.DefaultName // Redis's name for nobody
	if user != nil {
		name = user.Name()
	}
	x.Client.Change(func(i *clients.Info) { i.User = name })
}

// Greet sets a new client's user: its certificate's, or the default user if that has no password.
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
