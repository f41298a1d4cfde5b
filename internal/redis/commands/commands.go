// Package commands binds the commands to what executes them, and makes the engine of all sessions. An Engine is safe for
// concurrent use.
package commands

import (
	"log/slog"
	"maps"
	"time"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/funnel"
	"cellserver/internal/lua"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/redis/commands/connection"
	"cellserver/internal/redis/commands/docs"
	"cellserver/internal/redis/commands/keys"
	"cellserver/internal/redis/commands/operator"
	"cellserver/internal/redis/commands/throttle"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/login"
	"cellserver/internal/redis/session"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Config is what an Engine needs. All fields but StoreTimeout, Handlers, ACLFile, Scripts, Settings, Maximum,
// Keeper, Remote, NamedLimits, Thresholds and LostLogLines must be set.
type Config struct {
	Store             store.Store
	Now               func() int64     // Unix nanoseconds, never going back
	WallTime          func() time.Time // of TIME
	Catalog           *catalog.Catalog
	Handlers          map[string]execute.Handler // of commands of the Catalog that are none of catalog.Rows
	Users             *acl.Users                 // made of the same Catalog
	Reading           funnel.Reading
	Databases         int
	MaxKeyBytes       int
	MaxReplyBytes     int           // of one reply
	StoreTimeout      time.Duration // of a store.Remote; 0 for transact.DefaultStoreTimeout
	Limits            resp.Limits
	ACLFile           string      // "" for none
	Scripts           *lua.Engine // nil where scripts are disabled
	BackgroundThreads int         // how many long commands, and how many scripts, run at once
	Version           string      // of this server
	Settings          []admin.Setting
	ConfigFile        string
	Maximum           func() store.Maximum // nil for none
	ReleaseMemory     func()               // gives the system the memory that is in no use
	Keeper            Keeper               // nil where nothing is kept on a disk
	Remote            func() store.Health  // how the Store is that is on other machines; nil for none
	NamedLimits       *namedlimit.Registry // nil for one that keeps nothing
	Thresholds        admin.Thresholds
	Connections       func() admin.Connections
	Shutdown          func()                 // begins a graceful shutdown
	MayDebug          func(p peer.Peer) bool // whether a client may use DEBUG
	Log               *slog.Logger
	LostLogLines      func() uint64 // which the log did not take
}

// Keeper keeps what the store has on a disk.
type Keeper interface {
	execute.Keeper
	admin.Keeper
}

// Engine makes sessions, and has what they record of themselves.
type Engine struct {
	*session.Engine
	Records *observe.Records
	Logins  *login.Failures

	Clients *clients.Register
	NewKeys *clients.NewKeys

	admin *admin.Config
}

// NewEngine returns an Engine.
func NewEngine(c Config) (*Engine, error) {
	cat := c.Catalog
	if c.Scripts == nil {
		cat = cat.Without("scripts are off: start the server without --lua=off", "eval", "evalsha", "eval_ro", "evalsha_ro", "script")
	}
	if _, ok := c.Store.(store.Remote); ok {
		cat, c.Databases = cat.OverRemote(), 1
	}
	if c.Keeper == nil {
		cat = cat.Without(admin.MemoryOnly, "save", "bgsave", "bgrewriteaof")
	}
	if c.NamedLimits == nil {
		c.NamedLimits = namedlimit.New(namedlimit.Config{Log: c.Log})
	}
	records, logins, register := observe.New(cat, c.Now()), &login.Failures{}, &clients.Register{}
	newKeys := &clients.NewKeys{}
	aclLog := acl.NewLog(acl.DefaultLogEntries)
	administration := &admin.Config{
		Catalog: cat, Users: c.Users, ACLFile: c.ACLFile, ACLLog: aclLog, Logins: logins, Clients: register, Records: records,
		Scripts: c.Scripts, Databases: c.Databases, Version: c.Version, RunID: admin.NewRunID(), StartedNs: c.Now(),
		Settings: c.Settings, ConfigFile: c.ConfigFile, Maximum: c.Maximum, ReleaseMemory: c.ReleaseMemory, Keeper: c.Keeper, Remote: c.Remote, Limits: c.NamedLimits, Thresholds: c.Thresholds, Connections: c.Connections, Shutdown: c.Shutdown,
		MayDebug: c.MayDebug, Log: c.Log, LostLogLines: c.LostLogLines,
	}
	handlers := map[string]execute.Handler{}
	for _, room := range []map[string]execute.Handler{
		keys.Handlers(keys.Config{Databases: c.Databases, MaxKeyBytes: c.MaxKeyBytes, MaxReplyBytes: c.MaxReplyBytes}),
		connection.Handlers(&connection.Config{
			Catalog: cat, Users: c.Users, Clients: register, Logins: logins, Databases: c.Databases, Now: c.Now, Log: c.Log,
		}),
		admin.Handlers(administration),
		operator.Handlers(operator.Config{Catalog: cat, Records: records}),
		docs.Handlers(docs.Config{Catalog: cat}),
		throttle.Handlers(throttle.Config{Reading: c.Reading, Limits: c.NamedLimits, Log: c.Log}),
		c.Handlers,
	} {
		maps.Copy(handlers, room)
	}
	sessions, err := session.NewEngine(execute.Config{
		Store: c.Store, Now: c.Now, WallTime: c.WallTime, Catalog: cat, Handlers: handlers, Users: c.Users, ACLLog: aclLog,
		Records: records, Clients: register, NewKeys: newKeys, NamedLimits: c.NamedLimits, Reading: c.Reading,
		Databases: c.Databases, MaxKeyBytes: c.MaxKeyBytes,
		MaxReplyBytes: c.MaxReplyBytes, StoreTimeout: c.StoreTimeout, Limits: c.Limits, Scripts: c.Scripts, Keeper: c.Keeper, BackgroundThreads: c.BackgroundThreads, Log: c.Log,
	})
	return &Engine{Engine: sessions, Records: records, Logins: logins, Clients: register, NewKeys: newKeys, admin: administration}, err
}

// ReloadUsers reads the ACL file again, all of it or nothing, and ends the connections of users whose rules have
// changed, as Redis does.
func (e *Engine) ReloadUsers() error { return e.admin.ReloadUsers() }

// ChangeSettings makes a change of what CONFIG SET changes, too, when no CONFIG SET is under way.
func (e *Engine) ChangeSettings(change func()) { e.admin.Change(change) }
