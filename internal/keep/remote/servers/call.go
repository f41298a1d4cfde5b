package servers

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/resp"
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

func isReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// unanswered classifies a connection's error for a call, written to it or not.
func unanswered(s *Server, err error, written bool) *Failed {
	f := &Failed{Reason: Network, Text: s.Addr + ": "}
	if written {
		f.Executed = Maybe
	}
	var timeout net.Error
	switch {
	case err == nil:
		f.Text += "no answer"
	case isReply(err): // to the handshake, such as AUTH
		return refused(s, err)
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		f.Reason = QueueFull
		f.Text += "all connections are in use"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		f.Reason = Timeout
		f.Text += "no answer in time"
		if !written {
			f.Text += ", not even to a new connection"
		}
	default:
		f.Text += resp.ErrorLine(cause(s, err))
	}
	return f
}

// cause leaves out our own and known addresses.
func cause(s *Server, err error) string {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || !strings.HasPrefix(err.Error(), op.Op+" ") || op.Op == "dial" && (op.Addr == nil || op.Addr.String() != s.Addr) {
		return err.Error()
	}
	return op.Err.Error()
}

// kinds classifies an error reply by its first words. With No, Redis replies so before a script runs, or at
// its first write: it cannot refuse later writes for these reasons.
func kinds(text string) (store.Reason, Executed) {
	for _, k := range [...]struct {
		prefix string
		reason store.Reason
	}{
		{"MOVED ", Cluster}, {"ASK ", Cluster}, {"TRYAGAIN", Cluster}, {"CLUSTERDOWN", Cluster}, {"CROSSSLOT", Refused},
		{"LOADING", Loading}, {"BUSY", Loading},
		{"READONLY", ReadOnly}, {"MASTERDOWN", ReadOnly},
		{"OOM", OutOfMemory}, {"WRONGTYPE", WrongType},
		{"NOSCRIPT", NoScripting}, {"NOPERM this user has no permissions to run the 'eval", NoScripting},
		{"NOPERM this user has no permissions to run the 'script", NoScripting}, {"ERR unknown command", NoScripting},
		{"NOAUTH", Auth}, {"WRONGPASS", Auth}, {"NOPERM", Auth}, {"ERR invalid password", Auth},
		{"ERR Client sent AUTH", Auth}, {"ERR AUTH ", Auth},
		{"NOREPLICAS", Refused}, {"MISCONF", Refused}, {"ERR max number of clients", Refused},
		{"ERR DB index", Refused}, {"DENIED", Refused},
	} {
		if strings.HasPrefix(text, k.prefix) {
			return k.reason, No
		}
	}
	if strings.HasPrefix(text, "ERR The user executing the script can't ") { // perhaps after a write
		return Auth, Maybe
	}
	return Refused, Maybe
}

// refused classifies a server's error reply.
func refused(s *Server, err error) *Failed {
	text := resp.ErrorLine(err.Error())
	// Redis 6 and older wrap the error of a script's command.
	if i := strings.Index(text, ": -"); i >= 0 && strings.HasPrefix(text, "ERR Error running script") {
		text = text[i+len(": -"):]
	}
	f := &Failed{}
	f.Reason, f.Executed = kinds(text)
	if addr, ok := redis.IsMovedError(err); ok {
		f.Redirect = &Redirect{Addr: s.resolve(addr)}
	} else if addr, ok := redis.IsAskError(err); ok {
		f.Redirect = &Redirect{Addr: s.resolve(addr), Asking: true}
	}
	f.Text = s.Addr + ": " + text
	return f
}

// resolve completes an address without a host by the server's own.
func (s *Server) resolve(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "" {
		return addr
	}
	own, _, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return addr
	}
	return net.JoinHostPort(own, port)
}

func tooFew(s *Server, have int64, want int, counted bool) *Failed {
	text := fmt.Sprintf("%s: only %d of %d replicas have it in time", s.Addr, have, want)
	if !counted {
		text = s.Addr + ": does not say in time whether its replicas have it"
	}
	return &Failed{Reason: Replicas, Executed: Maybe, Text: text}
}
