package servers

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"

	"cellserver/internal/store"
)

// Script is a Lua script, called by its hash and loaded on demand.
type Script struct{ source, hash string }

func NewScript(source string) *Script {
	sum := sha1.Sum([]byte(source)) // as Redis names it
	return &Script{source: source, hash: hex.EncodeToString(sum[:])}
}

// Call is a script call on keys of one slot, with its answer.
type Call struct {
	Script *Script
	Keys   []string
	Args   []any // strings, byte slices and integers
	// Asking follows an ASK to a server that is taking the slot over.
	Asking bool
	// Large marks large values. All calls of a pipeline have the same.
	Large bool

	// Reply is the script's, if Err is nil or its Reason is Replicas: an int64, a string, nil, or a slice of
	// these.
	Reply any
	// Err is a *Failed, or nil.
	Err error
}

// Failed says why a call has no reply.
type Failed struct {
	Reason   store.Reason
	Executed Executed  // after Maybe, the keys may have changed
	Redirect *Redirect // may be nil
	Text     string    // one line; the server's own if it has refused
}

// Redirect is the target of a MOVED or ASK.
type Redirect struct {
	Addr   string // for Pool.At
	Asking bool   // for Call.Asking
}

func (f *Failed) Error() string { return f.Text }

// FailedOf returns the *Failed of a Pool's error.
func FailedOf(err error) *Failed {
	var f *Failed
	if errors.As(err, &f) {
		return f
	}
	return &Failed{Reason: Network, Executed: Maybe, Text: err.Error()}
}

// Again reports whether the call was not executed for a reason that passes soon, so that it may be sent
// again.
func (f *Failed) Again() bool {
	switch f.Reason {
	case Cluster, Loading, ReadOnly, Network:
		return f.Executed == No
	default:
		return false
	}
}

// Executed tells whether a server has executed a call.
type Executed uint8

const (
	No Executed = iota
	Maybe
)

const (
	Timeout     store.Reason = "timeout"      // no answer in time
	Network     store.Reason = "network"      // cannot connect, or the connection ended
	CircuitOpen store.Reason = "circuit_open" // paused after too many failures
	QueueFull   store.Reason = "queue_full"   // too many wait
	Auth        store.Reason = "auth"         // NOAUTH, WRONGPASS, NOPERM
	NoScripting store.Reason = "no_scripting" // EVALSHA missing or not allowed
	OutOfMemory store.Reason = "oom"
	ReadOnly    store.Reason = "readonly"
	Cluster     store.Reason = "cluster" // MOVED, ASK, TRYAGAIN, CLUSTERDOWN until the timeout
	Loading     store.Reason = "loading"
	WrongType   store.Reason = "wrong_type" // the key is not a limiter's
	Replicas    store.Reason = "replicas"   // executed, but on too few replicas in time
	Refused     store.Reason = "refused"    // any other error of the server
)

// Reasons returns all of them, in the order above.
func Reasons() []store.Reason {
	return []store.Reason{Timeout, Network, CircuitOpen, QueueFull, Auth, NoScripting, OutOfMemory, ReadOnly, Cluster, Loading, WrongType,
		Replicas, Refused}
}
