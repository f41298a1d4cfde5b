// Package observe is the records of what the server does: counts, durations, slow calls, latency events, error codes,
// hot keys, and the lines that clients in MONITOR are sent. It sends no replies. Everything but a Local is safe for
// concurrent use; a Local belongs to one goroutine at a time.
package observe

import (
	"sync/atomic"
	"time"

	"cellserver/internal/decide/histogram"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/wire/catalog"
)

// Records is what all sessions write to. Their parts are those of the commands that show them.
type Records struct {
	Slowlog   Slowlog
	Latencies Latencies
	Slowness  Slowness
	Monitors  Monitors
	Errors    ErrorReplies
	TopKeys   *topkeys.Tracker

	catalog        *catalog.Catalog
	startedNs      int64
	scale          *histogram.Scale
	tallies        []*Tally
	turn           atomic.Uint32 // of the tallies, for the next Local
	outcomes       [commandOutcomes][]atomic.Int64
	scripts        [scriptOutcomes]atomic.Uint64
	protocolErrors atomic.Uint64
	linesLeftOut   atomic.Uint64
}

// New returns empty records of the commands of a catalog.
func New(c *catalog.Catalog, nowNs int64) *Records {
	r := &Records{catalog: c, startedNs: nowNs, scale: histogram.NewScale(), TopKeys: topkeys.New()}
	r.tallies = newTallies(len(c.Commands()), r.scale)
	for i := range r.outcomes {
		r.outcomes[i] = make([]atomic.Int64, len(c.Commands()))
	}
	r.Slowness.SetSlowlog(-1)
	return r
}

// Local is what one goroutine at a time records by: its part of the tallies, and its samples of keys.
type Local struct {
	*Tally
	Sampler topkeys.Sampler
}

// NewLocal returns a Local with one of the tallies, each in its turn.
func (r *Records) NewLocal() Local {
	return Local{Tally: r.tallies[int(r.turn.Add(1))%len(r.tallies)]}
}

// commandOutcome is an end of a command that is counted apart from the tallies.
type commandOutcome uint8

const (
	commandFailed commandOutcome = iota
	commandRejected
	commandOutcomes
)

// Failed counts a call that replied an error.
func (r *Records) Failed(c *catalog.Command) { r.outcomes[commandFailed][c.ID].Add(1) }

// Rejected counts a call that replied an error before it was executed.
func (r *Records) Rejected(c *catalog.Command) { r.outcomes[commandRejected][c.ID].Add(1) }

// ProtocolError counts a connection that is closed for bytes that are no command.
func (r *Records) ProtocolError() { r.protocolErrors.Add(1) }

// LeaveOutScriptLines counts lines that scripts logged and that are not written.
func (r *Records) LeaveOutScriptLines(n int) { r.linesLeftOut.Add(uint64(n)) }

// ScriptLinesLeftOut returns how many there were since the start.
func (r *Records) ScriptLinesLeftOut() uint64 { return r.linesLeftOut.Load() }

// ScriptOutcome is how a script ended that was interpreted.
type ScriptOutcome uint8

// The ways in which a script ends:
const (
	ScriptCompleted ScriptOutcome = iota
	ScriptFailed                  // with an error
	ScriptEnded                   // by a bound
	scriptOutcomes
)

func (o ScriptOutcome) String() string { return [...]string{"completed", "failed", "ended"}[o] }

// Script counts a script that was interpreted.
func (r *Records) Script(o ScriptOutcome) { r.scripts[o].Add(1) }

// CommandStats is what INFO commandstats tells of a command.
type CommandStats struct {
	Command          *catalog.Command
	Calls, Ns        int64
	Failed, Rejected int64
}

// Commands returns the figures of all commands that lists have, in the order of their names.
func (r *Records) Commands() []CommandStats {
	sum := make([]CommandStats, len(r.catalog.Commands()))
	for _, t := range r.tallies {
		t.mu.Lock()
		for id := range t.commands {
			sum[id].Calls += t.commands[id].calls
			sum[id].Ns += t.commands[id].ns
		}
		t.mu.Unlock()
	}
	shown := make([]CommandStats, 0, len(sum))
	r.catalog.Each(func(c *catalog.Command) {
		s := sum[c.ID]
		s.Command = c
		s.Failed, s.Rejected = r.outcomes[commandFailed][c.ID].Load(), r.outcomes[commandRejected][c.ID].Load()
		shown = append(shown, s)
	})
	return shown
}

