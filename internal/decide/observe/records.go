// Package observe records what the server does: counts, durations, slow calls, latency events, error codes,
// hot keys and MONITOR's lines. It sends no replies. All but a Local, which belongs to one goroutine at a
// time, is safe for concurrent use.
package observe

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/histogram"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/wire/catalog"
)

// Records are written by all sessions and read by the commands about them.
type Records struct {
	Slowlog   Slowlog
	Latencies Latencies
	Slowness  Slowness
	Monitors  clients.Group // clients in MONITOR
	Errors    ErrorReplies
	TopKeys   *topkeys.Tracker

	catalog        *catalog.Catalog
	startedNs      int64
	scale          *histogram.Scale
	tallies        []*Tally
	turn           atomic.Uint32  // next Local's tally
	failed         []atomic.Int64 // by catalog.Command.ID
	rejected       []atomic.Int64 // by ID, too
	scripts        [scriptOutcomes]atomic.Uint64
	protocolErrors atomic.Uint64
	linesLeftOut   atomic.Uint64
}

func New(c *catalog.Catalog, nowNs int64) *Records {
	r := &Records{
		catalog: c, startedNs: nowNs, scale: histogram.NewScale(), TopKeys: topkeys.New(),
		Monitors: clients.Group{Held: clients.MonitorLines},
	}
	n := len(c.Commands())
	r.tallies = newTallies(n, r.scale)
	r.failed, r.rejected = make([]atomic.Int64, n), make([]atomic.Int64, n)
	r.Slowness.SetSlowlog(-1)
	return r
}

// Local is a goroutine's part of the records.
type Local struct {
	*Tally
	Sampler topkeys.Sampler
}

func (r *Records) NewLocal() Local {
	return Local{Tally: r.tallies[int(r.turn.Add(1))%len(r.tallies)]}
}

// Failed counts a call with an error reply.
func (r *Records) Failed(c *catalog.Command) { r.failed[c.ID].Add(1) }

// Rejected counts a call refused before its execution.
func (r *Records) Rejected(c *catalog.Command) { r.rejected[c.ID].Add(1) }

// ProtocolError counts a connection closed for invalid input.
func (r *Records) ProtocolError() { r.protocolErrors.Add(1) }

// LeaveOutScriptLines counts lines logged by scripts and not written.
func (r *Records) LeaveOutScriptLines(n int) { r.linesLeftOut.Add(uint64(n)) }

func (r *Records) ScriptLinesLeftOut() uint64 { return r.linesLeftOut.Load() }

// ScriptOutcome is the end of an interpreted script.
type ScriptOutcome uint8

const (
	ScriptCompleted ScriptOutcome = iota
	ScriptFailed                  // with an error
	ScriptEnded                   // by a bound
	scriptOutcomes
)

func (o ScriptOutcome) String() string { return [...]string{"completed", "failed", "ended"}[o] }

func (r *Records) Script(o ScriptOutcome) { r.scripts[o].Add(1) }

// CommandStats is a command's part of INFO commandstats.
type CommandStats struct {
	Command          *catalog.Command
	Calls, Ns        int64
	Failed, Rejected int64
}

// Commands returns the figures of all listed commands by name.
func (r *Records) Commands() []CommandStats {
	sum := make([]CommandStats, len(r.catalog.Commands()))
	r.each(func(t *Tally) {
		for id := range t.commands {
			sum[id].Calls += t.commands[id].calls
			sum[id].Ns += t.commands[id].ns
		}
	})
	shown := make([]CommandStats, 0, len(sum))
	r.catalog.Each(func(c *catalog.Command) {
		s := sum[c.ID]
		s.Command = c
		s.Failed, s.Rejected = r.failed[c.ID].Load(), r.rejected[c.ID].Load()
		shown = append(shown, s)
	})
	return shown
}

// Refused returns the calls of commands that are not available, most first. Calls of unknown commands,
// whose names clients choose, are a sum without a Command.
func (r *Records) Refused() (all []CommandStats) {
	for _, c := range r.catalog.Commands() {
		if n := r.rejected[c.ID].Load(); n > 0 && c.Refusal != "" {
			all = append(all, CommandStats{Command: c, Rejected: n})
		}
	}
	if n := r.Errors.Counts().Unknown; n > 0 {
		all = append(all, CommandStats{Rejected: n})
	}
	slices.SortStableFunc(all, func(a, b CommandStats) int { return cmp.Compare(b.Rejected, a.Rejected) })
	return all
}

