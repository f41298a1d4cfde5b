// Package transact executes commands as one step: it determines their keys and the kind of transaction.
// Everything but a Queue is for one goroutine at a time once made; a Queue always is.
package transact

import (
	"cellserver/internal/redis/argument"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// Space is where commands find their keys: the store itself or a transaction.
type Space struct {
	Keys store.Keys
	// All is the whole store, for commands flagged so; else nil.
	All store.Walker
	// NowNs is a transaction's constant time; 0 on the store itself.
	NowNs int64
	// Held says that others wait for the transaction, which must be short and complete.
	Held bool
	// Shared says that others have a part in the transaction: after store.ErrTooLarge, which their states may
	// have caused, Again asks for one alone.
	Shared bool
}

// Step is a command of a transaction.
type Step struct {
	Command *catalog.Command
	Args    [][]byte
	DB      uint16 // expected by a Plan
	Rules   int    // cost of the named limits' rules beyond that of the command
}

// Queue holds the commands between MULTI and EXEC.
type Queue struct {
	Steps  []Step
	Failed bool // EXEC refuses all after a refused command

	bytes, arguments, frames int
}

// stepBytes is a step's overhead, in an array that has grown.
const stepBytes = 64

// Memory returns the queue's bytes.
func (q *Queue) Memory() int { return q.bytes + q.frames + len(q.Steps)*stepBytes }

// Bytes returns the bytes of all arguments.
func (q *Queue) Bytes() int { return q.bytes }

// Arguments returns the number of all arguments.
func (q *Queue) Arguments() int { return q.arguments }

// Add queues a command with the size of its arguments, and of the frame in which they are kept.
func (q *Queue) Add(c *catalog.Command, args [][]byte, bytes, around int) {
	q.bytes += bytes
	q.frames += around
	q.arguments += len(args)
	q.Steps = append(q.Steps, Step{Command: c, Args: args})
}

// Watched holds the keys of WATCH. The zero value is empty.
type Watched struct {
	Watch store.Watch
	Keys  []store.Key
	Bytes int // of the names
}

// watchedBytes is a watched key's overhead, with its watch.
const watchedBytes = 160

// Memory returns the bytes of the watched keys.
func (w *Watched) Memory() int { return w.Bytes + len(w.Keys)*watchedBytes }

// Clone copies names into keys and returns their total size.
func Clone(db uint16, names [][]byte) (keys []store.Key, size int) {
	keys = make([]store.Key, len(names))
	for i, name := range argument.CloneAll(names) {
		keys[i] = store.Key{DB: db, Name: name}
		size += len(name)
	}
	return keys, size
}

// OrUndo runs do within a transaction, and restores the keys unless it returns true.
func OrUndo(in *Space, do func() (keep bool)) {
	undo := in.Keys.(store.Restorer).Save()
	if !do() {
		undo()
	}
}

// Stage is the place of transactions.
type Stage struct {
	Store       store.Store
	Txs         store.Transactor // nil if the store has no transactions
	Now         func() int64
	Clients     func() int // number of connections
	MaxKeyBytes int
}

// Mode is an attempt's access to its keys.
type Mode uint8

const (
	// Snapshot reads the keys as of one time. A concurrent change makes the attempt fail.
	Snapshot Mode = iota
	// Held makes others wait for the keys.
	Held
	// GiveUp ends the attempts.
	GiveUp
)

// Verdict is the outcome of an attempt.
type Verdict uint8

const (
	// Keep commits, unless the keys have changed.
	Keep Verdict = iota
	// Drop ends the attempts without writing.
	Drop
	// Again repeats, as after a conflict.
	Again
)

// Optimistically runs do on a snapshot, so that nobody waits, and repeats it, as next decides, after a
// conflict. It returns false, with nothing written, if next gave up.
func (s Stage) Optimistically(keys []store.Key, do func(in *Space) Verdict, next func(conflicts int) Mode) (done bool) {
	mode := Snapshot
	for conflicts := 1; mode != GiveUp; conflicts++ {
		if s.attempt(keys, mode, do) {
			return true
		}
		mode = next(conflicts)
	}
	return false
}

// Hold runs do while others wait for the keys: it must be short.
func (s Stage) Hold(keys []store.Key, do func(in *Space) Verdict) { s.attempt(keys, Held, do) }

func (s Stage) attempt(keys []store.Key, mode Mode, do func(in *Space) Verdict) (done bool) {
	nowNs := s.Now()
	tx := s.Txs.Begin(nowNs, keys)
	defer tx.Rollback()
	if mode == Snapshot {
		tx.Release()
	}
	switch do(&Space{Keys: tx, NowNs: nowNs, Held: mode == Held}) {
	case Keep:
		return tx.Commit()
	case Drop:
		return true
	default:
		return false
	}
}
