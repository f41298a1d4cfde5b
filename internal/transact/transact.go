// Package transact is how commands are executed as one step: what they need of a store's keys, and in which kind of
// transaction they find it. Everything but a Queue is for one goroutine at a time once it is made; a Queue always is.
package transact

import (
	"bytes"
	"slices"

	"cellserver/internal/argument"
	"cellserver/internal/catalog"
	"cellserver/internal/store"
)

// Space is where commands find their keys: a store as it is, or a transaction.
type Space struct {
	Keys store.Keys
	// All is the whole store, for the commands whose flags ask for it; nil where there is none.
	All store.Walker
	// NowNs is the time of a transaction, which stands still; none of the store as it is.
	NowNs int64
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
	bytes  int
}

// stepBytes is what a step takes in addition to its arguments, in an array that has grown for it.
const stepBytes = 64

// Memory returns how many bytes the queue takes.
func (q *Queue) Memory() int { return q.bytes + len(q.Steps)*stepBytes }

// argBytes is what an argument costs in addition to its bytes.
const argBytes = 24

// Add queues a copy of a command. It is false if the queue would take more than maxBytes.
func (q *Queue) Add(c *catalog.Command, args [][]byte, maxBytes int) bool {
	for _, arg := range args {
		q.bytes += len(arg) + argBytes
	}
	if q.bytes > maxBytes {
		return false
	}
	q.Steps = append(q.Steps, Step{Command: c, Args: argument.CloneAll(args)})
	return true
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
	for i, name := range names {
		keys[i] = store.Key{DB: db, Name: bytes.Clone(name)}
		size += len(name)
	}
	return keys, size
}

// Plan is what the steps of a transaction need.
type Plan struct {
	Scripts bool // a step is a script, which may take long
	Long    bool // worth a goroutine

	steps []Step
	keys  []store.Key // of all steps and, where there are some, those watched
	whole bool        // a step is about all keys
	once  bool        // a step does more than to change keys, so it must not be executed again
}

const longSteps = 1000 // or keys

// NewPlan returns the plan of steps that begin in a database, one of so many, and sets their databases.
func NewPlan(steps []Step, db uint16, databases int, watched []store.Key) *Plan {
	p := &Plan{steps: steps}
	for i := range steps {
		s := &steps[i]
		s.DB = db
		f := s.Command.Flags
		p.whole = p.whole || f&catalog.FlagWhole != 0
		p.Scripts = p.Scripts || f&catalog.FlagScript != 0
		p.once = p.once || f&(catalog.FlagWrite|catalog.FlagReadonly|catalog.FlagScript|catalog.FlagFast) == 0
		p.Long = p.Long || s.Command.Long && s.Command.Keys.First == 0
		s.Command.Keys.Each(s.Args, func(name []byte) { p.keys = append(p.keys, store.Key{DB: db, Name: name}) })
		if s.Command.Name == "select" {
			if n, err := argument.Database(s.Args[1], databases); err == nil {
				db = n
			}
		}
	}
	if p.keys != nil {
		p.keys = append(p.keys, watched...)
	}
	p.Long = p.Long || p.whole || p.Scripts || len(steps) > longSteps || len(p.keys) > longSteps
	return p
}

// Refused returns a command that must not be executed while the plan's keys are held, nil if there is none.
func (p *Plan) Refused() *catalog.Command {
	at := slices.IndexFunc(p.steps, func(s Step) bool { return s.Command.Flags&catalog.FlagNotWithKeys != 0 })
	if at < 0 || p.keys == nil && !p.whole {
		return nil
	}
	return p.steps[at].Command
}

// Run calls do with what the steps need: once, or more than once where that is harmless, and then the last call counts.
func (p *Plan) Run(txs store.Transactor, now func() int64, do func(in *Space)) {
	switch {
	case p.whole:
		nowNs := now()
		all := txs.BeginAll(nowNs)
		defer all.End()
		do(&Space{Keys: all, All: all, NowNs: nowNs})
	case p.Scripts && !p.once:
		Optimistically(txs, now, p.keys, func(in *Space) (keep bool) {
			do(in)
			return true
		})
	default:
		attempt(txs, now(), p.keys, false, func(in *Space) (keep bool) {
			do(in)
			return true
		})
	}
}

// attempts is how often a snapshot may turn out to be stale.
const attempts = 3

// Optimistically lets do work on a snapshot of the keys, so that nobody waits for them meanwhile, and again when somebody
// has changed one of them before its writes are in. The last attempt keeps others out. Nothing is written unless do
// wants it kept.
func Optimistically(txs store.Transactor, now func() int64, keys []store.Key, do func(in *Space) (keep bool)) {
	for i := range attempts {
		if attempt(txs, now(), keys, i < attempts-1, do) {
			return
		}
	}
}

func attempt(txs store.Transactor, nowNs int64, keys []store.Key, release bool, do func(in *Space) (keep bool)) (done bool) {
	tx := txs.Begin(nowNs, keys)
	defer tx.Rollback()
	if release {
		tx.Release()
	}
	return !do(&Space{Keys: tx, NowNs: nowNs}) || tx.Commit()
}

// OrUndo lets do work within a transaction, and puts the keys back into the state in which they were unless do wants them
// kept.
func OrUndo(in *Space, keys []store.Key, do func() (keep bool)) {
	before := make([]int64, len(keys))
	for i, key := range keys {
		before[i], _, _ = in.Keys.TAT(in.NowNs, key)
	}
	if do() {
		return
	}
	for i, key := range keys {
		if now, _, _ := in.Keys.TAT(in.NowNs, key); now != before[i] {
			in.Keys.(store.Restorer).SetTAT(key, before[i])
		}
	}
}
