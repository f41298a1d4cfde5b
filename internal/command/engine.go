// Package command is the table of commands and the sessions that execute them. A Session belongs to one
// goroutine at a time; an Engine is shared by all sessions and safe for concurrent use.
package command

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/resp"
	"cellserver/internal/shard"
)

// RedisVersion is the Redis whose replies the commands give; clients choose what they send by it.
const RedisVersion = "7.0.15"

// Config is what an Engine needs. All fields but Password and Settings must be set.
type Config struct {
	Store       *shard.Store
	Now         func() int64 // Unix nanoseconds, never going back
	Reading     funnel.Reading
	Databases   int
	MaxKeyBytes int
	Limits      resp.Limits
	Password    string // none asked for where empty
	Version     string // of this server
	Settings    []Setting
	Clients     func() ClientStats
	Log         *slog.Logger
}

// Setting is a name and a value that CONFIG GET knows.
type Setting struct{ Name, Value string }

// ClientStats is what the server above knows of connections.
type ClientStats struct {
	Connected  int
	MaxClients int
	Accepted   uint64 // since the start
	Refused    uint64 // over MaxClients, or by protected mode
	Port       int    // of the TCP listener, 0 without one
}

// Engine is what all sessions share.
type Engine struct {
	config   Config
	table    table
	started  time.Time
	scratch  sync.Pool
	lastID   atomic.Int64
	commands atomic.Int64 // executed, for INFO

	crossProtocol crossProtocolLog
}

// NewEngine returns an Engine.
func NewEngine(c Config) *Engine {
	return &Engine{
		config:  c,
		table:   newTable(rows()),
		started: time.Now(),
		scratch: sync.Pool{New: func() any { return &scratch{batch: make([]shard.Request, 0, maxBatch)} }},
	}
}

// NewSession returns the session of a new client. The session asks conn for what only its driver can do.
func (e *Engine) NewSession(peer Peer, conn Conn) *Session {
	s := &Session{
		engine:  e,
		peer:    peer,
		id:      e.lastID.Add(1),
		created: time.Now(),
		conn:    conn,
		decoder: resp.Decoder{Limits: e.config.Limits},
	}
	s.setAuthenticated(e.config.Password == "")
	return s
}

func (s *Session) setAuthenticated(yes bool) {
	s.authenticated = yes
	s.decoder.Unauthenticated = !yes
}

// crossProtocolLog reports the first of the web pages that reach for the port, and then one a minute, so that
// they cannot fill the log.
type crossProtocolLog struct {
	mu    sync.Mutex // guards all below
	last  time.Time
	since int // closed since the last report
}

const crossProtocolInterval = time.Minute

// isCrossProtocol recognises a browser's request by its first line, or by one of its headers.
func isCrossProtocol(name []byte) bool {
	return len(name) <= len("host:") && (lower(name) == "post" || lower(name) == "host:")
}

func (e *Engine) reportCrossProtocol(addr string) {
	l := &e.crossProtocol
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since++
	if now := time.Now(); l.last.IsZero() || now.Sub(l.last) >= crossProtocolInterval {
		e.config.Log.Warn("possible attack: a client sent an HTTP request; connection closed",
			"client", addr, "count", l.since)
		l.last, l.since = now, 0
	}
}
