// Package execute executes commands: an Executor admits, batches, calls and counts them for its Role, which
// is a client, EXEC, a script or background work. EXEC and a script are each one step: on copies of their
// keys, or while other clients wait for them. An Executor belongs to one goroutine at a time; an Engine is
// shared and safe for concurrent use.
package execute

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/base/buffers"
	"cellserver/internal/base/often"
	"cellserver/internal/decide"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/envoyconfig"
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
	"cellserver/internal/store/gate"
	"cellserver/internal/store/replicas"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// Config configures an Engine. All fields but Scripts, Keeper, Envoy and StoreTimeout are required.
type Config struct {
	Store         store.Store
	Now           func() int64     // monotonic Unix nanoseconds
	WallTime      func() time.Time // for TIME
	Catalog       *catalog.Catalog
	Handlers      map[string]Handler // by full command names
	Users         *acl.Users         // of the same Catalog
	ACLLog        *acl.Log
	Records       *observe.Records
	Clients       *clients.Register
	Channels      []*clients.Channel
	NewKeys       *clients.NewKeys
	NamedLimits   *namedlimit.Registry
	Reading       funnel.Reading
	Databases     int
	MaxKeyBytes   int
	MaxValueBytes int
	RequireTTL    bool // refuses values that never expire
	MaxReplyBytes int  // of a single reply
	// time for retries of a transaction on a store.Remote; 0 for transact.DefaultStoreTimeout
	StoreTimeout      time.Duration
	Limits            resp.Limits
	Scripts           *lua.Engine               // nil without scripts
	Keeper            Keeper                    // nil without a disk
	Replication       replicas.Server           // nil for a store on other machines
	Gate              *gate.Gate                // of the Store; nil for the Keeper's, or an open one
	Envoy             func() envoyconfig.Status // the limits for Envoy; nil without a door for it
	BackgroundThreads int                       // number of concurrent long commands, and of scripts
	Log               *slog.Logger
}

// Keeper persists the store.
type Keeper interface {
	// Status returns the state of persistence, without waiting for the disk.
	Status() store.Durability
	// Loading reports whether the state of the last run is still being read.
	Loading() bool
	// Save starts a snapshot and calls done once it is complete or has failed. It returns store.ErrSaving
	// while another snapshot is being written.
	Save(done func(error)) error
	// Sync calls done once all earlier changes are on the disk.
	Sync(done func())
	// Gate is closed while changes could not be persisted, and the store is being loaded.
	Gate() *gate.Gate
	// Confirms reports whether replies that report a change must wait for Confirm.
	Confirms() bool
	// Confirm calls done once, from any goroutine: true when all earlier changes are on disk, false after a
	// time-out.
	Confirm(done func(kept bool))
}

// Engine is shared by all executors.
type Engine struct {
	Config   Config
	Handlers []Handler // by catalog.Command.ID
	Live     transact.Space
	Watcher  store.Watcher // nil if the store does not watch
	Stage    transact.Stage
	Decider  decide.Decider
	Queue    *queue.Queue // clients waiting in CL.BTHROTTLE
	Can      store.Abilities
	Remote   *Remote // of a store that cannot hold keys; else nil
	// Slots bound the background work, to leave processors to the event loops.
	Background *background.Slots // of long commands
	Scripts    *background.Slots // of scripts
	Context    context.Context   // of all background work

	endBackground context.CancelFunc
	reset         *catalog.Command   // CL.RESET, the right to which is that to refill limiters
	requests      []argument.Request // of batched commands, by catalog.Command.ID
	inPrograms    []bool             // whether programs call a command, by catalog.Command.ID
	scratch       sync.Pool
	parts         buffers.Pool // of Parts

	slowMonitors    often.Counter
	slowSubscribers often.Counter
	unknown         often.Counter // counts every unknownLeast unknown commands
	unknownCalls    atomic.Uint64

	scriptLines  often.Rate   // of all clients
	linesLeftOut atomic.Int64 // since the last written line
}

// Remote serves a store on other machines. Its calls run in the background, in slots of their own; there are
// many, as most of them wait.
type Remote struct {
	*transact.Remote
	Slots *background.Slots
}

// remoteSlots is about the number of connections to a store of a few machines: more would queue for
// connections, in the store's time. Measured on one machine: with 256 slots, 50 clients of CL.MTHROTTLE
// exceeded --store-timeout; with 64, 300 did not.
const remoteSlots = 64

