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
}

// Step is a command of a transaction.
type Step struct {
	Command *catalog.Command
	Args    [][]byte
	DB      uint16 // expected by a Plan
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
