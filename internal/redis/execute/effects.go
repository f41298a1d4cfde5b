package execute

import (
	"bytes"
	"log/slog"
	"sync/atomic"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/queue"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// Effects is what commands do beside what they do to their keys. What EXEC and scripts execute has them when the keys are let go
// of: not all of its attempts count, and nobody is to be held up while it holds keys.
type Effects interface {
	// Send shows lines to those in MONITOR.
	Send(lines []byte)
	// Log writes lines of scripts, and counts those that were left out.
	Log(lines []LogLine, leftOut int)
	// Kill ends another client's connection.
	Kill(victim *clients.Client)
	// Unblock ends a client's wait for its turn, and reports whether it did wait.
	Unblock(turn *queue.Waiter, why queue.Outcome) bool
	// Look has those who wait for a key move up, as it may have been given units back; LookAtAll those who wait for any.
	Look(key store.Key)
	LookAtAll()
	// Count counts what was decided by named limits.
	Count(counter *atomic.Uint64, n uint64)
}

// LogLine is a line that a script logs.
type LogLine struct {
	Level   slog.Level
	Message string
}

// Kept is Effects that are still to be had.
type Kept struct {
	x *Executor // whose they are

	monitored   []byte
	logged      []LogLine
	loggedBytes int
	leftOut     int // lines beyond maxLoggedBytes
	killed      []*clients.Client
	unblocked   []unblocked
	looked      []store.Key
	looksAtAll  bool
	counted     map[*atomic.Uint64]uint64
}

// unblocked is who is to wait no more.
type unblocked struct {
	turn *queue.Waiter
	why  queue.Outcome
}

const (
	// mostLooked is how many keys are kept to look at; beyond that all are looked at for which somebody waits.
	mostLooked = 1000
	// maxInnerLineBytes is how much of a script, and of an EXEC, is sent to those in MONITOR: all of it comes at once, and
	// is not to disconnect a client that reads as fast as it can.
	maxInnerLineBytes = 1 << 20
	// maxLoggedBytes bounds what a script, or an EXEC, may log.
	maxLoggedBytes = 64 << 10
)

// Send implements Effects.
func (k *Kept) Send(lines []byte) {
	if len(k.monitored) >= maxInnerLineBytes {
		return
	}
	if k.Append(lines); len(k.monitored) >= maxInnerLineBytes {
		k.monitored = k.x.appendLine(k.monitored, k.x.byScript, [][]byte{[]byte("... (more commands)")})
	}
}

// Append adds lines for those in MONITOR to what is kept, however much that is.
func (k *Kept) Append(lines []byte) { k.monitored = append(k.monitored, lines...) }

// Log implements Effects.
func (k *Kept) Log(lines []LogLine, leftOut int) {
	k.leftOut += leftOut
	for _, line := range lines {
		if k.loggedBytes += len(line.Message); k.loggedBytes <= maxLoggedBytes {
			k.logged = append(k.logged, line)
		} else {
			k.leftOut++
		}
	}
}

// Kill implements Effects.
func (k *Kept) Kill(victim *clients.Client) { k.killed = append(k.killed, victim) }

// Unblock implements Effects.
func (k *Kept) Unblock(turn *queue.Waiter, why queue.Outcome) bool {
	k.unblocked = append(k.unblocked, unblocked{turn, why})
	return true
}

// Look implements Effects.
func (k *Kept) Look(key store.Key) {
	switch {
	case k.looksAtAll:
	case len(k.looked) == mostLooked:
		k.LookAtAll()
	default:
		k.looked = append(k.looked, store.Key{DB: key.DB, Name: bytes.Clone(key.Name)})
	}
}

// LookAtAll implements Effects.
func (k *Kept) LookAtAll() { k.looked, k.looksAtAll = nil, true }

// Count implements Effects.
func (k *Kept) Count(counter *atomic.Uint64, n uint64) {
	if k.counted == nil {
		k.counted = map[*atomic.Uint64]uint64{}
	}
	k.counted[counter] += n
}

// Uncount forgets what was counted, as what it was counted for is taken back.
func (k *Kept) Uncount() { k.counted = nil }

// Settle has what was kept take effect, or an Executor around this one keep it. It may be called in the background.
func (k *Kept) Settle(around *Executor) {
	to := around.Effects
	to.Send(k.monitored)
	to.Log(k.logged, k.leftOut)
	for _, victim := range k.killed {
		to.Kill(victim)
	}
	for _, u := range k.unblocked {
		to.Unblock(u.turn, u.why)
	}
	if k.looksAtAll {
		to.LookAtAll()
	}
	for _, key := range k.looked {
		to.Look(key)
	}
	for counter, n := range k.counted {
		to.Count(counter, n)
	}
}

// LookAfter has all who wait move up, if a command about all keys may have given units back.
func (x *Executor) LookAfter(c *catalog.Command) {
	const flush = catalog.FlagWhole | catalog.FlagWrite
	if c != nil && c.Flags&flush == flush && x.Engine.Room.Waiting() > 0 {
		x.Effects.LookAtAll()
	}
}

// lookAt has those who wait for a key move up, if it was given units back.
func (x *Executor) lookAt(key store.Key) {
	if x.Engine.Room.Waiting() > 0 {
		x.Effects.Look(key)
	}
}
