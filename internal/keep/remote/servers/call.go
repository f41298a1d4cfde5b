package servers

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"

	"cellserver/internal/store"
)

// Script is a Lua script that is called by its hash, and loaded where a server does not know it.
type Script struct{ source, hash string }

// NewScript returns the script with this source.
func NewScript(source string) *Script {
	sum := sha1.Sum([]byte(source)) // as Redis names it
	return &Script{source: source, hash: hex.EncodeToString(sum[:])}
}

// Call is a script's call on keys of one slot, and then its answer.
type Call struct {
	Script *Script
	Keys   []string
	Args   []any // strings, byte slices and integers
	// Asking sends it to a server that is only taking the slot over, as an ASK has said.
	Asking bool
	// Large is for values that take long to send. All calls of a pipeline are Large, or none is.
	Large bool

	// Reply is what the script has returned, if Err is nil or its Reason is Replicas: an int64, a string, nil, or a slice of these.
	Reply any
	// Err is a *Failed, or nil.
	Err error
}

// Failed says why a call has no reply.
type Failed struct {
	Reason store.Reason
	// Executed says what is known: a call that was Maybe executed may have changed its keys.
	Executed Executed
	// Redirect is which server to ask instead, if one has said so.
	Redirect *Redirect
	Text     string // one line, for people; the server's own where it has refused
}

// Redirect is where a MOVED or ASK points.
type Redirect struct {
	Addr   string // for Pool.At
	Asking bool   // for Call.Asking
}

func (f *Failed) Error() string { return f.Text }

// FailedOf returns what is known of an error of a Pool.
func FailedOf(err error) *Failed {
	var f *Failed
	if errors.As(err, &f) {
		return f
	}
	return &Failed{Reason: Network, Executed: Maybe, Text: err.Error()}
}

// Again is whether the call may be sent again, as it was not executed, for a reason that passes soon.
func (f *Failed) Again() bool {
	switch f.Reason {
	case Cluster, Loading, ReadOnly, Network:
		return f.Executed == No
	default:
		return false
	}
}

// Executed is whether a server has executed a call.
type Executed uint8

// It has not, or nobody knows.
const (
	No Executed = iota
	Maybe
)

// The reasons:
const (
	Timeout     store.Reason = "timeout"      // no answer in time
	Network     store.Reason = "network"      // cannot connect, or the connection ended
	CircuitOpen store.Reason = "circuit_open" // the server has failed too often, and is left alone for a while
	QueueFull   store.Reason = "queue_full"   // too much waits for the server
	Auth        store.Reason = "auth"         // NOAUTH, WRONGPASS, NOPERM
	NoScripting store.Reason = "no_scripting" // the server has, or allows, no EVALSHA
	OutOfMemory store.Reason = "oom"
	ReadOnly    store.Reason = "readonly"
	Cluster     store.Reason = "cluster" // MOVED, ASK, TRYAGAIN, CLUSTERDOWN, until the time was over
	Loading     store.Reason = "loading"
	WrongType   store.Reason = "wrong_type" // the key is not a limiter's
	Replicas    store.Reason = "replicas"   // too few replicas have it in time; it was executed
	Refused     store.Reason = "refused"    // any other error of the server
)

// Reasons returns all of them, in the order above.
func Reasons() []store.Reason {
	return []store.Reason{Timeout, Network, CircuitOpen, QueueFull, Auth, NoScripting, OutOfMemory, ReadOnly, Cluster, Loading, WrongType,
		Replicas, Refused}
}
