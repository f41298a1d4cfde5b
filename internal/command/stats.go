package command

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/histogram"
)

// rowStats is what INFO commandstats tells of a command beside its tallies.
type rowStats struct {
	failed   atomic.Int64 // replied an error
	rejected atomic.Int64 // replied an error before they ran
}

// errorStats counts error replies by their codes.
type errorStats struct {
	mu     sync.Mutex // guards all below
	byCode map[string]int64
	total  int64
}

// errorCodes are those of our own replies.
func errorCodes() []string {
	return []string{"ERR", "Cell", "EXECABORT", "NOAUTH", "NOPERM", "NOPROTO", "NOSCRIPT", "NOTBUSY", "WRONGPASS"}
}

// otherCode is for the codes that scripts make up, which are the client's.
const otherCode = "other"

// maxErrorCodes bounds the codes counted beside our own: those that scripts make up are the client's.
const (
	maxErrorCodes     = 128
	maxErrorCodeBytes = 64
)

func (e *errorStats) count(text string) {
	code, _, _ := strings.Cut(text[:min(len(text), maxErrorCodeBytes)], " ")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.total++
	if _, known := e.byCode[code]; known || len(e.byCode) < maxErrorCodes || slices.Contains(errorCodes(), code) {
		if e.byCode == nil {
			e.byCode = map[string]int64{}
		}
		e.byCode[strings.Clone(code)]++
	}
}

// each visits the counts by code.
func (e *errorStats) each(visit func(code string, n int64)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for code, n := range e.byCode {
		visit(code, n)
	}
}

func (e *errorStats) sum() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.total
}

// byKind returns the counts of our own codes, and of all others together.
func (e *errorStats) byKind() map[string]uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	kinds := map[string]uint64{otherCode: uint64(e.total)}
	for _, code := range errorCodes() {
		kinds[code] = uint64(e.byCode[code])
		kinds[otherCode] -= kinds[code]
	}
	return kinds
}

func (e *errorStats) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byCode, e.total = nil, 0
}

func (e *Engine) resetStats() {
	e.resetCalls()
	e.table.each(func(r *row) {
		r.stats.failed.Store(0)
		r.stats.rejected.Store(0)
	})
	e.errors.reset()
	e.logins.total.Store(0)
}

// each visits all commands and their subcommands, in the order of their names.
func (t *table) each(visit func(*row)) {
	for _, r := range t.rows {
		visit(r)
		for _, sub := range r.subs {
			visit(sub)
		}
	}
}

// outcomes counts how scripts ended that were interpreted.
type outcomes struct{ completed, failed, ended atomic.Uint64 }

func (o *outcomes) count(r *scriptRun) {
	switch {
	case r.ended:
		o.ended.Add(1)
	case len(r.reply) > 0 && r.reply[0] == '-':
		o.failed.Add(1)
	default:
		o.completed.Add(1)
	}
}

// Stats is what an Engine has counted since it was made, or, of calls and errors, since CONFIG RESETSTAT. The maps have
// the same keys at all times, which no client chooses.
type Stats struct {
	Since          time.Time         // the engine was made
	Calls          map[string]uint64 // by command, those included that failed
	Errors         map[string]uint64 // error replies by their codes; those that are not ours together as "other"
	ProtocolErrors uint64            // after each of which a connection was closed
	AuthFailures   uint64
	Scripts        map[string]uint64 // by outcome: completed, failed with an error, ended by a bound
	Batches        BatchStats
	// Durations are by what ran: cl.throttle, a script, or other commands. The commands of a batch take as long as the
	// batch, for it is what each of them waits for.
	Durations map[string]histogram.Snapshot
}

// BatchStats counts batches of calls of CL.THROTTLE, which are decided together.
type BatchStats struct {
	Count, Commands uint64
	UpTo            map[float64]uint64 // how many had at most so many commands
}

// Stats returns the engine's figures. It holds up to one tally's lock at a time, while that is copied.
func (e *Engine) Stats() Stats {
	st := Stats{
		Since:          e.started,
		Calls:          map[string]uint64{},
		Errors:         e.errors.byKind(),
		ProtocolErrors: e.protocolErrors.Load(),
		AuthFailures:   e.logins.allTotal.Load(),
		Scripts: map[string]uint64{
			"completed": e.outcomes.completed.Load(), "failed": e.outcomes.failed.Load(), "ended": e.outcomes.ended.Load(),
		},
		Batches:   BatchStats{UpTo: map[float64]uint64{}},
		Durations: map[string]histogram.Snapshot{},
	}
	called := e.called()
	e.table.each(func(r *row) { st.Calls[r.fullName()] = uint64(called[r.id].calls) })
	durations := [kinds]histogram.Snapshot{}
	for k := range durations {
		durations[k] = e.scale.NewSnapshot()
	}
	var sizes batchSizes
	for _, t := range e.tallies {
		t.mu.Lock()
		for k := range durations {
			durations[k].Add(t.durations[k])
		}
		sizes.merge(&t.batches)
		st.Scripts["completed"] += t.scripts
		t.mu.Unlock()
	}
	for k := range durations {
		st.Durations[kind(k).String()] = durations[k]
	}
	st.Batches.Commands = durations[kindThrottle].Count // what is in no batch is not timed
	for i, n := range sizes {
		st.Batches.Count += n
		st.Batches.UpTo[float64(int(1)<<i)] = st.Batches.Count
	}
	return st
}

// Latency returns the durations of the calls of CL.THROTTLE, of all sessions since the start.
func (e *Engine) Latency() histogram.Snapshot {
	all := e.scale.NewSnapshot()
	for _, t := range e.tallies {
		t.mu.Lock()
		all.Add(t.durations[kindThrottle])
		t.mu.Unlock()
	}
	return all
}

func (b *batchSizes) merge(other *batchSizes) {
	for i, n := range other {
		b[i] += n
	}
}
