// Package admin is the commands about the server: its users, settings, scripts, state and end. Its handlers are safe for
// concurrent use.
package admin

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync"
	"sync/atomic"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/lua"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/login"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// Config is what the commands need.
type Config struct {
	Catalog       *catalog.Catalog
	Users         *acl.Users
	ACLFile       string // "" for none
	ACLLog        *acl.Log
	Logins        *login.Failures
	Clients       *clients.Register
	Records       *observe.Records
	Scripts       *lua.Engine // nil where scripts are disabled
	Databases     int
	Version       string // of this server
	RunID         string
	StartedNs     int64
	Settings      []Setting
	ConfigFile    string               // its path; "" for none
	Maximum       func() store.Maximum // nil for none
	ReleaseMemory func()               // gives the system the memory that is in no use
	Keeper        Keeper               // nil where nothing is kept on a disk
	Remote        func() store.Health  // how the store on other machines is; nil for none
	Limits        *namedlimit.Registry
	Thresholds    Thresholds
	Connections   func() Connections
	Shutdown      func()                 // begins a graceful shutdown
	MayDebug      func(p peer.Peer) bool // whether a client may use DEBUG
	Log           *slog.Logger
	// LostLogLines counts the lines that the log did not take; nil where that is not known.
	LostLogLines func() uint64

	setting       sync.Mutex // held by CONFIG SET, so that those of two clients do not mix
	saveScheduled atomic.Bool
	syncs         syncQueue
}

// Keeper is what the commands need of what keeps the store on a disk.
type Keeper interface {
	// Status returns what the Keeper is at. It never waits for the disk.
	Status() store.Durability
	// Loading reports whether what was kept is still being read.
	Loading() bool
	// Save has a snapshot written, and calls done once when it stands or has failed. While another one is
	// being written it returns store.ErrSaving and does nothing.
	Save(done func(error)) error
	// Sync calls done once all that was changed before is on the disk.
	Sync(done func())
}

// MemoryOnly is why there is nothing to save where there is no Keeper.
const MemoryOnly = "cellserver keeps its state in memory only; start it with --data-dir to have it on a disk"

// Connections is what the server above knows of connections.
type Connections struct {
	Connected  int
	MaxClients int
	Accepted   uint64 // since the start
	Refused    uint64 // over MaxClients, or by protected mode
	Port       int    // of the TCP listener, 0 without one
}

// NewRunID returns 40 random hexadecimal digits, as Redis has in INFO.
func NewRunID() string {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// Handlers returns the commands by their full names. The thresholds hold from now on, and are settings, too.
func Handlers(k *Config) map[string]execute.Handler {
	k.Thresholds.apply(k.Records)
	k.Settings = append(k.Settings[:len(k.Settings):len(k.Settings)], recordSettings(k.Records)...)
	plain, onConnection := execute.Plain, execute.OnConnection
	return map[string]execute.Handler{
		"acl|cat":          plain(k.aclCat),
		"acl|dryrun":       plain(k.aclDryRun),
		"acl|genpass":      plain(aclGenPass),
		"acl|getuser":      plain(k.aclGetUser),
		"acl|list":         plain(k.aclList),
		"acl|load":         onConnection(k.aclLoad),
		"acl|log":          plain(k.aclLog),
		"acl|users":        plain(k.aclUsers),
		"acl|whoami":       onConnection(aclWhoAmI),
		"bgrewriteaof":     plain(k.bgRewriteAOF),
		"bgsave":           plain(k.bgSave),
		"config|get":       plain(k.configGet),
		"config|set":       onConnection(k.configSet),
		"config|resetstat": plain(k.configResetStat),
		"config|rewrite":   plain(k.configRewrite),
		"debug":            onConnection(k.debug),
		"info":             execute.Whole(k.info),
		"lastsave":         plain(k.lastSave),
		"memory|purge":     plain(k.memoryPurge),
		"replicaof":        plain(replicaOf),
		"role":             plain(role),
		"save":             plain(k.save),
		"script|exists":    plain(k.scriptExists),
		"script|flush":     plain(k.scriptFlush),
		"script|kill":      plain(k.scriptKill),
		"shutdown":         onConnection(k.shutdown),
		"slaveof":          plain(replicaOf),
		"time":             plain(timeCommand),
		"wait":             plain(waitCommand),
		"waitaof":          plain(k.waitAOF),
	}
}
