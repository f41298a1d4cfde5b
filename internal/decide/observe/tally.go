package observe

import (
	"math/bits"
	"runtime"
	"sync"

	"cellserver/internal/decide/histogram"
	"cellserver/internal/wire/catalog"
)

// Tally counts for some of the sessions. There are more tallies than processors, so that sessions seldom wait
// for one another's lock. It is safe for concurrent use.
type Tally struct {
	mu        sync.Mutex     // rank 90: guards all below
	commands  []commandTally // by catalog.Command.ID
	durations [families]histogram.Durations
	batches   batchSizes
	scripts   uint64 // native ones

	_ [128]byte // separates tallies by a pair of cache lines, which are often fetched together
}

// commandTally is the sum of a command's calls.
type commandTally struct {
	calls int64 // failures included
	ns    int64 // time spent in them

	byTime CallsByTime // completed ones; a batch's time is divided
}

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

// batchSizes counts batches of 1 command, up to 2, up to 4 and so on.
type batchSizes [sizeBuckets]uint64

// sizeBuckets covers MaxBatch.
const sizeBuckets = 8

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

// Batch counts a batch of calls that took ns together.
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

// Called counts calls that are not timed, or timed later by Took.
func (t *Tally) Called(c *catalog.Command, calls int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.commands[c.ID].calls += int64(calls)
}

// Took counts a finished call's work and its time including waiting. A call that waited was counted by
// Called.
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

// Programs counts scripts that needed no interpreter, and the calls in them, which are not timed.
func (t *Tally) Programs(scripts int, calls []*catalog.Command) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scripts += uint64(scripts)
	for _, c := range calls {
		t.commands[c.ID].calls++
	}
}

func (b *batchSizes) merge(other *batchSizes) {
	for i, n := range other {
		b[i] += n
	}
}

// CallsByTime counts calls by duration, in buckets that end at powers of two of microseconds.
type CallsByTime [24]int64 // up to 8.4 seconds, and all longer ones in the last

// Bucket is the number of calls up to a duration.
type Bucket struct{ MostUs, Calls int64 }

func (h *CallsByTime) add(ns, calls int64) {
	us := (max(ns, 1) + 999) / 1000 // rounded up, into the right bucket
	h[min(bits.Len64(uint64(us-1)), len(h)-1)] += calls
}

func (h *CallsByTime) merge(other *CallsByTime) {
	for i, n := range other {
		h[i] += n
	}
}

// Cumulative returns the number of calls, and the cumulative count of each nonempty bucket.
func (h *CallsByTime) Cumulative() (calls int64, buckets []Bucket) {
	for i, n := range h {
		if n > 0 {
			calls += n
			buckets = append(buckets, Bucket{1 << i, calls})
		}
	}
	return calls, buckets
}
