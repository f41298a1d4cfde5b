package execute

import (
	"bytes"
	"log/slog"
	"sync/atomic"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/queue"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// Effects are what commands do apart from their keys. Those of EXEC and scripts are delayed until the keys
// are released: attempts may be repeated, and held keys make others wait.
type Effects interface {
	// Send shows lines to monitoring clients.
	Send(lines []byte)
	// Publish sends lines to a channel's subscribers, and returns their number.
	Publish(to *clients.Channel, lines []byte) (receivers int)
	// Log writes lines of scripts and counts the omitted ones.
	Log(lines []LogLine, leftOut int)
	// Kill closes another client's connection.
	Kill(victim *clients.Client)
	// Unblock ends a client's waiting and reports whether it waited.
	Unblock(turn *queue.Waiter, why queue.Outcome) bool
	// Look lets clients waiting for a key advance, as units may have been returned; LookAtAll does so for all
	// keys.
	Look(key store.Key)
	LookAtAll()
	// Count counts decisions by named limits.
	Count(counter *atomic.Uint64, n uint64)
	// Spend counts units that a key has spent by a settlement.
	Spend(to *topkeys.Spenders, key *store.Key, units int64)
}

// spender is a key that has spent, and where it is counted.
type spender struct {
	to   *topkeys.Spenders
	db   uint16
	name string
}

type LogLine struct {
	Level   slog.Level
	Message string
}

// Kept collects delayed effects.
type Kept struct {
	x *Executor // their executor

	monitored      []byte
	published      []published
	publishedBytes int
	logged         []LogLine
	loggedBytes    int
	leftOut        int // lines beyond maxLoggedBytes
	killed         []*clients.Client
	unblocked      []unblocked
	looked         []store.Key
	looksAtAll     bool
	counted        map[*atomic.Uint64]uint64
	spent          map[spender]int64 // by keys that have changed
}

// published are lines for a channel.
type published struct {
	to    *clients.Channel
	lines []byte
}

type unblocked struct {
	turn *queue.Waiter
	why  queue.Outcome
}

const (
	// mostLooked bounds the keys to look at; beyond it, all awaited keys are looked at.
	mostLooked = 1000
	// maxInnerLineBytes bounds the lines of a script or EXEC for MONITOR: they arrive at once, and must not
	// disconnect a client that reads as fast as it can.
	maxInnerLineBytes = 1 << 20
	// maxPublishedBytes bounds the messages of a script or EXEC, which arrive at once, too.
	maxPublishedBytes = 1 << 20
	// maxLoggedBytes bounds the log lines of a script or EXEC.
	maxLoggedBytes = 64 << 10
)

func (k *Kept) Send(lines []byte) {
	if len(k.monitored) >= maxInnerLineBytes {
		return
	}
	if k.Append(lines); len(k.monitored) >= maxInnerLineBytes {
		k.monitored = k.x.appendLine(k.monitored, k.x.Mode.byScript(), [][]byte{[]byte("... (more commands)")})
	}
}

// Append adds lines for those in MONITOR to what is kept, however much that is.
func (k *Kept) Append(lines []byte) { k.monitored = append(k.monitored, lines...) }

func (k *Kept) Publish(to *clients.Channel, lines []byte) (receivers int) {
	if k.publishedBytes+len(lines) > maxPublishedBytes {
		return 0
	}
	k.publishedBytes += len(lines)
	if n := len(k.published); n == 0 || k.published[n-1].to != to {
		k.published = append(k.published, published{to: to})
	}
	last := &k.published[len(k.published)-1]
	last.lines = append(last.lines, lines...)
	return to.Len()
}

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

func (k *Kept) Kill(victim *clients.Client) { k.killed = append(k.killed, victim) }

func (k *Kept) Unblock(turn *queue.Waiter, why queue.Outcome) bool {
	k.unblocked = append(k.unblocked, unblocked{turn, why})
	return true
}

func (k *Kept) Look(key store.Key) {
	switch {
	case k.looksAtAll:
	case len(k.looked) == mostLooked:
		k.LookAtAll()
	default:
		k.looked = append(k.looked, store.Key{DB: key.DB, Name: bytes.Clone(key.Name)})
	}
}

func (k *Kept) LookAtAll() { k.looked, k.looksAtAll = nil, true }

func (k *Kept) Count(counter *atomic.Uint64, n uint64) {
	if k.counted == nil {
		k.counted = map[*atomic.Uint64]uint64{}
	}
	k.counted[counter] += n
}

func (k *Kept) Spend(to *topkeys.Spenders, key *store.Key, units int64) {
	if k.spent == nil {
		k.spent = map[spender]int64{}
	}
	k.spent[spender{to, key.DB, string(key.Name)}] += units
}

// Uncount drops the counts of a withdrawn attempt.
func (k *Kept) Uncount() { k.counted, k.spent = nil, nil }

// Settle applies the collected effects, or passes them to the surrounding Executor. It may run in the
// background.
func (k *Kept) Settle(around *Executor) {
	to := around.Effects
	to.Send(k.monitored)
	for _, p := range k.published {
		to.Publish(p.to, p.lines)
	}
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
	for by, units := range k.spent {
		to.Spend(by.to, &store.Key{DB: by.db, Name: []byte(by.name)}, units)
	}
}

// LookAfter lets all waiting clients advance after a command about all keys that may return units.
func (x *Executor) LookAfter(c *catalog.Command) {
	const flush = catalog.FlagWhole | catalog.FlagWrite
	if c != nil && c.Flags&flush == flush && x.Engine.Queue.Waiting() > 0 {
		x.Effects.LookAtAll()
	}
}

// lookAt lets clients waiting for a key advance if units were returned.
func (x *Executor) lookAt(key store.Key) {
	if x.Engine.Queue.Waiting() > 0 {
		x.Effects.Look(key)
	}
}
