package command

import (
	"math/bits"
	"runtime"
	"sync"

	"cellserver/internal/histogram"
)

// tally is what a part of the sessions has executed. There are more of them than processors, and sessions have
// theirs by their scratch, so that one seldom waits for another's lock.
type tally struct {
	mu        sync.Mutex // guards all below
	rows      []rowTally // by row.id
	durations [kinds]*histogram.Durations
	batches   batchSizes
	scripts   uint64 // that needed no interpreter

	_ [128]byte // keeps two tallies off one pair of cache lines, which are often fetched together
}

// rowTally is what a command has come to.
type rowTally struct {
	calls int64 // also those that failed
	ns    int64 // spent in them

	byTime callsByTime // those that are done; of a batch each took its part
}

// kind is what durations are told apart by.
type kind uint8

const (
	kindThrottle kind = iota
	kindScript
	kindOther
	kinds
)

func (k kind) String() string { return [...]string{"cl.throttle", "script", "other"}[k] }

func kindOf(r *row) kind {
	switch {
	case r.batches:
		return kindThrottle
	case r.flags&flagScript != 0:
		return kindScript
	}
	return kindOther
}

// batchSizes counts batches: those of 1 command, of up to 2, of up to 4 and so on.
type batchSizes [sizeBuckets]uint64

const sizeBuckets = 8 // the last is maxBatch

func newTallies(rows int, scale *histogram.Scale) []*tally {
	all := make([]*tally, 2*runtime.GOMAXPROCS(0))
	for i := range all {
		t := &tally{rows: make([]rowTally, rows)}
		for k := range t.durations {
			t.durations[k] = scale.NewDurations()
		}
		all[i] = t
	}
	return all
}

// batch counts a batch. All of its commands took as long as it did.
func (t *tally) batch(r *row, commands int, ns int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row, n := &t.rows[r.id], int64(commands)
	row.calls += n
	row.ns += ns
	row.byTime.add(ns/n, n)
	t.durations[kindThrottle].Observe(ns, commands)
	t.batches[bits.Len(uint(commands-1))]++
}

// called counts calls of a command that are not timed, or will be by took.
func (t *tally) called(r *row, calls int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[r.id].calls += int64(calls)
}

// took counts what was worked for a call that is done, and how long it took, waiting included. Of one that waited,
// called has been told before.
func (t *tally) took(r *row, waited bool, workNs, tookNs int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := &t.rows[r.id]
	if !waited {
		row.calls++
	}
	row.ns += workNs
	row.byTime.add(workNs, 1)
	t.durations[kindOf(r)].Observe(tookNs, 1)
}

func (t *tally) nativeScript() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scripts++
}

// called returns what each command has come to, by row.id, without byTime.
func (e *Engine) called() []rowTally {
	sum := make([]rowTally, len(e.tallies[0].rows))
	for _, t := range e.tallies {
		t.mu.Lock()
		for i := range t.rows {
			sum[i].calls += t.rows[i].calls
			sum[i].ns += t.rows[i].ns
		}
		t.mu.Unlock()
	}
	return sum
}

// byTime returns the calls of each command by their time, by row.id.
func (e *Engine) byTime() []callsByTime {
	sum := make([]callsByTime, e.table.ids)
	for _, t := range e.tallies {
		t.mu.Lock()
		for i := range t.rows {
			sum[i].merge(&t.rows[i].byTime)
		}
		t.mu.Unlock()
	}
	return sum
}

// executed counts the calls of all commands.
func (e *Engine) executed() (n int64) {
	for _, r := range e.called() {
		n += r.calls
	}
	return n
}

func (e *Engine) resetCalls() {
	for _, t := range e.tallies {
		t.mu.Lock()
		clear(t.rows)
		t.mu.Unlock()
	}
}
