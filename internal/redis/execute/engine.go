// Package execute executes commands against keys: an Executor admits, batches, calls and counts them, and its Role is for whom:
// a client, a transaction, a script, the background. An Executor belongs to one goroutine at a time; an Engine is shared by all
// of them and safe for concurrent use.
package execute

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
	"cellserver/internal/decide/namedlimit"
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
)

// Config is what an Engine needs. All fields but Scripts, Keeper and StoreTimeout must be set.
type Config struct {
	Store             store.Store
	Now               func() int64     // Unix nanoseconds, never going back
	WallTime          func() time.Time // of TIME
	Catalog           *catalog.Catalog
	Handlers          map[string]Handler // by the full names of the commands
	Users             *acl.Users         // made of the same Catalog
	ACLLog            *acl.Log
	Records           *observe.Records
	Clients           *clients.Register
	NewKeys           *clients.NewKeys
	NamedLimits       *namedlimit.Registry
	Reading           funnel.Reading
	Databases         int
	MaxKeyBytes       int
	MaxReplyBytes     int           // of one reply
	StoreTimeout      time.Duration // of a store.Remote: how long a transaction is tried again; 0 for transact.DefaultStoreTimeout
	Limits            resp.Limits
	Scripts           *lua.Engine // nil where scripts are disabled
	Keeper            Keeper      // nil where nothing is kept on a disk
	BackgroundThreads int         // how many long commands, and how many scripts, run at once
	Log               *slog.Logger
}

// Keeper is what sessions need of what keeps the store on a disk.
type Keeper interface {
	// Loading reports whether what was kept is still being read, so that nothing may be asked of the store.
	Loading() bool
	// Frozen reports whether nothing may be changed, for it could not be kept.
	Frozen() bool
	// Confirms reports whether a reply that tells of a change must wait for Confirm.
	Confirms() bool
	// Confirm calls done once, from any goroutine: with true when all that was changed before is on the disk,
	// and with false if that takes too long.
	Confirm(done func(kept bool))
}

// Engine is what all executors share.
type Engine struct {
	Config   Config
	Handlers []Handler // by catalog.Command.ID
	Live     transact.Space
	Watcher  store.Watcher // that the store is; nil if it is none
	Stage    transact.Stage
	Decider  decide.Decider
	Room     *queue.Room // who waits in CL.BTHROTTLE
	Remote   *Remote     // nil where the store is this machine's
	// Slots bound how much runs in the background at once, so that the event loops have processors left to run on.
	Background *background.Slots // of long commands
	Scripts    *background.Slots // of scripts
	Context    context.Context   // of all that runs in the background

	endBackground context.CancelFunc
	requests      []argument.Request // by catalog.Command.ID, of those that are decided in batches
	scratch       sync.Pool

	slowMonitors often.Counter
	unknown      often.Counter // of every unknownLeast commands that are not here
	unknownCalls atomic.Uint64

	scriptLines  often.Rate   // of all clients
	linesLeftOut atomic.Int64 // since the last one that was written
}

// Remote is what an Engine has for a store on other machines. Whatever waits for them is done apart: in the background, in its
// turn for slots of its own, of which there are many, as those who have one mostly wait.
type Remote struct {
	*transact.Remote
	Slots *background.Slots
}

// remoteSlots are about as many as a store of a few machines has connections: more would wait for those, and that counts as time of
// the store. Measured on one machine: with 256, 50 clients of CL.MTHROTTLE ran into --store-timeout, and with 64 300 did not.
const remoteSlots = 64

// NewEngine returns an Engine. The error says which command has no handler of the kind that it needs.
func NewEngine(c Config) (*Engine, error) {
	e := &Engine{
		Config:     c,
		Handlers:   make([]Handler, len(c.Catalog.Commands())),
		requests:   make([]argument.Request, len(c.Catalog.Commands())),
		Live:       transact.Space{Keys: c.Store},
		Decider:    decide.Decider{Now: c.Now, Records: c.Records},
		Background: background.NewSlots(c.BackgroundThreads, c.Now),
		Scripts:    background.NewSlots(c.BackgroundThreads, c.Now),
	}
	e.Room = queue.New(c.Store, c.Now)
	e.Context, e.endBackground = context.WithCancel(context.Background())
	e.Live.All, _ = c.Store.(store.Walker)
	e.Watcher, _ = c.Store.(store.Watcher)
	txs, _ := c.Store.(store.Transactor)
	e.Stage = transact.Stage{Store: c.Store, Txs: txs, Now: c.Now, Clients: c.Clients.Len, MaxKeyBytes: c.MaxKeyBytes}
	if on := transact.NewRemote(c.Store, c.StoreTimeout); on != nil {
		e.Remote = &Remote{on, background.NewSlots(remoteSlots, c.Now)}
		e.Config.NewKeys = &clients.NewKeys{} // whether a key is new is known to others
	}
	e.scratch.New = func() any { return e.newScratch() }
	return e, e.bind()
}

// bind gives each command its handler, or what reads its arguments.
func (e *Engine) bind() error {
	requests := argument.Requests(e.Config.NamedLimits)
	for _, command := range e.Config.Catalog.Commands() {
		h := e.Config.Handlers[command.FullName()]
		if err := h.fits(command); err != nil {
			return fmt.Errorf("session: bind %s: %w", command.FullName(), err)
		}
		h.apart = e.Remote != nil && h.usesStore(command)
		e.Handlers[command.ID] = h
		if e.requests[command.ID] = requests[command.FullName()]; command.Batches != (e.requests[command.ID] != nil) {
			return fmt.Errorf("session: bind %s: it is decided in batches, and nothing reads its arguments, or the other way round", command.FullName())
		}
	}
	return nil
}

func (e *Engine) newScratch() *Scratch {
	return &Scratch{batch: make([]store.Request, 0, maxBatch), Local: e.Config.Records.NewLocal()}
}

// Transacts reports whether several keys can be changed as one step.
func (e *Engine) Transacts() bool { return e.Stage.Txs != nil || e.Remote != nil }

// EndBackground ends what runs in the background early, and what waits for its turn, now and from now on: the server is about
// to end.
func (e *Engine) EndBackground() {
	e.endBackground()
	e.Room.End()
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
	if count := unknownLeast * e.unknown.Due(e.Config.Now()); count > 0 {
		e.Config.Log.Warn("clients send commands that this server does not have, and get errors",
			"client", c.Addr(), "name", resp.PrintableN([]byte(c.Name()), maxUnknownBytes),
			"command", resp.PrintableN(args[0], maxUnknownBytes), "count", count, "hint",
			"see CellserverErrorReplies in docs/OPERATIONS.md: some libraries take an error for \"allowed\"")
	}
}
