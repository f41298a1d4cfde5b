// Package command is the table of commands and the sessions that execute them. A Session belongs to one
// goroutine at a time; an Engine is shared by all sessions and safe for concurrent use.
package command

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/acl"
	"cellserver/internal/funnel"
	"cellserver/internal/histogram"
	"cellserver/internal/lua"
	"cellserver/internal/often"
	"cellserver/internal/peer"
	"cellserver/internal/resp"
	"cellserver/internal/shard"
	"cellserver/internal/topkeys"
)

// RedisVersion is the Redis whose replies the commands give; clients choose what they send by it.
const RedisVersion = "7.0.15"

// Config is what an Engine needs. All fields but ACLFile, Scripts, Settings and Watching must be set.
type Config struct {
	Store         *shard.Store
	Now           func() int64 // Unix nanoseconds, never going back
	Reading       funnel.Reading
	Databases     int
	MaxKeyBytes   int
	MaxReplyBytes int // of one reply
	Limits        resp.Limits
	Users         *acl.Users
	ACLFile       string      // "" for none
	Scripts       *lua.Engine // nil where scripts are off
	AsideThreads  int         // how many long commands, and how many scripts, run at once
	Version       string      // of this server
	Settings      []Setting
	Watching      Watching
	Clients       func() ClientStats
	Shutdown      func()                 // ends the server in good order
	Debug         func(p peer.Peer) bool // whether a client may use DEBUG
	Log           *slog.Logger
}

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
	config  Config
	table   table
	started time.Time
	scratch sync.Pool
	clients clients
	errors  errorStats
	logins  logins
	topKeys *topkeys.Tracker
	setting sync.Mutex // held by CONFIG SET, so that those of two clients do not mix

	slow      slowness
	slowlog   slowlog
	latencies latencies
	monitors  monitors

	aclLog   *acl.Log
	scale    *histogram.Scale
	tallies  []*tally
	turn     atomic.Uint32 // of the tallies, for the next scratch
	outcomes outcomes
	throttle *row
	runID    string
	asides   slots // of what is done aside of the drivers
	scripts  slots // of scripts

	protocolErrors atomic.Uint64

	crossProtocol often.Counter
	failedLogins  often.Counter
	slowMonitors  often.Counter
}

// Commands returns what access control must know of the commands.
func Commands() []acl.Command {
	var all []acl.Command
	t := newTable(rows())
	t.each(func(r *row) {
		all = append(all, acl.Command{Name: r.fullName(), Parent: r.parent, Categories: r.aclCategories(), NoAuth: r.flags&flagNoAuth != 0})
	})
	return all
}

// NewEngine returns an Engine.
func NewEngine(c Config) *Engine {
	e := &Engine{
		config:  c,
		table:   newTable(rows()),
		aclLog:  acl.NewLog(acl.DefaultLogEntries),
		started: time.Now(),
		scale:   histogram.NewScale(),
		clients: clients{byID: map[int64]*client{}},
		asides:  newSlots(c.AsideThreads),
		scripts: newSlots(c.AsideThreads),
		runID:   runID(),
		topKeys: topkeys.New(),
	}
	e.tallies = newTallies(e.table.ids, e.scale)
	e.scratch.New = func() any { return e.newScratch() }
	e.watch(c.Watching)
	e.throttle = e.table.byName["cl.throttle"]
	if c.Scripts == nil {
		e.table.refuse("scripts are off: start the server without --lua=off", "eval", "evalsha", "eval_ro", "evalsha_ro", "script")
	}
	return e
}

func (e *Engine) newScratch() *scratch {
	t := e.tallies[int(e.turn.Add(1))%len(e.tallies)]
	return &scratch{batch: make([]shard.Request, 0, maxBatch), tally: t}
}

// runID returns 40 random hexadecimal digits, as Redis has in INFO.
func runID() string {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// NewSession returns the session of a new client.
func (e *Engine) NewSession(p peer.Peer, conn peer.Conn) *Session {
	s := &Session{
		engine:  e,
		conn:    conn,
		client:  &client{peer: p, conn: conn, created: time.Now(), info: clientInfo{queued: -1}},
		decoder: resp.Decoder{Limits: e.config.Limits},
	}
	e.clients.add(s.client)
	s.greet()
	return s
}

// isCrossProtocol recognises a browser's request by its first line, or by one of its headers.
func isCrossProtocol(name []byte) bool {
	return len(name) <= len("host:") && (lower(name) == "post" || lower(name) == "host:")
}

func (e *Engine) reportCrossProtocol(addr string) {
	if count := e.crossProtocol.Due(e.config.Now()); count > 0 {
		e.config.Log.Warn("possible attack: a client sent an HTTP request; connection closed", "client", addr, "count", count)
	}
}
