// Package session is a client's conversation: bytes in, commands found, admitted, executed and answered in order, at
// once or when they are done; EXEC and scripts are sessions within it. A Session belongs to one goroutine at a time; an
// Engine is shared by all sessions and safe for concurrent use.
package session

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/base/often"
	"cellserver/internal/decide"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/limits"
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/queue"
	"cellserver/internal/funnel"
	"cellserver/internal/lua"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
	"cellserver/internal/wire/peer"
)

// Config is what an Engine needs. All fields but Scripts, Keeper and StoreTimeout must be set.
type Config struct {
	Store             store.Store
	Now               func() int64     // Unix nanoseconds, never going back
	WallTime          func() time.Time // of TIME
	Catalog           *catalog.Catalog
	Handlers          map[string]Handler // by the full names of the commands, but for those that the package has itself
	Users             *acl.Users         // made of the same Catalog
	ACLLog            *acl.Log
	Records           *observe.Records
	Clients           *clients.Register
	NewKeys           *clients.NewKeys
	NamedLimits       *limits.Registry
	Reading           funnel.Reading
	Databases         int
	MaxKeyBytes       int
	MaxReplyBytes     int           // of one reply
	StoreTimeout      time.Duration // of a store.Remote: how long a transaction is tried again; 0 for DefaultStoreTimeout
	Limits            resp.Limits
	Scripts           *lua.Engine // nil where scripts are disabled
	Keeper            Keeper      // nil where nothing is kept on a disk
	BackgroundThreads int         // how many long commands, and how many scripts, run at once
	Log               *slog.Logger
}

// Engine is what all sessions share.
type Engine struct {
	config   Config
	handlers []Handler          // by catalog.Command.ID
	requests []argument.Request // likewise, of those that are decided in batches
	live     transact.Space     // the store as it is
	watcher  store.Watcher
	txs      store.Transactor
	stage    transact.Stage
	decider  decide.Decider
	scratch  sync.Pool
	room     *queue.Room // who waits in CL.BTHROTTLE
	remote   *remote     // nil where the store is this machine's
	// Slots bound how much runs in the background at once, so that the event loops have processors left to run on.
	background *background.Slots // of long commands
	scripts    *background.Slots // of scripts

	ctx           context.Context // of all that runs in the background
	endBackground context.CancelFunc

	crossProtocol often.Counter
	slowMonitors  often.Counter
	evictions     often.Counter
	unknown       often.Counter // of every unknownLeast commands that are not here
	unknownCalls  atomic.Uint64

	scriptLines  often.Rate   // of all clients
	linesLeftOut atomic.Int64 // since the last one that was written
}

// NewEngine returns an Engine. The error says which command has no handler of the kind that it needs.
func NewEngine(c Config) (*Engine, error) {
	e := &Engine{
		config:     c,
		handlers:   make([]Handler, len(c.Catalog.Commands())),
		requests:   make([]argument.Request, len(c.Catalog.Commands())),
		live:       transact.Space{Keys: c.Store},
		decider:    decide.Decider{Now: c.Now, Records: c.Records},
		background: background.NewSlots(c.BackgroundThreads, c.Now),
		scripts:    background.NewSlots(c.BackgroundThreads, c.Now),
	}
	e.room = queue.New(c.Store, c.Now)
	e.ctx, e.endBackground = context.WithCancel(context.Background())
	e.live.All, _ = c.Store.(store.Walker)
	e.watcher, _ = c.Store.(store.Watcher)
	e.txs, _ = c.Store.(store.Transactor)
	e.stage = transact.Stage{Store: c.Store, Txs: e.txs, Now: c.Now, Clients: c.Clients.Len, MaxKeyBytes: c.MaxKeyBytes}
	if e.remote = newRemote(&c); e.remote != nil {
		e.config.NewKeys = &clients.NewKeys{} // whether a key is new is known to others
	}
	e.scratch.New = func() any { return e.newScratch() }
	c.Clients.OnEvict = e.reportEviction
	own, requests := ownHandlers(), argument.Requests(c.NamedLimits)
	for _, command := range c.Catalog.Commands() {
		h, ok := own[command.FullName()]
		if !ok {
			h = c.Handlers[command.FullName()]
		}
		if err := h.fits(command); err != nil {
			return nil, fmt.Errorf("session: bind %s: %w", command.FullName(), err)
		}
		if e.remote != nil {
			h = e.remote.bind(command, h)
		}
		e.handlers[command.ID] = h
		if e.requests[command.ID] = requests[command.FullName()]; command.Batches != (e.requests[command.ID] != nil) {
			return nil, fmt.Errorf("session: bind %s: it is decided in batches, and nothing reads its arguments, or the other way round", command.FullName())
		}
	}
	return e, nil
}

func (e *Engine) newScratch() *scratch {
	return &scratch{batch: make([]store.Request, 0, maxBatch), local: e.config.Records.NewLocal()}
}

// EndBackground ends what runs in the background early, and what waits for its turn, now and from now on: the server is about
// to end.
func (e *Engine) EndBackground() {
	e.endBackground()
	e.room.End()
}

// NewSession returns the session of a new client.
func (e *Engine) NewSession(p peer.Peer, conn peer.Conn) *Session {
	s := &Session{
		engine:  e,
		client:  clients.New(p, conn, e.config.Now()),
		space:   &e.live,
		decoder: resp.Decoder{Limits: e.config.Limits},
	}
	e.config.Clients.Add(s.client)
	s.greet()
	return s
}

// isCrossProtocol recognises a browser's request by its first line, or by one of its headers.
func isCrossProtocol(name []byte) bool {
	return len(name) <= len("host:") && (glob.Fold(name) == "post" || glob.Fold(name) == "host:")
}

func (e *Engine) reportCrossProtocol(addr string) {
	if count := e.crossProtocol.Due(e.config.Now()); count > 0 {
		e.config.Log.Warn("possible attack: a client sent an HTTP request; connection closed", "client", addr, "count", count)
	}
}

// unknownLeast is how many commands that are not here are worth a line: by a few a library finds out what is.
// A flood of them seldom reads the clock.
const unknownLeast = 10

// maxUnknownBytes is how much of a name that a client chooses is logged.
const maxUnknownBytes = 64

// reportUnknown names a client whose commands are not here: some take the error for "allowed", and then
// nobody is limited.
func (e *Engine) reportUnknown(c *clients.Client, args [][]byte) {
	if e.unknownCalls.Add(1)%unknownLeast != 0 {
		return
	}
	if count := unknownLeast * e.unknown.Due(e.config.Now()); count > 0 {
		e.config.Log.Warn("clients send commands that this server does not have, and get errors",
			"client", c.Addr(), "name", resp.PrintableN([]byte(c.Name()), maxUnknownBytes),
			"command", resp.PrintableN(args[0], maxUnknownBytes), "count", count, "hint",
			"see CellserverErrorReplies in docs/OPERATIONS.md: some libraries take an error for \"allowed\"")
	}
}

// reportEviction tells of a client that is closed for the memory that it holds.
func (e *Engine) reportEviction(c *clients.Client, bytes int) {
	if count := e.evictions.Due(e.config.Now()); count > 0 {
		e.config.Log.Warn("the clients hold more memory than they may together; the connection of the one that holds most is closed",
			"client", c.Addr(), "held_bytes", bytes, "left_bytes", e.config.Clients.Memory(), "max_bytes", e.config.Clients.MaxMemory(),
			"count", count, "hint", "see tot-mem in CLIENT LIST; --maxmemory-clients is the limit, and CLIENT NO-EVICT exempts a connection")
	}
}
