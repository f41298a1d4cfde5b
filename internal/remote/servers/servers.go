// Package servers is the Redis or Valkey servers that a remote store keeps its keys in: one, the master that sentinels name, or
// the masters of a cluster. It sends scripts to them, and tells apart what a server has certainly not executed, which is sent
// again, from what it may have executed, which never is. All is safe for concurrent use.
package servers

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script that is called by its hash, and loaded where a server does not know it.
type Script struct{ source, hash string }

// Call is a script's call on keys of one slot, and then its answer.
type Call struct {
	Script *Script
	Keys   []string
	Args   []any

	// Reply is what the script has returned, if Err is nil.
	Reply any
	// Err is a *Failed, or nil.
	Err error
}

// Failed says why a call has no reply.
type Failed struct {
	Reason Reason
	// Executed says what is known: a call that was Maybe executed may have changed its keys.
	Executed Executed
	Text     string // one line, for people; the server's own where it has refused
}

func (f *Failed) Error() string { return f.Text }

// Executed is whether a server has executed a call.
type Executed uint8

// It has not, or nobody knows.
const (
	No Executed = iota
	Maybe
)

// Reason is what failed, as the label of a metric.
type Reason string

// The reasons:
const (
	Timeout     Reason = "timeout"      // no answer in time
	Network     Reason = "network"      // cannot connect, or the connection ended
	CircuitOpen Reason = "circuit_open" // the server has failed too often, and is left alone for a while
	QueueFull   Reason = "queue_full"   // too much waits for the server
	Auth        Reason = "auth"         // NOAUTH, WRONGPASS, NOPERM
	NoScripting Reason = "no_scripting" // the server has, or allows, no EVALSHA
	OutOfMemory Reason = "oom"
	ReadOnly    Reason = "readonly"
	Cluster     Reason = "cluster" // MOVED, ASK, TRYAGAIN, CLUSTERDOWN, until the time was over
	Loading     Reason = "loading"
	WrongType   Reason = "wrong_type" // the key is not a limiter's
	Replicas    Reason = "replicas"   // --store-wait: too few replicas have it in time; it was executed
	Refused     Reason = "refused"    // any other error of the server
)

// Server is a server that decides about keys. Its identity is that of the pointer, for as long as its address is known.
type Server struct {
	Addr   string
	client *redis.Client
}

// ctxDoc keeps the import until the implementation is here.
var _ = context.Background
