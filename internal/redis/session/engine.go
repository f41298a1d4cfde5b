// Package session is a client's conversation: it finds commands in bytes, has them admitted and executed in
// order, and replies; or is asked by values, and takes decisions. A Session belongs to one goroutine at a
// time; an Engine is shared and safe for concurrent use.
package session

import (
	"maps"

	"cellserver/internal/base/often"
	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/execute"
	"cellserver/internal/resp"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/glob"
	"cellserver/internal/wire/peer"
)

// Engine is shared by all sessions.
type Engine struct {
	*execute.Engine
	crossProtocol often.Counter
	evictions     often.Counter
}

// NewEngine returns an Engine with its own commands' handlers added. The error names a command without a
// suitable handler.
func NewEngine(c execute.Config) (*Engine, error) {
	e := &Engine{}
	handlers := maps.Clone(c.Handlers)
	maps.Copy(handlers, ownHandlers())
	maps.Copy(handlers, execute.ScriptHandlers())
	c.Handlers = handlers
	c.Clients.OnEvict = e.reportEviction
	var err error
	e.Engine, err = execute.NewEngine(c)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (e *Engine) NewSession(p peer.Peer, conn peer.Conn) *Session {
	return e.NewSessionAs(p, conn, nil)
}

// NewSessionAs returns the session of a client that is authenticated already; a nil user starts like any
// client.
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

// isCrossProtocol recognizes a browser's request by its first line or a header.
func isCrossProtocol(name []byte) bool {
	return len(name) <= len("host:") && (glob.Fold(name) == "post" || glob.Fold(name) == "host:")
}

func (e *Engine) reportCrossProtocol(addr string) {
	if count := e.crossProtocol.Due(e.Config.Now()); count > 0 {
		e.Config.Log.Warn("possible attack: a client sent an HTTP request; connection closed", "client", addr, "count", count)
	}
}

// reportEviction logs a client closed for its memory.
func (e *Engine) reportEviction(c *clients.Client, bytes int) {
	if count := e.evictions.Due(e.Config.Now()); count > 0 {
		e.Config.Log.Warn("the clients hold more memory than they may together; the connection of the one that holds most is closed",
			"client", c.Addr(), "held_bytes", bytes, "left_bytes", e.Config.Clients.Memory(), "max_bytes", e.Config.Clients.MaxMemory(),
			"count", count, "hint", "see tot-mem in CLIENT LIST; --maxmemory-clients is the limit, and CLIENT NO-EVICT exempts a connection")
	}
}
