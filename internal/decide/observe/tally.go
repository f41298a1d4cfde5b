package observe

import (
	"math/bits"
	"runtime"
	"sync"

	"cellserver/internal/decide/histogram"
	"cellserver/internal/wire/catalog"
)

// Tally is what a part of the sessions has executed. There are more of them than processors, so that one session
// seldom waits for another's lock. It is safe for concurrent use.
type Tally struct {
	mu        sync.Mutex     // guards all below
	commands  []commandTally // by catalog.Command.ID
	durations [families]*histogram.Durations
	batches   batchSizes
	scripts   uint64 // that needed no interpreter

	_ [128]byte // keeps two tallies off one pair of cache lines, which are often fetched together
}

// commandTally is what the calls of a command add up to.
type commandTally struct {
	calls int64 // also those that failed
	ns    int64 // spent in them

	byTime CallsByTime // those that are done; of a batch each took its part
}

// family is what durations are told apart by.
type family uint8

const (
	familyThrottle family = iota
	familyScript
	familyOther
	families
)

func (f family) String() string { return [...]string{"cl.throttle", "script", "other"}[f] }

func familyOf(c *catalog.Command) family {
	switch {
	case c.Batches:
		return familyThrottle
	case c.Flags&catalog.FlagScript != 0:
		return familyScript
	}
	return familyOther
}

// batchSizes counts batches: those of 1 command, of up to 2, of up to 4 and so on.
type batchSizes [sizeBuckets]uint64

// sizeBuckets is as many as MaxBatch needs.
const sizeBuckets = 8

// MaxBatch is the most calls that are counted as one batch.
const MaxBatch = 1 << (sizeBuckets - 1)

func newTallies(commands int, scale *histogram.Scale) []*Tally {
	all := make([]*Tally, 2*runtime.GOMAXPROCS(0))
	for i := range all {
		t := &Tally{commands: make([]commandTally, commands)}
		for f := range t.durations {
			t.durations[f] = scale.NewDurations()
		}
		all[i] = t
	}
	return all
}

// Batch counts a batch of calls. All of them took as long as it did.
func (t *Tally) Batch(c *catalog.Command, calls int, ns int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	command, n := &t.commands[c.ID], int64(calls)
	command.calls += n
	command.ns += ns
	command.byTime.add(ns/n, n)
	t.durations[familyThrottle].Observe(ns, calls)
	t.batches[bits.Len(uint(calls-1))]++
}

// Called counts calls of a command that are not timed, or will be by Took.
func (t *Tally) Called(c *catalog.Command, calls int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.commands[c.ID].calls += int64(calls)
}

// Took counts the work of a call that is done, and how long it took, waiting included. A call that waited has been
// counted by Called before.
func (t *Tally) Took(c *catalog.Command, waited bool, workNs, tookNs int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	command := &t.commands[c.ID]
	if !waited {
		command.calls++
	}
	command.ns += workNs
	command.byTime.add(workNs, 1)
	t.durations[familyOf(c)].Observe(tookNs, 1)
}

// NativeScript counts a script that needed no interpreter.
func (t *Tally) NativeScript() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scripts++
}

func (b *batchSizes) merge(other *batchSizes) {
	for i, n := range other {
		b[i] += n
	}
}