// ByTime returns each command's calls by duration, by ID.
func (r *Records) ByTime() []CallsByTime {
	sum := make([]CallsByTime, len(r.catalog.Commands()))
	r.each(func(t *Tally) {
		for id := range t.commands {
			sum[id].merge(&t.commands[id].byTime)
		}
	})
	return sum
}

func (r *Records) Executed() (n int64) {
	for _, c := range r.Commands() {
		n += c.Calls
	}
	return n
}

// ResetStat resets the counts of calls and errors, as CONFIG RESETSTAT does, not the durations.
func (r *Records) ResetStat() {
	r.each(func(t *Tally) { clear(t.commands) })
	for id := range r.failed {
		r.failed[id].Store(0)
		r.rejected[id].Store(0)
	}
	r.Errors.reset()
}

// Stats are counts since the start, or since ResetStat for calls and errors. Clients do not choose any map's
// keys, which never change.
type Stats struct {
	Since          time.Time         // of the start
	Calls          map[string]uint64 // by command, failures included
	Errors         map[string]uint64 // error replies by code, foreign ones as "other"
	ProtocolErrors uint64            // connections closed for invalid input
	Scripts        map[string]uint64 // by outcome: completed, failed, ended by a bound
	Batches        BatchStats
	// Durations are by activity: batched commands (as cl.throttle), scripts, and others. Each command of a
	// batch waits for the whole batch.
	Durations map[string]histogram.Durations
}

// BatchStats counts batches of calls of CL.THROTTLE and its like.
type BatchStats struct {
	Count, Commands uint64
	UpTo            map[float64]uint64 // cumulative, by number of commands
}

// each visits the tallies, each under its lock.
func (r *Records) each(visit func(t *Tally)) {
	for _, t := range r.tallies {
		t.mu.Lock()
		visit(t)
		t.mu.Unlock()
	}
}

func (r *Records) Stats() Stats {
	st := Stats{
		Since:          time.Unix(0, r.startedNs),
		Calls:          map[string]uint64{},
		Errors:         r.Errors.byOwnCode(),
		ProtocolErrors: r.protocolErrors.Load(),
		Scripts:        map[string]uint64{},
		Batches:        BatchStats{UpTo: map[float64]uint64{}},
		Durations:      map[string]histogram.Durations{},
	}
	for o := range scriptOutcomes {
		st.Scripts[o.String()] = r.scripts[o].Load()
	}
	for _, c := range r.Commands() {
		st.Calls[c.Command.FullName()] = uint64(c.Calls)
	}
	durations := [families]histogram.Durations{}
	for f := range durations {
		durations[f] = r.scale.NewDurations()
	}
	var sizes batchSizes
	r.each(func(t *Tally) {
		for f := range durations {
			durations[f].Add(t.durations[f])
		}
		sizes.merge(&t.batches)
		st.Scripts[ScriptCompleted.String()] += t.scripts
	})
	for f := range durations {
		st.Durations[family(f).String()] = durations[f]
	}
	st.Batches.Commands = durations[familyThrottle].Count // unbatched ones are not timed
	for i, n := range sizes {
		st.Batches.Count += n
		st.Batches.UpTo[float64(int(1)<<i)] = st.Batches.Count
	}
	return st
}

// NativeScripts returns the number of scripts that needed no interpreter.
func (r *Records) NativeScripts() (n uint64) {
	r.each(func(t *Tally) { n += t.scripts })
	return n
}

// ScriptsEnded returns the number of scripts ended by a bound.
func (r *Records) ScriptsEnded() uint64 { return r.scripts[ScriptEnded].Load() }

// ThrottleDurations returns the durations of CL.THROTTLE and its like since the start.
func (r *Records) ThrottleDurations() histogram.Durations {
	all := r.scale.NewDurations()
	r.each(func(t *Tally) { all.Add(t.durations[familyThrottle]) })
	return all
}