// NewEngine returns an Engine. The error names a command without a suitable handler.
func NewEngine(c Config) (*Engine, error) {
	e := &Engine{
		Config:     c,
		Handlers:   make([]Handler, len(c.Catalog.Commands())),
		requests:   make([]argument.Request, len(c.Catalog.Commands())),
		inPrograms: make([]bool, len(c.Catalog.Commands())),
		Live:       transact.Space{Keys: c.Store},
		Can:        store.AbilitiesOf(c.Store),
		Decider:    decide.Decider{Now: c.Now, Records: c.Records},
		Background: background.NewSlots(c.BackgroundThreads, c.Now),
		Scripts:    background.NewSlots(c.BackgroundThreads, c.Now),
	}
	switch {
	case c.Gate != nil:
	case c.Keeper != nil:
		e.Config.Gate = c.Keeper.Gate()
	default:
		e.Config.Gate = gate.New(nil, c.Now)
	}
	e.Queue = queue.New(c.Store, c.Now)
	e.Context, e.endBackground = context.WithCancel(context.Background())
	e.Live.All, _ = c.Store.(store.Walker)
	e.Watcher, _ = c.Store.(store.Watcher)
	txs, _ := c.Store.(store.Transactor)
	e.Stage = transact.Stage{Store: c.Store, Txs: txs, Now: c.Now, Clients: c.Clients.Len, MaxKeyBytes: c.MaxKeyBytes}
	if !e.Can.AtOnce {
		e.Remote = &Remote{transact.NewRemote(c.Store.(store.Remote), c.StoreTimeout, c.Now), background.NewSlots(remoteSlots, c.Now)}
		e.Config.NewKeys = &clients.NewKeys{} // others need to know whether a key is new
	}
	e.scratch.New = func() any { return e.newScratch() }
	return e, e.bind()
}

// bind connects each command to its handler, or to the parser of its arguments.
func (e *Engine) bind() error {
	requests := argument.Requests(e.Config.NamedLimits)
	e.reset = e.Config.Catalog.Lookup([]byte("cl.reset"))
	for _, command := range e.Config.Catalog.Commands() {
		h := e.Config.Handlers[command.FullName()]
		if err := h.fits(command); err != nil {
			return fmt.Errorf("session: bind %s: %w", command.FullName(), err)
		}
		h.waitsForStore = !e.Can.AtOnce && h.usesStore(command)
		e.Handlers[command.ID] = h
		e.inPrograms[command.ID] = isInPrograms(command, h)
		if e.requests[command.ID] = requests[command.FullName()]; command.Batches != (e.requests[command.ID] != nil) {
			return fmt.Errorf("session: bind %s: it is decided in batches, and nothing reads its arguments, or the other way round", command.FullName())
		}
	}
	return nil
}

func (e *Engine) newScratch() *Scratch {
	return &Scratch{batch: make([]store.Request, 0, maxBatch), Local: e.Config.Records.NewLocal()}
}

// Transacts reports whether the store changes several keys in one step.
func (e *Engine) Transacts() bool { return e.Stage.Txs != nil || !e.Can.AtOnce }

// EndBackground ends background work, present and future, before the server ends.
func (e *Engine) EndBackground() {
	e.endBackground()
	e.Queue.End()
}

// unknownLeast is the number of unknown commands worth a log line: a library's probes stay below it. A flood
// seldom reads the clock.
const unknownLeast = 10

// maxUnknownBytes truncates a client's text in the log.
const maxUnknownBytes = 64

// reportUnknown logs clients that send unknown commands: some take the error for "allowed", and limit nobody.
func (e *Engine) reportUnknown(c *clients.Client, args [][]byte) {
	if e.unknownCalls.Add(1)%unknownLeast != 0 {
		return
	}
	if count := unknownLeast * e.unknown.Due(e.Config.Now()); count > 0 {
		command := args[0]
		if of := e.Config.Catalog.Lookup(command); of != nil && of.Subs != nil && len(args) > 1 {
			command = bytes.Join(args[:2], []byte(" "))
		}
		e.Config.Log.Warn("clients send commands that this server does not have, and get errors",
			"client", c.Addr(), "name", resp.PrintableN([]byte(c.Name()), maxUnknownBytes),
			"command", resp.PrintableN(command, maxUnknownBytes), "count", count, "hint",
			"see CellserverErrorReplies in docs/OPERATIONS.md: some libraries take an error for \"allowed\"")
	}
}
