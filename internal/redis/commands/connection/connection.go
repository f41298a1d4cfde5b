// Package connection has the commands about connections: PING, AUTH, HELLO, SELECT, RESET, QUIT, CLIENT, and
// SUBSCRIBE to the channels of Sentinel and StackExchange.Redis. Its handlers are safe for concurrent use.
package connection

import (
	"bytes"
	"slices"
	"strings"

	"cellserver/internal/base/often"
	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/commands/docs"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

type handlers struct {
	execute.Config
	logins       *clients.Logins
	failedLogins often.Counter
}

// Handlers returns the handlers by their commands' full names.
func Handlers(c execute.Config, logins *clients.Logins) map[string]execute.Handler {
	k := &handlers{Config: c, logins: logins}
	plain, onConnection := execute.Plain, execute.OnConnection
	return map[string]execute.Handler{
		"ping":                plain(k.ping),
		"publish":             onConnection(k.publish),
		"subscribe":           onConnection(k.subscribe),
		"unsubscribe":         onConnection(k.unsubscribe),
		"echo":                plain(echo),
		"quit":                onConnection(quit),
		"reset":               onConnection(reset),
		"select":              onConnection(k.selectDB),
		"auth":                onConnection(k.auth),
		"hello":               onConnection(k.hello),
		"client|id":           onConnection(clientID),
		"client|getname":      onConnection(clientGetName),
		"client|setname":      onConnection(clientSetName),
		"client|setinfo":      onConnection(clientSetInfo),
		"client|info":         onConnection(clientInfo),
		"client|list":         plain(k.clientList),
		"client|kill":         onConnection(k.clientKill),
		"client|no-evict":     onConnection(setFlag(func(i *clients.Info) *bool { return &i.NoEvict })),
		"client|no-touch":     onConnection(setFlag(func(i *clients.Info) *bool { return &i.NoTouch })),
		"client|unblock":      onConnection(k.clientUnblock),
		"client|reply":        onConnection(clientReply),
		"client|tracking":     onConnection(clientTracking),
		"client|trackinginfo": onConnection(clientTrackingInfo),
		"client|getredir":     onConnection(clientGetRedir),
		"client|caching":      onConnection(clientCaching),
	}
}

const (
	errNoPassword reply.Error = "ERR AUTH <password> called without any password configured for the default user. " +
		"Are you sure your configuration is correct?"
	errHelloNoAuth reply.Error = "NOAUTH HELLO must be called with the client already authenticated, otherwise the " +
		"HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP " +
		"protocol version at the same time"
	errProtoVersion    reply.Error = "NOPROTO unsupported protocol version"
	errProtoNotInteger reply.Error = "ERR Protocol version is not an integer or out of range"
)

func (k *handlers) ping(c execute.Call, args [][]byte) error {
	w := c.Reply()
	switch {
	case len(args) > 2:
		return reply.Arity(k.Catalog.Lookup(args[0]))
	case c.AmongMessages():
		w.Array(2)
		w.BulkString("pong")
		w.Bulk(slices.Concat(args[1:]...))
	case len(args) == 2:
		w.Bulk(args[1])
	default:
		w.Status("PONG")
	}
	return nil
}

func echo(c execute.Call, args [][]byte) error {
	c.Reply().Bulk(args[1])
	return nil
}

func quit(c execute.Call, conn execute.Connection, _ [][]byte) error {
	conn.Close()
	return c.OK()
}

func reset(c execute.Call, conn execute.Connection, _ [][]byte) error {
	conn.Reset()
	c.Reply().Status("RESET")
	return nil
}

func (k *handlers) selectDB(c execute.Call, conn execute.Connection, args [][]byte) error {
	db, err := argument.Database(args[1], k.Databases)
	if err != nil {
		return err
	}
	conn.Select(db)
	return c.OK()
}

func (k *handlers) auth(c execute.Call, conn execute.Connection, args [][]byte) error {
	user := []byte(acl.DefaultName)
	switch len(args) {
	case 2:
		if !k.Users.Default().NeedsPassword() {
			return errNoPassword
		}
	case 3:
		user = args[1]
	default:
		return reply.ErrSyntax
	}
	if !conn.Login(args[0], user, args[len(args)-1]) {
		return k.refuseLogin(conn)
	}
	return c.OK()
}

// refuseLogin replies after a pause that grows with each failure from the client's host.
func (k *handlers) refuseLogin(conn execute.Connection) error {
	client, nowNs := conn.Client(), k.Now()
	if count := k.failedLogins.Due(nowNs); count > 0 {
		k.Log.Warn("a client gave a wrong user name or password", "client", client.Addr(), "count", count,
			"hint", "ACL LOG shows the user names")
	}
	return conn.AfterPause(k.logins.Add(client.Peer, nowNs), reply.ErrWrongPass)
}

// hello is HELLO [protover [AUTH username password] [SETNAME clientname]].
func (k *handlers) hello(c execute.Call, conn execute.Connection, args [][]byte) error {
	resp3 := c.Reply().RESP3
	if len(args) > 1 {
		version, ok := resp.ParseInt(args[1])
		switch {
		case !ok:
			return errProtoNotInteger
		case version != 2 && version != 3:
			return errProtoVersion
		}
		resp3 = version == 3
	}
	for i := 2; i < len(args); i++ {
		switch left := len(args) - i - 1; {
		case left >= 2 && glob.Fold(args[i]) == "auth":
			if !conn.Login(args[0], args[i+1], args[i+2]) {
				return k.refuseLogin(conn)
			}
			i += 2
		case left >= 1 && glob.Fold(args[i]) == "setname":
			if err := setName(conn, args[i+1]); err != nil { // before later errors, as in Redis
				return err
			}
			i++
		default:
			return reply.Error("ERR Syntax error in HELLO option '" + resp.Printable(args[i]) + "'")
		}
	}
	if !conn.Authenticated() {
		return errHelloNoAuth
	}
	conn.SetRESP3(resp3)
	if len(args) > 1 { // a client begins anew, as the next user of a pooled connection
		conn.Track(false)
	}
	replyHello(c.Reply(), conn.Client().ID)
	return nil
}

func replyHello(w *resp.Writer, id int64) {
	protocol := int64(2)
	if w.RESP3 {
		protocol = 3
	}
	w.Map(7)
	w.Pair("server", "redis")
	w.Pair("version", catalog.RedisVersion)
	w.BulkString("proto")
	w.Int(protocol)
	w.BulkString("id")
	w.Int(id)
	w.Pair("mode", "standalone")
	w.Pair("role", "master")
	w.BulkString("modules")
	docs.ReplyModules(w)
}

// maxClientText bounds a client's texts, which are kept while it is connected.
const maxClientText = 1 << 10

// checkClientText requires one word for CLIENT INFO.
func checkClientText(what string, text []byte) error {
	if len(text) > maxClientText {
		return reply.Error("ERR " + what + " cannot be longer than 1024 bytes.")
	}
	if strings.ContainsFunc(string(text), func(r rune) bool { return r < '!' || r > '~' }) {
		return reply.Error("ERR " + what + " cannot contain spaces, newlines or special characters.")
	}
	return nil
}

const (
	errChannel reply.Error = "ERR " + catalog.RefuseChannel
	errMessage reply.Error = "ERR a message on a channel has at most 4096 bytes and no line breaks"
)

// channelOf returns a channel by its name, nil if there is none.
func (k *handlers) channelOf(name []byte) *clients.Channel {
	for _, ch := range k.Channels {
		if string(name) == ch.Name {
			return ch
		}
	}
	return nil
}

func (k *handlers) publish(c execute.Call, conn execute.Connection, args [][]byte) error {
	to, message := k.channelOf(args[1]), args[2]
	switch {
	case to == nil:
		return errChannel
	case len(message) > catalog.MaxMessageBytes || bytes.ContainsAny(message, "\r\n"):
		return errMessage
	}
	c.Reply().Int(int64(conn.Publish(to, message)))
	return nil
}

// subscribe is SUBSCRIBE channel [channel ...].
func (k *handlers) subscribe(c execute.Call, conn execute.Connection, args [][]byte) error {
	for _, name := range args[1:] {
		if k.channelOf(name) == nil {
			return errChannel
		}
	}
	for _, name := range args[1:] {
		if err := conn.Subscribe(k.channelOf(name)); err != nil {
			return err
		}
		replySubscription(c, "subscribe", name, len(conn.Subscribed()))
	}
	return nil
}

// unsubscribe is UNSUBSCRIBE [channel ...]. There is a reply for each, subscribed to or not.
func (k *handlers) unsubscribe(c execute.Call, conn execute.Connection, args [][]byte) error {
	names := args[1:]
	if len(names) == 0 {
		for _, ch := range conn.Subscribed() {
			names = append(names, []byte(ch.Name))
		}
	}
	if len(names) == 0 {
		names = [][]byte{nil}
	}
	for _, name := range names {
		if from := k.channelOf(name); from != nil || name == nil {
			if err := conn.Unsubscribe(from); err != nil {
				return err
			}
		}
		replySubscription(c, "unsubscribe", name, len(conn.Subscribed()))
	}
	return nil
}

// replySubscription tells of a channel, null for none, and how many the client is now subscribed to.
func replySubscription(c execute.Call, what string, name []byte, channels int) {
	w := c.Reply()
	w.Push(3)
	w.BulkString(what)
	if name == nil {
		w.Null()
	} else {
		w.Bulk(name)
	}
	w.Int(int64(channels))
}
