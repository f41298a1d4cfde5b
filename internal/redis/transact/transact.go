// Package transact is how commands are executed as one step: what they need of a store's keys, and in which kind of
// transaction they find it. Everything but a Queue is for one goroutine at a time once it is made; a Queue always is.
package transact

import (
	"cellserver/internal/redis/argument"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// Space is where commands find their keys: a store as it is, or a transaction.
type Space struct {
	Keys store.Keys
	// All is the whole store, for the commands whose flags ask for it; nil where there is none.
	All store.Walker
	// NowNs is the time of a transaction, which stands still; none of the store as it is.
	NowNs int64
	// Held says that others wait until the transaction ends, so it must be short and must not be cut.
	Held bool
}

// Step is a command of a transaction.
type Step struct {
	Command *catalog.Command
	Args    [][]byte
	DB      uint16 // in which a Plan expects its keys
}

// Queue is the commands between MULTI and EXEC.
type Queue struct {
	Steps  []Step
	Failed bool // a command was refused, so EXEC refuses them all

	bytes, arguments, frames int
}

// stepBytes is what a step takes in addition to its arguments, in an array that has grown for it.
const stepBytes = 64

// Memory returns how many bytes the queue takes.
func (q *Queue) Memory() int { return q.bytes + q.frames + len(q.Steps)*stepBytes }

// Bytes is what the arguments of its commands take.
func (q *Queue) Bytes() int { return q.bytes }

// Arguments is how many arguments its commands have.
func (q *Queue) Arguments() int { return q.arguments }

// Add queues a command, whose arguments take so many bytes, and what is around them where they are kept.
func (q *Queue) Add(c *catalog.Command, args [][]byte, bytes, around int) {
	q.bytes += bytes
	q.frames += around
	q.arguments += len(args)
	q.Steps = append(q.Steps, Step{Command: c, Args: args})
}

// Watched is what WATCH has named. The zero value is nothing.
type Watched struct {
	Watch store.Watch
	Keys  []store.Key
	Bytes int // of their names
}

// watchedBytes is what a watched key takes in addition to its name, with what notices its changes.
const watchedBytes = 160

// Memory returns how many bytes what is watched takes.
func (w *Watched) Memory() int { return w.Bytes + len(w.Keys)*watchedBytes }

// Clone returns the keys of these names, copied, and how many bytes they add up to.
func Clone(db uint16, names [][]byte) (keys []store.Key, size int) {
	keys = make([]store.Key, len(names))
	for i, name := range argument.CloneAll(names) {
		keys[i] = store.Key{DB: db, Name: name}
		size += len(name)
	}
	return keys, size
}

// OrUndo lets do work within a transaction, and puts the keys back into the state in which they were unless do wants them
// kept.
func OrUndo(in *Space, do func() (keep bool)) {
	undo := in.Keys.(store.Restorer).Save()
	if !do() {
		undo()
	}
}
