// Package admin has the commands about the server: its users, settings, scripts, state and shutdown. Its
// handlers are safe for concurrent use.
package admin

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"sync/atomic"

	"cellserver/internal/base/zones"
	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/glob"
	"cellserver/internal/wire/peer"
)

// Options are the settings of the commands alone. Fields marked optional may be zero.
type Options struct {
	ACLFile       string // optional
	Version       string // of this server
	RunID         string // from NewRunID
	Settings      []Setting
	ConfigFile    string               // its path; optional
	Maximum       func() store.Maximum // optional
	ReleaseMemory func()               // returns unused memory to the system
	Remote        func() store.Health  // health of the store on other machines; nil for memory
	Thresholds    Thresholds
	Connections   func() Connections
	Shutdown      func()                 // begins a graceful shutdown
	MayDebug      func(p peer.Peer) bool // reports whether a client may use DEBUG
	LostLogLines  func() uint64          // log lines dropped since the start; optional
}

// Server has the commands' handlers and their state.
type Server struct {
	execute.Config
	Options
	Logins    *clients.Logins
	StartedNs int64
	Zones     zones.Source // of quotas

	setting       sync.Mutex // rank 15: serializes changes of settings
	saveScheduled atomic.Bool
	syncs         syncQueue
}

// MemoryOnly explains why nothing can be saved without a Keeper.
const MemoryOnly = "cellserver keeps its state in memory only; start it with --data-dir to have it on a disk"

// Connections are the listeners' figures.
type Connections struct {
	Connected  int
	MaxClients int
	Accepted   uint64 // since the start
	Refused    uint64 // over MaxClients or by protected mode
	Port       int    // of the TCP listener; 0 for none
}

// NewRunID returns 40 random hexadecimal digits, the form of INFO's run_id.
func NewRunID() string {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// Handlers applies the thresholds, adds them to the settings, and returns the handlers by their commands'
// full names.
func (k *Server) Handlers() map[string]execute.Handler {
	k.Thresholds.apply(k.Records)
	k.Settings = append(k.Settings[:len(k.Settings):len(k.Settings)], recordSettings(k.Records)...)
	plain, onConnection := execute.Plain, execute.OnConnection
	return map[string]execute.Handler{
		"acl|cat":          plain(k.aclCat),
		"acl|dryrun":       plain(k.aclDryRun),
		"acl|genpass":      plain(aclGenPass),
		"acl|getuser":      plain(k.aclGetUser),
		"acl|list":         k.aclEach((*acl.User).Line),
		"acl|load":         onConnection(k.aclLoad),
		"acl|log":          plain(k.aclLog),
		"acl|users":        k.aclEach((*acl.User).Name),
		"acl|whoami":       onConnection(aclWhoAmI),
		"bgrewriteaof":     plain(k.bgRewriteAOF),
		"bgsave":           plain(k.bgSave),
		"config|get":       plain(k.configGet),
		"config|set":       onConnection(k.configSet),
		"config|resetstat": plain(k.configResetStat),
		"config|rewrite":   plain(configRewrite),
		"debug":            onConnection(k.debug),
		"info":             execute.Whole(k.info),
		"lastsave":         plain(k.lastSave),
		"memory|purge":     plain(k.memoryPurge),
		"cl.sync|handover": onConnection(k.syncHandOver),
		"cl.sync|limits":   k.withNumber(k.syncLimits),
		"cl.sync|next":     k.withNumber(k.syncNext),
		"cl.sync|ping":     k.withNumber(k.syncPing),
		"cl.sync|start":    onConnection(k.syncStart),
		"cl.sync|takeover": k.withNumber(k.syncTakeOver),
		"replconf":         onConnection(k.replConf),
		"replicaof":        plain(k.replicaOf),
		"role":             plain(k.role),
		"save":             plain(k.save),
		"script|exists":    plain(k.scriptExists),
		"script|flush":     plain(k.scriptFlush),
		"script|kill":      plain(k.scriptKill),
		"shutdown":         onConnection(k.shutdown),
		"slaveof":          plain(k.replicaOf),
		"time":             plain(timeCommand),
		"wait":             plain(k.waitCommand),
		"waitaof":          plain(k.waitAOF),
	}
}

func timeCommand(c execute.Call, _ [][]byte) error {
	now, w := c.WallTime(), c.Reply()
	w.Array(2)
	w.BulkInt(now.Unix())
	w.BulkInt(int64(now.Nanosecond() / 1000))
	return nil
}

// shutdown is SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]. Persistence loses nothing with any of them.
func (k *Server) shutdown(c execute.Call, conn execute.Connection, args [][]byte) error {
	given := map[string]bool{}
	for _, arg := range args[1:] {
		switch option := glob.Fold(arg); option {
		case "nosave", "save", "now", "force", "abort":
			given[option] = true
		default:
			return reply.ErrSyntax
		}
	}
	if given["abort"] && len(given) > 1 || given["save"] && given["nosave"] {
		return reply.ErrSyntax
	}
	if given["abort"] {
		return reply.Error("ERR No shutdown in progress.")
	}
	switch {
	case !given["save"] || k.Keeper == nil && given["force"] || k.Keeper != nil && k.Keeper.Loading():
		// A server that is loading has nothing to save, as in Redis.
		k.shutDown(conn)
		return nil
	case k.Keeper == nil:
		return reply.Error("ERR " + MemoryOnly + ", or send SHUTDOWN NOSAVE")
	}
	return k.saveAndShutDown(c, conn, given["force"])
}

func (k *Server) shutDown(conn execute.Connection) {
	k.Log.Info("a client requested a shutdown", "client", conn.Client().Addr())
	k.Shutdown()
	conn.Close()
}

func (k *Server) memoryPurge(c execute.Call, _ [][]byte) error {
	return c.Background(func(context.Context, int64) { k.ReleaseMemory() }, execute.Call.OK)
}

func (k *Server) scriptExists(c execute.Call, args [][]byte) error {
	c.Reply().Array(len(args) - 2)
	for _, sha := range args[2:] {
		c.Reply().Int(int64(flag(k.Scripts.Lookup(sha) != nil)))
	}
	return nil
}

// scriptFlush is SCRIPT FLUSH [ASYNC|SYNC].
func (k *Server) scriptFlush(c execute.Call, args [][]byte) error {
	if len(args) > 3 || len(args) == 3 && glob.Fold(args[2]) != "async" && glob.Fold(args[2]) != "sync" {
		return reply.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	k.Scripts.Flush()
	return c.OK()
}

func (k *Server) scriptKill(c execute.Call, _ [][]byte) error {
	if err := k.Scripts.Kill(); err != nil {
		return err
	}
	return c.OK()
}