// ByTime returns the calls of each command by their time, by ID.
func (r *Records) ByTime() []CallsByTime {
	sum := make([]CallsByTime, len(r.catalog.Commands()))
	for _, t := range r.tallies {
		t.mu.Lock()
		for id := range t.commands {
			sum[id].merge(&t.commands[id].byTime)
		}
		t.mu.Unlock()
	}
	return sum
}

// Executed counts the calls of all commands.
func (r *Records) Executed() (n int64) {
	for _, c := range r.Commands() {
		n += c.Calls
	}
	return n
}

// ResetStat starts the counts of calls and errors from 0 again, as CONFIG RESETSTAT does. Durations are kept.
func (r *Records) ResetStat() {
	for _, t := range r.tallies {
		t.mu.Lock()
		clear(t.commands)
		t.mu.Unlock()
	}
	for i := range r.outcomes {
		for id := range r.outcomes[i] {
			r.outcomes[i][id].Store(0)
		}
	}
	r.Errors.reset()
}

// Stats is what has been counted since the start, or, of calls and errors, since ResetStat. The maps have the same keys
// at all times, which no client chooses.
type Stats struct {
	Since          time.Time         // the start
	Calls          map[string]uint64 // by command, those included that failed
	Errors         map[string]uint64 // error replies by their codes; those that are not this server's own together as "other"
	ProtocolErrors uint64            // after each of which a connection was closed
	Scripts        map[string]uint64 // by outcome: completed, failed with an error, ended by a bound
	Batches        BatchStats
	// Durations are by what ran: a command that is decided in batches (by the name of cl.throttle), a script, or another one.
	// The commands of a batch take as long as the batch, for it is what each of them waits for.
	Durations map[string]histogram.Snapshot
}

// BatchStats counts batches of calls of CL.THROTTLE, or of a command like it, which are decided together.
type BatchStats struct {
	Count, Commands uint64
	UpTo            map[float64]uint64 // how many had at most so many commands
}

// Stats returns the figures. It holds up to one tally's lock at a time, while that is copied.
func (r *Records) Stats() Stats {
	st := Stats{
		Since:          time.Unix(0, r.startedNs),
		Calls:          map[string]uint64{},
		Errors:         r.Errors.byOwnCode(),
		ProtocolErrors: r.protocolErrors.Load(),
		Scripts:        map[string]uint64{},
		Batches:        BatchStats{UpTo: map[float64]uint64{}},
		Durations:      map[string]histogram.Snapshot{},
	}
	for o := range scriptOutcomes {
		st.Scripts[o.String()] = r.scripts[o].Load()
	}
	for _, c := range r.Commands() {
		st.Calls[c.Command.FullName()] = uint64(c.Calls)
	}
	durations := [families]histogram.Snapshot{}
	for f := range durations {
		durations[f] = r.scale.NewSnapshot()
	}
	var sizes batchSizes
	for _, t := range r.tallies {
		t.mu.Lock()
		for f := range durations {
			durations[f].Add(t.durations[f])
		}
		sizes.merge(&t.batches)
		st.Scripts[ScriptCompleted.String()] += t.scripts
		t.mu.Unlock()
	}
	for f := range durations {
		st.Durations[family(f).String()] = durations[f]
	}
	st.Batches.Commands = durations[familyThrottle].Count // what is in no batch is not timed
	for i, n := range sizes {
		st.Batches.Count += n
		st.Batches.UpTo[float64(int(1)<<i)] = st.Batches.Count
	}
	return st
}

// ScriptsEnded is how many scripts have ended at a bound.
func (r *Records) ScriptsEnded() uint64 { return r.scripts[ScriptEnded].Load() }

// ThrottleDurations returns the durations of the calls of CL.THROTTLE and of the commands like it since the start.
func (r *Records) ThrottleDurations() histogram.Snapshot {
	all := r.scale.NewSnapshot()
	for _, t := range r.tallies {
		t.mu.Lock()
		all.Add(t.durations[familyThrottle])
		t.mu.Unlock()
	}
	return all
}
