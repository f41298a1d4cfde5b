// Package session is a client's conversation: bytes in, commands found, admitted, executed and answered in order, at
// once or when they are done; or calls in, and answers out. A Session belongs to one goroutine at a time; an
// Engine is shared by all sessions and safe for concurrent use.
package session

import (
	"maps"

	"cellserver/internal/base/often"
	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/script"
	"cellserver/internal/resp"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/glob"
	"cellserver/internal/wire/peer"
)

// Engine is what all sessions share.
type Engine struct {
	*execute.Engine
	crossProtocol often.Counter
	evictions     often.Counter
}

// NewEngine returns an Engine, with handlers for all commands but those that the package has itself. The error says which
// command has no handler of the kind that it needs.
func NewEngine(c execute.Config) (*Engine, error) {
	e := &Engine{}
	handlers := maps.Clone(c.Handlers)
	maps.Copy(handlers, ownHandlers())
	maps.Copy(handlers, script.Handlers())
	c.Handlers = handlers
	c.Clients.OnEvict = e.reportEviction
	var err error
	e.Engine, err = execute.NewEngine(c)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// NewSession returns the session of a new client.
func (e *Engine) NewSession(p peer.Peer, conn peer.Conn) *Session {
	return e.NewSessionAs(p, conn, nil)
}

// NewSessionAs returns the session of a new client that is authenticated as a user already; nil for who a client is that has not
// said anything.
func (e *Engine) NewSessionAs(p peer.Peer, conn peer.Conn, user *acl.User) *Session {
	s := &Session{engine: e, decoder: resp.Decoder{Limits: e.Config.Limits}}
	client := clients.New(p, conn, e.Config.Now())
	e.NewClient(&s.x, (*clientRole)(s), client)
	e.Config.Clients.Add(client)
	if user != nil {
		s.x.Become(user)
	} else {
		s.x.Greet()
	}
	return s
}

// isCrossProtocol recognises a browser's request by its first line, or by one of its headers.
func isCrossProtocol(name []byte) bool {
	return len(name) <= len("host:") && (glob.Fold(name) == "post" || glob.Fold(name) == "host:")
}

func (e *Engine) reportCrossProtocol(addr string) {
	if count := e.crossProtocol.Due(e.Config.Now()); count > 0 {
		e.Config.Log.Warn("possible attack: a client sent an HTTP request; connection closed", "client", addr, "count", count)
	}
}

// reportEviction tells of a client that is closed for the memory that it holds.
func (e *Engine) reportEviction(c *clients.Client, bytes int) {
	if count := e.evictions.Due(e.Config.Now()); count > 0 {
		e.Config.Log.Warn("the clients hold more memory than they may together; the connection of the one that holds most is closed",
			"client", c.Addr(), "held_bytes", bytes, "left_bytes", e.Config.Clients.Memory(), "max_bytes", e.Config.Clients.MaxMemory(),
			"count", count, "hint", "see tot-mem in CLIENT LIST; --maxmemory-clients is the limit, and CLIENT NO-EVICT exempts a connection")
	}
}
