// Package commands binds commands to their handlers and makes the engine of all sessions. An Engine is safe
// for concurrent use.
package commands

import (
	"cmp"
	"maps"

	"cellserver/internal/base/zones"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/redis/commands/admin"
	"cellserver/internal/redis/commands/connection"
	"cellserver/internal/redis/commands/docs"
	"cellserver/internal/redis/commands/keys"
	"cellserver/internal/redis/commands/operator"
	"cellserver/internal/redis/commands/throttle"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/session"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// Config configures an Engine. StoreTimeout, Scripts, Keeper, NamedLimits and the optional fields of Options
// may be zero. NewEngine sets ACLLog, Records, Clients, Channel and NewKeys.
type Config struct {
	execute.Config // whose Handlers are those of commands missing in catalog.Rows
	admin.Options
}

// Engine makes sessions, and has their records.
type Engine struct {
	*session.Engine
	Records *observe.Records
	Logins  *clients.Logins
	Clients *clients.Register
	NewKeys *clients.NewKeys

	admin *admin.Server
}

// NewEngine returns an Engine.
func NewEngine(c Config) (*Engine, error) {
	if c.Scripts == nil {
		c.Catalog = c.Catalog.Without("scripts are off: start the server without --lua=off",
			"eval", "evalsha", "eval_ro", "evalsha_ro", "script")
	}
	if !store.AbilitiesOf(c.Store).Databases {
		c.Catalog, c.Databases = c.Catalog.OverRemote(), 1
	}
	if c.Keeper == nil {
		c.Catalog = c.Catalog.Without(admin.MemoryOnly, "save", "bgsave", "bgrewriteaof")
	}
	if c.NamedLimits == nil {
		c.NamedLimits = namedlimit.New(namedlimit.Config{Now: c.Now, Log: c.Log})
	}
	c.Records, c.ACLLog = observe.New(c.Catalog, c.Now()), acl.NewLog(acl.DefaultLogEntries)
	c.Clients, c.NewKeys = &clients.Register{}, &clients.NewKeys{}
	c.Channels = clients.NewChannels(catalog.SentinelChannel, catalog.StackExchangeChannel)
	e := &Engine{Records: c.Records, Logins: &clients.Logins{}, Clients: c.Clients, NewKeys: c.NewKeys}
	c.RunID = cmp.Or(c.RunID, admin.NewRunID())
	e.admin = &admin.Server{
		Config: c.Config, Options: c.Options, Logins: e.Logins, StartedNs: c.Now(),
		Zones: zones.Used(),
	}
	handlers := map[string]execute.Handler{}
	for _, some := range []map[string]execute.Handler{
		keys.Handlers(c.Config), connection.Handlers(c.Config, e.Logins), e.admin.Handlers(), operator.Handlers(c.Config),
		docs.Handlers(c.Catalog), throttle.Handlers(c.Config), c.Handlers,
	} {
		maps.Copy(handlers, some)
	}
	c.Handlers = handlers
	var err error
	e.Engine, err = session.NewEngine(c.Config)
	return e, err
}

// ReloadUsers reloads the ACL file, all of it or nothing, and closes the connections of users whose rules
// have changed.
func (e *Engine) ReloadUsers() error { return e.admin.ReloadUsers() }

// ChangeSettings runs change; a CONFIG SET waits until it is done.
func (e *Engine) ChangeSettings(change func()) { e.admin.Change(change) }
